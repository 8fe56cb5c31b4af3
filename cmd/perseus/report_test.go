package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
)

// TestReport writes all that a report has.
func TestReport(t *testing.T) {
	f, p := exampleFiles(t)
	folder := t.TempDir()
	page, trace := filepath.Join(folder, "report.html"), filepath.Join(folder, "trace.json.gz")
	pictures := filepath.Join(folder, "pictures")
	must(t, "report", f, "-p", p, "--price", "0.12", "--currency", "€", "--carbon", "380", "--pue", "1.2", "--gpus", "512",
		"--straggler", "1.2", "--published", "-o", page, "--svg", pictures, "--png", pictures, "--scale", "1", "--trace", trace)
	text := read(t, page)
	for _, want := range []string{"€", "380 g", "512 GPUs", "While it waits for a straggler", "perseus-published", "41 clocks"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, name := range []string{"frontier.svg", "frontier.png", "timeline-before.svg", "timeline-before.png", "timeline-after.svg", "timeline-after.png"} {
		if info, err := os.Stat(filepath.Join(pictures, name)); err != nil || info.Size() < 2000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if out := must(t, "report", f).stdout; !strings.HasPrefix(out, "<!doctype html>") || !strings.Contains(out, "Without the profile") {
		t.Error("no page on standard output")
	}
	if out := must(t, "report", f, "--trace", "-").stdout; !strings.HasPrefix(out, `{"displayTimeUnit"`) {
		t.Error("no trace on standard output")
	}
}

// TestReportOfAny makes reports of jobs that are no plain pipelines.
func TestReportOfAny(t *testing.T) {
	profile := smallProfile(t, 4, true)
	graph, _ := frontierOf(t, "--dag", writeFile(t, "G.json", strings.Replace(graphText, `{"time_s": 0.031,`, `{"clock_mhz": 9, "time_s": 0.031,`, 1)))
	split, _ := frontierOf(t, "-p", profile, "--schedule", "zb-h1", "-m", "6", "--blocking-power", "84", "--p2p-latency", "1ms")
	for _, f := range []string{graph, split} {
		for _, goal := range []string{"--fastest", "--min-energy", "--straggler=1.3"} {
			page := must(t, "report", f, goal).stdout
			for _, bad := range []string{"NaN", "Inf ", "ZgotmplZ", "<no value>"} {
				if strings.Contains(page, bad) {
					t.Errorf("%s %s: the page has %q", f, goal, bad)
				}
			}
		}
		must(t, "report", f, "--trace", "-")
	}
}

// TestReportSize: the page of 8 ranks and 96 microbatches stays small.
func TestReportSize(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	const most = 3 << 20
	p := shareddata.Shared(t, "data", "profiles", "gpt3-175b-a100-sxm.csv")
	f := filepath.Join(t.TempDir(), "F.json")
	must(t, "frontier", "-q", "-p", p, "--schedule", "1f1b", "-m", "96", "--blocking-power", "83.64", "-o", f)
	if n := len(must(t, "report", f, "-p", p).stdout); n > most {
		t.Errorf("%d bytes, want at most %d", n, most)
	}
}

// TestBadReport holds what is said where a report is asked for that cannot be.
func TestBadReport(t *testing.T) {
	f, _ := exampleFiles(t)
	other := smallProfile(t, 8, false)
	for args, want := range map[string]string{
		"nowhere.json":                "nowhere.json: no such file",
		f + " --price 0,12":           "expected a number for a kilowatt-hour as in 0.12",
		f + " --price=-1":             "it is below 0",
		f + " --carbon much":          "--carbon",
		f + " --pue 0.9":              "--pue 0.9: expected 1 … 10",
		f + " --gpus 0x":              "--gpus",
		f + " --gpus=-5":              "--gpus -5: at least 1",
		f + " --scale 9":              "--scale 9: expected 1 … 8",
		f + " --straggler 0.9":        "--straggler 0.9",
		f + " --profile " + other:     "computed from another profile",
		f + " --fastest --time 2s":    "can't be used together",
		f + " -o " + t.TempDir():      "is a folder",
		f + " --trace nowhere/t.json": "nowhere",
	} {
		r := perseus(t, "", append([]string{"report"}, strings.Fields(args)...)...)
		if r.status != statusBadInput || !strings.HasPrefix(r.stderr, "perseus: ") || !strings.Contains(r.stderr, want) {
			t.Errorf("perseus report %s: status %d, %q; want %q", args, r.status, r.stderr, want)
		}
	}
}
