package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
)

// BenchmarkProcess times whole processes of the command, from reading their
// input to their end.
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	perseus := filepath.Join(dir, "perseus")
	if out, err := exec.Command("go", "build", "-o", perseus, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	profile := shareddata.Shared(b, "data", "profiles", "gpt3-175b-a100-sxm.csv")
	run := func(name string, args ...string) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command(perseus, args...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
	for _, microbatches := range []int{12, 96, 512} {
		file := filepath.Join(dir, fmt.Sprintf("F%d.json", microbatches))
		size := fmt.Sprintf("8x%d", microbatches)
		run("frontier/"+size, "frontier", "--profile", profile, "--schedule", "1f1b",
			"--microbatches", fmt.Sprint(microbatches), "--blocking-power", "83.64", "-q", "-o", file)
		run("verify/"+size, "verify", file, "--profile", profile)
		run("plan-fast/"+size, "plan", file, "--fastest", "--effort", "fast", "-o", filepath.Join(dir, "plan.csv"))
		if microbatches < 512 {
			run("plan/"+size, "plan", file, "--fastest", "-o", filepath.Join(dir, "plan.csv"))
		}
	}
}
