package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// result is the outcome of one run of the program.
type result struct {
	status         int
	stdout, stderr string
}

// perseus runs the program in this process.
func perseus(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// must runs the program and fails the test unless its status is 0.
func must(t testing.TB, args ...string) result {
	t.Helper()
	r := perseus(t, "", args...)
	if r.status != statusDone {
		t.Fatalf("perseus %s: status %d, %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return r
}

// nodes returns all commands, the program first.
func nodes(t testing.TB) []*kong.Node {
	t.Helper()
	w := &world{stdout: io.Discard, stderr: io.Discard}
	w.parse([]string{"version"}, &commands{})
	var all []*kong.Node
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		all = append(all, n)
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(w.parser.Model.Node)
	return all
}

func path(n *kong.Node) []string { return strings.Fields(n.FullPath())[1:] }

// TestHelp checks that each command has a help that says something about each of
// its flags and arguments, and that the help's examples are right.
func TestHelp(t *testing.T) {
	for _, n := range nodes(t) {
		r := must(t, append(path(n), "--help")...)
		if !strings.HasPrefix(r.stdout, "Usage: perseus") || r.stderr != "" {
			t.Errorf("%s: %q, %q", n.FullPath(), r.stdout, r.stderr)
		}
		for _, level := range n.AllFlags(true) {
			for _, f := range level {
				if !strings.HasSuffix(f.Help, ".") || !strings.Contains(r.stdout, "--"+f.Name) {
					t.Errorf("%s --%s: help %q, or it is not shown", n.FullPath(), f.Name, f.Help)
				}
			}
		}
		for _, p := range n.Positional {
			if !strings.HasSuffix(p.Help, ".") {
				t.Errorf("%s %s: help %q", n.FullPath(), p.Name, p.Help)
			}
		}
		checkExamples(t, r.stdout)
	}
	if r := perseus(t, ""); r.status != statusBadInput || !strings.HasPrefix(r.stderr, "Usage: perseus") || r.stdout != "" {
		t.Errorf("without arguments: %+v", r)
	}
}

// checkExamples parses the command lines in a text, without running them.
func checkExamples(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " #")
		line, _, _ = strings.Cut(line, " >")
		line, _, _ = strings.Cut(line, "`")
		for command := range strings.SplitSeq(line, "|") {
			command = strings.TrimSpace(command)
			command = strings.TrimSuffix(strings.TrimPrefix(command, "source <("), ")")
			args, ok := strings.CutPrefix(command, "perseus ")
			if !ok {
				args, ok = strings.CutPrefix(command, "go run ./cmd/perseus ")
			}
			if !ok || !strings.Contains(args, " ") || strings.ContainsAny(args, "[") || strings.Contains(args, "COMMAND") {
				continue
			}
			var stderr bytes.Buffer
			w := &world{stdout: io.Discard, stderr: &stderr}
			if parsed, _ := w.parse(strings.Fields(args), &commands{}); parsed == nil && stderr.Len() > 0 {
				t.Errorf("example %q: %s", command, &stderr)
			}
		}
	}
}

// TestWrongFlags holds what is said about command lines that are wrong.
func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		args string
		want string // part of the message
	}{
		{"fronteir", `did you mean "frontier"?`},
		{"--nonsense", "unknown flag --nonsense"},
		{"frontier --exmaple", `did you mean "--example"?`},
		{"frontier --example extra", "unexpected argument extra"},
		{"frontier", "--profile is missing"},
		{"frontier --example --profile P.csv", "can't be used together"},
		{"frontier --example --schedule 1f2b", `did you mean "1f1b"?`},
		{"frontier --example --schedule 1f1b --schedule-csv o.csv", "can't be used together"},
		{"frontier --example --schedule-csv o.csv --ranks 4", "leave out their flags"},
		{"frontier --example --microbatches 0.5", "expected a valid 64 bit int"},
		{"frontier --example --microbatches=-1", "--microbatches -1: at least 1 is needed"},
		{"frontier --example --epsilon 0.01", "the sign is missing: write 1%"},
		{"plan F.json --fastest --margin 0.5", "0.5 is of what? write 0.5% or 50%"},
		{"plan F.json --slowdown 10%", "write 1.1 for 10% more"},
		{"simulate F.json --straggler 20%", "write 1.2 for 20% more"},
		{"simulate F.json --noise 0.02", "write 2%"},
		{"compare F.json --noise 1", "write 1% or 100%"},
		{"compare F.json --noise 1% --margin 1%,0.5", "write 0.5% or 50%"},
		{"frontier --example --blocking-power 84V", "expected a power as in 83.64 (watts) or 15kW"},
		{"frontier --example --blocking-power 1,2,3", "3 blocking powers for 8 ranks"},
		{"frontier --example --blocking-power=-1", "blocking power -1W"},
		{"frontier --example --units time=h", "--units: time=h is unknown"},
		{"frontier --example --epsilon 1,5", "expected a share as in 0.5%"},
		{"frontier --example --points 1", "points"},
		{"frontier --example --format xml", `--format must be one of "auto","json","text" but got "xml"`},
		{"frontier --example --ranks 3", "8"},
		{"frontier --example --write-profile", "expected string value"},
		{"frontier --profile P.csv --write-profile Q.csv", "--write-profile writes the profile of --example"},
		{"frontier --profile P.csv", "P.csv: no such file"},
		{"frontier --profile .", ".: is a folder, expected a file"},
		{"frontier --example -o nowhere/F.json", "nowhere: no such file or directory"},
		{"frontier --example -o .", ".: is a folder, expected a file"},
		{"show", `expected "<F.json>"`},
		{"show nowhere.json", "nowhere.json: no such file"},
		{"plan", `expected "<F.json>"`},
		{"plan F.json", "say what to plan for: one of --fastest, --time, --slowdown, --straggler, --power, --min-energy"},
		{"plan F.json --fastest --min-energy", "can't be used together"},
		{"plan F.json --time 2,9s", "expected a time as in 2.9s or 2900ms"},
		{"plan F.json --time -1s", "--time"},
		{"plan F.json --time=-1s", "--time -1s: expected a time over 0s"},
		{"plan F.json --straggler 0.9", "--straggler 0.9: expected a factor of at least 1"},
		{"plan F.json --slowdown fast", "expected a factor as in 1.2"},
		{"plan F.json --power 0", "--power 0W: expected a power over 0W"},
		{"plan F.json --fastest --margin 101%", "--margin 101%: expected 0% to 100%"},
		{"plan F.json --fastest --effort most", "expected fast, normal or best"},
		{"plan F.json --fastest --margin 1% --effort fast", "--effort fast: takes a point of the file as it is, which has no margin; normal and best can have one"},
		{"verify F.json", "--profile is missing"},
		{"verify - --profile -", "cannot both be standard input"},
		{"schedules show", `expected "<name>"`},
		{"schedules show 1f2b", `did you mean "1f1b"?`},
		{"schedules show 1f1b --ranks=-4", "--ranks -4: at least 1"},
		{"completion tcsh", `must be one of "bash","zsh","fish" but got "tcsh"`},
	} {
		r := perseus(t, "", strings.Fields(test.args)...)
		if r.status != statusBadInput || !strings.HasPrefix(r.stderr, "perseus: ") || !strings.Contains(r.stderr, test.want) || r.stdout != "" {
			t.Errorf("perseus %s: status %d, %q, %q; want %q", test.args, r.status, r.stdout, r.stderr, test.want)
		}
	}
}

