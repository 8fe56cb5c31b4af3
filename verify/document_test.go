package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// block returns the text between the fence ```name and the next fence.
func block(t *testing.T, text, name string) []byte {
	_, text, ok := strings.Cut(text, "```"+name+"\n")
	text, _, closed := strings.Cut(text, "```")
	if !ok || !closed {
		t.Fatalf("no block of %s", name)
	}
	return []byte(text)
}

// TestDocument keeps the example of docs/format.md true.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, profile := block(t, string(b), "json"), block(t, string(b), "csv")
	if _, err := Read(bytes.NewReader(example), "format.md", profile); err != nil {
		t.Error(err)
	}
	f := made(t, profile, "1f1b", pipeline.Size{Microbatches: 1}, 84*unit.Watt, characterize.Options{})
	if got := written(t, f); !bytes.Equal(got, example) {
		t.Errorf("got\n%s", got)
	}
}
