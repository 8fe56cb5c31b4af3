package main

import (
	"strings"
	"testing"
)

// TestFlagsInErrors has errors of the library say which flags help.
func TestFlagsInErrors(t *testing.T) {
	frontier, _ := exampleFiles(t)
	header := "stage,instruction,frequency,time,energy\n"
	for _, test := range []struct {
		name, stdin, args, want string
	}{
		{"a bad row", header + "0,forward,1410,0.05,nan\n", "frontier -p - -m 1", "--skip-bad-rows leaves such rows out"},
		{"the unit of a value", header + "0,forward,1410,0.05s,23\n", "frontier -p - -m 1", "give its unit with --units"},
		{"the unit of a column", header + "0,forward,1410,50,23.8\n0,backward,1410,90,44\n", "frontier -p - -m 1", "say what the units are with --units"},
		{"both units", header + "0,forward,1410,50,23800\n", "frontier -p - -m 1", "--units time=ms,energy=mJ"},
		{"a request", "", "plan " + frontier + " --straggler 0.9", "perseus: --straggler 0.9: expected"},
		{"an effort", "", "plan " + frontier + " --fastest --margin 1% --effort fast", "perseus: --effort fast: "},
		{"per GPU", "", "plan " + frontier + " --fastest --effort fast --per-gpu", "degrees of parallelism: --tp, --cp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := perseus(t, test.stdin, append(strings.Fields(test.args), strings.Fields(map[bool]string{true: "--blocking-power 84"}[test.stdin != ""])...)...)
			if r.status != statusBadInput || !strings.Contains(r.stderr, test.want) || strings.Contains(r.stderr, "Options.") {
				t.Errorf("%d %s, want %s", r.status, r.stderr, test.want)
			}
		})
	}
}
