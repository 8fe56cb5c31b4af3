package main

import (
	"strings"
	"testing"
)

// TestDoctor: exit status and what is said, on emulated GPUs, on none, and with flags that make no sense.
func TestDoctor(t *testing.T) {
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"--emulated", "2"}, statusDone, "Perseus can work here.", ""},
		{[]string{"--library", "/does/not/exist.so"}, statusFailed, "perseus doctor --emulated 2", "something is missing here"},
		{[]string{"--emulated", "65"}, statusBadInput, "", "--emulated 65: expected 1 to 64"},
		{[]string{"--emulated", "1", "--library", "x"}, statusBadInput, "", "exclude each other"},
		{[]string{"--emulated", "x"}, statusBadInput, "", "--emulated"},
		{[]string{"--nothing"}, statusBadInput, "", "--nothing"},
	} {
		r := perseus(t, "", append([]string{"doctor"}, c.args...)...)
		if r.status != c.status || !strings.Contains(r.stdout, c.stdout) || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%q: status %d\n%s\n%s", c.args, r.status, r.stdout, r.stderr)
		}
	}
}
