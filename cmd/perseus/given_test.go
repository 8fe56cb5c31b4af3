package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputIsInput has each command refuse to write over what it reads, or twice to
// one file, and leave it as it was.
func TestOutputIsInput(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60")
	plan := filepath.Join(t.TempDir(), "plan.csv")
	must(t, "plan", file, "--fastest", "--effort", "fast", "-o", plan)
	factors := writeFile(t, "f.csv", "microbatch,time_factor,energy_factor\n0,1,1\n1,1,1\n")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Symlink(file, at("F")), os.Symlink(profile, at("P")), os.Symlink(plan, at("plan")), os.Symlink(file, at("frontier.svg"))); err != nil {
		t.Skip(err)
	}
	before := map[string]string{}
	for _, path := range []string{profile, file, plan, factors} {
		before[path] = read(t, path)
	}
	const input, output = "is the input", "is the output"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60", "-o", at("P")}, input},
		{[]string{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60", "--microbatch-factors", factors, "-o", factors}, input},
		{[]string{"frontier", "--example", "-o", at("new"), "--write-profile", at("new")}, output},
		{[]string{"frontier", "--example", "--write-profile", "-"}, "cannot both be standard output"},
		{[]string{"show", file, "-o", at("F")}, input},
		{[]string{"show", at("F"), "--profile", profile, "-o", profile}, input},
		{[]string{"plan", file, "--fastest", "-o", file}, input},
		{[]string{"simulate", file, "--plan", plan, "-o", at("plan")}, input},
		{[]string{"simulate", file, "--trace", plan, "-o", plan}, input},
		{[]string{"compare", file, "-o", at("F")}, input},
		{[]string{"compare", "--paper", filepath.Dir(profile), "-o", profile}, input},
		{[]string{"report", file, "-o", at("F")}, input},
		{[]string{"report", file, "--trace", file}, input},
		{[]string{"report", file, "-o", at("new"), "--trace", at("./new")}, output},
		{[]string{"report", file, "-o", "-", "--trace", "-"}, "cannot both be standard output"},
		{[]string{"report", file, "--svg", dir}, input},
		{[]string{"report", file, "--png", dir, "-o", at("frontier.png")}, output},
		{[]string{"show", file, "--cpuprofile", file}, input},
		{[]string{"simulate", "-", "--plan", "-"}, "cannot both be standard input"},
		{[]string{"plan", file, "--fastest", "-o", ""}, "--output is empty"},
		{[]string{"frontier", "--example", "-o", ""}, "--output is empty"},
		{[]string{"report", file, "--svg", ""}, "--svg is empty"},
		{[]string{"show", ""}, "is empty"},
		{[]string{"frontier", "-p", ""}, "--profile is empty"},
	} {
		if r := perseus(t, "", test.args...); r.status != statusBadInput || !strings.Contains(r.stderr, test.want) || r.stdout != "" {
			t.Errorf("%q: status %d, %s; want %q", test.args, r.status, r.stderr, test.want)
		}
	}
	for path, text := range before {
		if read(t, path) != text {
			t.Errorf("%s was changed", path)
		}
	}
	must(t, "show", file, "-o", os.DevNull)
}

// TestOutputsAreTagged has each flag that is called as outputs are, or says that it
// writes, known as one.
func TestOutputsAreTagged(t *testing.T) {
	for _, n := range nodes(t) {
		for _, f := range n.Flags {
			help := strings.ToLower(f.Help)
			writes := f.Name == "output" || strings.Contains(help, "write ") && f.Tag.Has("file")
			if writes && !f.Tag.Has("output") {
				t.Errorf("%s --%s has no tag output", n.FullPath(), f.Name)
			}
		}
	}
}

// full fails as a disk without room does, after some bytes.
type full struct{ left int }

var errFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestFullOutput has no command whose output is lost, in part or all, end as if it
// had been written.
func TestFullOutput(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60")
	lines := [][]string{
		{"version"},
		{"completion", "bash"},
		{"schedules"},
		{"schedules", "list", "--json"},
		{"schedules", "show", "1f1b"},
		{"schedules", "show", "1f1b", "--format", "csv"},
		{"schedules", "show", "1f1b", "--format", "json"},
		{"schedules", "dag-schema"},
		{"schedules", "savings", "-p", profile, "--blocking-power", "60", "-m", "2"},
		{"schedules", "savings", "-p", profile, "--blocking-power", "60", "-m", "2", "--format", "markdown"},
		{"verify", file, "-p", profile},
		{"show", file},
		{"plan", file, "--fastest", "--effort", "fast"},
		{"simulate", file, "--max-clocks"},
		{"compare", file},
		{"report", file},
		{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60"},
	}
	for _, n := range nodes(t) {
		lines = append(lines, append(path(n), "--help"))
	}
	for _, args := range lines {
		whole := must(t, args...).stdout
		for _, room := range []int{0, len(whole) - 1} {
			var stderr bytes.Buffer
			status := run(t.Context(), args, strings.NewReader(""), &full{room}, &stderr)
			if status != statusFailed || !strings.Contains(stderr.String(), errFull.Error()) {
				t.Errorf("%q with room for %d of %d bytes: status %d, %s", args, room, len(whole), status, &stderr)
			}
		}
		var stderr bytes.Buffer
		if status := run(t.Context(), args, strings.NewReader(""), io.Writer(&full{len(whole)}), &stderr); status != statusDone {
			t.Errorf("%q with room for all: status %d, %s", args, status, &stderr)
		}
	}
}

// TestZerosAndLists holds what is said of numbers and lists that are nearly right.
func TestZerosAndLists(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"frontier --example -m 0", "--microbatches 0: at least 1 is needed"},
		{"frontier --example --points 0", "--points 0: at least 3 are needed"},
		{"frontier --example --points 2", "--points 2: at least 3 are needed"},
		{"frontier --example --group 0", "--group 0: at least 1 is needed"},
		{"frontier --example --chunks 0", "--chunks 0"},
		{"frontier --example --ranks 0", "--ranks 0"},
		{"frontier --example --tp 0", "--tp 0"},
		{"frontier --example --world-size 0", "--world-size 0"},
		{"compare -p P.csv -m 0", "--microbatches 0"},
		{"compare -p P.csv --dp=-1", "--dp -1"},
		{"schedules savings --example -m 0", "--microbatches 0"},
		{"schedules savings --example --ranks 0", "--ranks 0"},
		{"schedules show 1f1b --group 0", "--group 0"},
		{"frontier --example --blocking-power 84,", "empty item"},
		{"frontier --example --blocking-power ,84", "empty item"},
		{"simulate F.json --clocks 1410,", "empty item"},
		{"simulate F.json --clocks 1410,x", `"x" is no clock`},
		{"simulate F.json --slow 0=1.2,", "empty item"},
		{"report F.json --gpus 0", "--gpus 0: at least 1 is needed"},
		{"report F.json --pue 0", "--pue 0: expected 1 … 10"},
		{"simulate F.json --clocks 0", `"0" is no clock`},
		{"compare F.json --noise 1% --margin 1%,", "empty item"},
		{"frontier --example --units time=ms,", "--units"},
		{"frontier --example --fixed load=5ms,", "--fixed"},
		{"frontier --example --derive recompute,", "--derive"},
		{"frontier --example --derive foo=backward", `"foo" is no instruction of a schedule`},
		{"frontier --example --microbatch-factors 1,", "--microbatch-factors"},
		{"frontier --example --microbatch-factors 1:nan,1", `"1:nan": factor`},
		{"frontier --example --microbatch-factors 1,two", `"two": factor`},
		{"frontier --example --microbatch-factors missing.csv", "missing.csv: no such file"},
	} {
		r := perseus(t, "", strings.Fields(test.args)...)
		if r.status != statusBadInput || !strings.Contains(r.stderr, test.want) || r.stdout != "" {
			t.Errorf("perseus %s: status %d, %q; want %q", test.args, r.status, r.stderr, test.want)
		}
	}
}

// TestOtherProfile has each command that takes the profile of a frontier refuse
// another one, with repeats or without.
func TestOtherProfile(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60")
	other := writeFile(t, "other.csv", read(t, profile)+"\n")
	graph := filepath.Join(t.TempDir(), "graph.json")
	must(t, "frontier", "--dag", writeFile(t, "G.json", `{"format":"perseus-dag/1","ops":[{"name":"a","time_s":1}]}`), "-o", graph)
	for _, command := range []string{"show", "report", "simulate", "compare", "verify"} {
		if r := perseus(t, "", command, file, "--profile", other); r.status == statusDone || !strings.Contains(r.stderr, "computed from") || r.stdout != "" {
			t.Errorf("%s with another profile: %+.300v", command, r)
		}
		if r := perseus(t, "", command, graph, "--profile", profile); r.status == statusDone || r.stdout != "" {
			t.Errorf("%s of a graph with a profile: %+.300v", command, r)
		}
		must(t, command, file, "--profile", profile)
	}
}
