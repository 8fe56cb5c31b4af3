package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoRefuses has flags that contradict each other end before anything is started. Package demo has the rest.
func TestDemoRefuses(t *testing.T) {
	p := filepath.Join(t.TempDir(), "P.csv")
	text := "stage,instruction,frequency,time,energy\n"
	for _, stage := range []string{"0", "1"} {
		text += stage + ",forward,1410,0.05,20\n" + stage + ",backward,1410,0.1,40\n"
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"--stages 3 --profile " + p, "--stages is 3, but the profile has 2"},
		{"--speed=-1", "must not be negative"},
		{"--pipelines 1", "--pipelines"},
		{"--profile " + p + ".gone", "P.csv.gone"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"demo"}, strings.Fields(tt.args)...), nil, &out, &errs)
		if status != statusBadInput || !strings.Contains(errs.String(), tt.want) || out.Len() > 0 {
			t.Errorf("%s: status %d, %s%s", tt.args, status, out.String(), errs.String())
		}
	}
}
