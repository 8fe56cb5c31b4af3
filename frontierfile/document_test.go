package frontierfile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented has every field that the reader knows on the page of the format.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := 0
	for _, file := range []string{"read.go", "terms.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bname: "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			names++
			if !strings.Contains(string(page), "`"+name[1]+"`") {
				t.Errorf("%s reads the field %s, of which docs/format.md says nothing", file, name[1])
			}
		}
	}
	if names < 60 {
		t.Errorf("only %d fields were found in the source: does it write them in another way?", names)
	}
	// And the other way round: a field in a table is one that is read.
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`\\w+`(?:, )?)+) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			found := false
			for _, file := range []string{"read.go", "terms.go"} {
				source, err := os.ReadFile(file)
				found = found || err == nil && strings.Contains(string(source), `name: "`+name[1]+`"`)
			}
			if !found {
				t.Errorf("docs/format.md has the field %s, which is not read", name[1])
			}
		}
	}
}