// FuzzArguments parses any command line: it must not panic, and what is wrong
// has a message and the status of wrong input. Commands are not run.
func FuzzArguments(f *testing.F) {
	for _, n := range nodes(f) {
		f.Add(strings.Join(append(path(n), "--help"), "\x00"))
		var all []string
		for _, level := range n.AllFlags(false) {
			for _, flag := range level {
				all = append(all, "--"+flag.Name+"=1")
			}
		}
		f.Add(strings.Join(append(path(n), all...), "\x00"))
	}
	for _, line := range []string{
		"plan F.json --time 2.9s --margin 0.5% --effort best --format zeus -o p.py",
		"frontier -p P.csv --schedule 1f1b -m 96 --blocking-power 83.64,70 --units time=ms -o F.json.gz",
		"plan - --straggler=1e999", "plan -- --", "plan F.json --power=1e3kW", "-h", "", "--=", "-", "plan ${x} $ --time=${y}",
	} {
		f.Add(strings.ReplaceAll(line, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		var stdout, stderr bytes.Buffer
		w := &world{ctx: context.Background(), stdout: &stdout, stderr: &stderr}
		parsed, status := w.parse(args, &commands{})
		switch {
		case parsed != nil:
			if stderr.Len() > 0 {
				t.Errorf("%q: runs, and says %q", args, &stderr)
			}
		case status == statusDone:
			if !strings.HasPrefix(stdout.String(), "Usage: ") {
				t.Errorf("%q: status 0 and no help: %q", args, &stdout)
			}
		case status != statusBadInput || stderr.Len() == 0:
			t.Errorf("%q: status %d, %q", args, status, &stderr)
		}
	})
}

// TestDocs parses the command lines in the documentation.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 3 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md") {
		text := read(t, page)
		if strings.HasSuffix(page, "plan.md") {
			text = strings.Replace(text, "perseus plan F.json WISH [--margin", "# [--margin", 1)
		}
		checkExamples(t, strings.ReplaceAll(text, "`perseus ", "\nperseus "))
	}
}

// TestQuickstart runs the commands of the quickstart's first two parts, and compares
// what it shows of their output.
func TestQuickstart(t *testing.T) {
	page, _, _ := strings.Cut(read(t, "../../docs/quickstart.md"), "\n## 3.")
	_, page, _ = strings.Cut(page, "\n## 1.")
	t.Chdir(t.TempDir())
	var block, output string
	commands, shown := 0, 0
	for line := range strings.Lines(page + "\n") {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			block += code
			continue
		}
		command, isCommand := strings.CutPrefix(strings.TrimSpace(block), "perseus ")
		switch {
		case block == "":
		case isCommand:
			args := strings.Fields(command)
			r := must(t, args...)
			output = r.stdout + r.stderr
			if last := args[len(args)-1]; args[len(args)-2] == "-o" {
				output += read(t, last)
			}
			commands++
		default:
			if !strings.Contains(output, block) {
				t.Errorf("the page shows\n%sbut it is\n%.1500s", block, output)
			}
			shown++
		}
		block = ""
	}
	if commands < 4 || shown < 2 {
		t.Errorf("only %d commands and %d outputs", commands, shown)
	}
}
