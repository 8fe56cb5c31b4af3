package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestLarge has jobs that are too large for all points refused, with the way out, and
// large ones announced before the work begins.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	profile := smallProfile(t, 2, false)
	common := []string{"-p", profile, "--blocking-power", "60"}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"frontier", "--schedule", "1f1b", "-m", "1000000"}, "the job has 4000000 ops; all points of a frontier are computed for up to 1048576: give --points"},
		{[]string{"frontier", "--schedule", "1f1b", "-m", "262145"}, "the job has 1048580 ops"},
		{[]string{"compare", "-m", "1000000"}, "take fewer --microbatches"},
		{[]string{"schedules", "savings", "-m", "1000000"}, "take fewer --microbatches"},
	} {
		r := perseus(t, "", append(test.args, common...)...)
		if r.status != statusBadInput || !strings.Contains(r.stderr, test.want) {
			t.Errorf("%q: status %d, %s; want %q", test.args, r.status, r.stderr, test.want)
		}
	}
	for _, test := range []struct {
		args string
		want bool
	}{
		{"-m 8193", true},
		{"-m 8192", false},
		{"-m 8193 -q", false},
		{"-m 262145 --points 3", true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the line comes first, and the work is not needed
		var stdout, stderr bytes.Buffer
		w := &world{ctx: ctx, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}
		var c commands
		parsed, _ := w.parse(append(append([]string{"frontier", "--schedule", "1f1b"}, strings.Fields(test.args)...), common...), &c)
		if parsed == nil {
			t.Fatal(&stderr)
		}
		if err := parsed.Run(w); err == nil {
			t.Errorf("%s: ran to the end", test.args)
		}
		if got := strings.Contains(stderr.String(), "ops, which takes a while; Ctrl-C ends it"); got != test.want {
			t.Errorf("%s: said so: %v; %s", test.args, got, &stderr)
		}
	}
}
