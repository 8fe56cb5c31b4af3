package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFamiliar takes what people try first.
func TestFamiliar(t *testing.T) {
	version := must(t, "version").stdout
	for _, test := range [][2]string{{"--version", version}, {"-V", version}, {"help", must(t, "--help").stdout}, {"help plan", must(t, "plan", "--help").stdout}, {"help schedules show", must(t, "schedules", "show", "--help").stdout}} {
		if got := must(t, strings.Fields(test[0])...).stdout; got != test[1] {
			t.Errorf("%s prints\n%s", test[0], got)
		}
	}
	for _, args := range []string{"frontier mine.csv", "verify F.json mine.csv", "show F.json mine.csv", "report F.json mine.csv"} {
		if r := perseus(t, "", strings.Fields(args)...); r.status != statusBadInput || !strings.Contains(r.stderr, "a profile is given as in --profile mine.csv\n") {
			t.Errorf("%s: %+v", args, r)
		}
	}
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60")
	if a, b := must(t, "plan", file, "--least-energy"), must(t, "plan", file, "--min-energy"); a != b {
		t.Errorf("%+v, %+v", a, b)
	}
	must(t, "simulate", file, "--least-energy")
	for _, args := range [][]string{
		{"plan", file, "--fastest"},
		{"show", file},
		{"simulate", file},
		{"compare", file, "-p", profile},
		{"schedules", "list"},
		{"schedules", "show", "1f1b"},
		{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60"},
		{"schedules", "savings", "-p", profile, "--blocking-power", "60"},
	} {
		short, long := must(t, append(args, "--json")...), must(t, append(args, "--format", "json")...)
		if short != long || !json.Valid([]byte(short.stdout)) {
			t.Errorf("%q: %.200q with --json, %.200q with --format json", args, short.stdout, long.stdout)
		}
	}
	if r := perseus(t, "", "plan", file, "--fastest", "--json", "--format", "csv"); r.status != statusBadInput {
		t.Errorf("%+v", r)
	}
}

// TestShow has the text say that plans can be better, and JSON which time is relaxed.
func TestShow(t *testing.T) {
	file, _ := frontierOf(t, "-p", smallProfile(t, 2, false), "--schedule", "1f1b", "-m", "2", "--blocking-power", "60")
	if text := must(t, "show", file).stdout; !strings.Contains(text, "perseus plan refines") {
		t.Error(text)
	}
	if text := must(t, "show", file, "--json").stdout; !strings.Contains(text, `"least_energy_time_s"`) {
		t.Error(text)
	}
	help := must(t, "show", "--help").stdout
	for _, word := range []string{"Clocks for:", "Price of time:", "Above the bound:"} {
		if !strings.Contains(strings.Join(strings.Fields(help), " "), word) {
			t.Errorf("the help does not explain %s", word)
		}
	}
}
