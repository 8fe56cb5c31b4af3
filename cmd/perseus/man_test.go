package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestManual: the page has every command and flag that is not hidden, and groff, where there is one, has no complaint.
func TestManual(t *testing.T) {
	parser, err := kong.New(&commands{}, kong.Name("perseus"), kong.Description(description), kong.Vars(variables()), mappers())
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := (manCommand{}).Run(&world{stdout: &page, parser: parser}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if !strings.HasPrefix(text, ".TH PERSEUS 1 ") || strings.Count(text, ".SH ") != 5 {
		t.Errorf("the page begins with %.60q", text)
	}
	plain := strings.ReplaceAll(text, `\-`, "-")
	n := 0
	eachCommand(parser.Model.Node, func(c *kong.Node) {
		n++
		if !strings.Contains(plain, ".SS "+c.Summary()) {
			t.Errorf("%s is missing", c.Path())
		}
		for _, f := range c.Flags {
			if !f.Hidden && f.Name != "help" && !strings.Contains(plain, "--"+f.Name) {
				t.Errorf("%s: --%s is missing", c.Path(), f.Name)
			}
		}
	})
	if n < 10 {
		t.Errorf("%d commands", n)
	}
	if strings.Contains(plain, "--cpuprofile") {
		t.Error("a hidden flag is shown")
	}
	if regexp.MustCompile(`(?m)^\.(?:[^STPBIfnR]|$)`).MatchString(text) {
		t.Error("a line of text is taken for a request")
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Log("no groff to read the page with")
		return
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-Tutf8", "-z")
	cmd.Stdin = bytes.NewReader(page.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%.2000s", err, out)
	}
}
