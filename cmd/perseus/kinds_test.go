package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongKinds gives each command a file of another kind, and has it say which.
func TestWrongKinds(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60", "--tp", "2", "--dp", "1")
	dir := t.TempDir()
	made := func(name string, args ...string) string {
		path := filepath.Join(dir, name)
		must(t, append(args, "-o", path)...)
		return path
	}
	planCSV := made("plan.csv", "plan", file, "--fastest")
	planJSON := made("plan.json", "plan", file, "--fastest", "--format", "json")
	gpus := made("gpus.csv", "plan", file, "--fastest", "--per-gpu")
	zeus := made("zeus.py", "plan", file, "--fastest", "--format", "zeus")
	gpuZeus := made("gpus.py", "plan", file, "--fastest", "--format", "zeus", "--per-gpu")
	points := made("points.csv", "show", file, "--format", "csv")
	savings := made("savings.json", "show", file, "--format", "json")
	svg := made("f.svg", "show", file, "--format", "svg")
	timeline := made("t.csv", "simulate", file, "--format", "csv")
	text := read(t, file)
	other := smallProfile(t, 3, false)

	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"show", profile}, "seems to be a profile (CSV); expected a frontier"},
		{[]string{"show", planCSV}, "seems to be a plan (CSV); expected a frontier"},
		{[]string{"plan", planJSON, "--fastest"}, "seems to be a plan (JSON); expected a frontier"},
		{[]string{"verify", savings, "-p", profile}, "seems to be the savings of a frontier"},
		{[]string{"simulate", points}, "seems to be the points of a frontier"},
		{[]string{"compare", svg}, "seems to be a picture (SVG)"},
		{[]string{"show", timeline}, "seems to be the timeline of a simulation"},
		{[]string{"frontier", "-p", file}, "seems to be a frontier (JSON); expected a profile"},
		{[]string{"frontier", "-p", planCSV}, "seems to be a plan (CSV); expected a profile"},
		{[]string{"compare", "-p", svg, "-m", "2", "--blocking-power", "60"}, "seems to be a picture (SVG); expected a profile"},
		{[]string{"simulate", file, "--plan", gpus}, "cannot be replayed"},
		{[]string{"simulate", file, "--plan", zeus}, "cannot be replayed"},
		{[]string{"simulate", file, "--plan", gpuZeus}, "cannot be replayed"},
		{[]string{"simulate", file, "--plan", profile}, "seems to be a profile (CSV); expected a plan"},
		{[]string{"simulate", file, "--plan", file}, "seems to be a frontier (JSON); expected a plan"},
		{[]string{"verify", file, "-p", other}, "this is not the profile that the frontier was computed from"},
	} {
		if r := perseus(t, "", test.args...); r.status == statusDone || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%q: %+v; want %q", test.args, r, test.want)
		}
	}
	for _, at := range []int{len(text) / 2, len(text) / 3, len(text)/3 + 1, len(text)/3 + 2, len(text) - 2} {
		if r := perseus(t, text[:at], "show", "-"); r.status != statusBadInput || !strings.Contains(r.stderr, "is truncated") {
			t.Errorf("cut at %d: %s", at, r.stderr)
		}
	}
	must(t, "simulate", file, "--plan", planCSV)
	must(t, "simulate", file, "--plan", planJSON)
}
