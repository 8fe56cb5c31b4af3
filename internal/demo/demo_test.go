package demo_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perseus-energy/perseus/internal/demo"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// small returns a demo that takes seconds.
func small() demo.Config {
	return demo.Config{
		Stages: 4, Pipelines: 2, Microbatches: 6, Blocking: 84 * unit.Watt, Latency: 5 * time.Millisecond,
		CounterStep: 200 * time.Microsecond, Listen: "127.0.0.1:0", Limit: 5 * time.Minute,
	}
}

// begun is a view that waits for a line.
type begun struct {
	testing.TB
	line string
	f    func()
}

func (b begun) Status(string) {}

func (b begun) Line(text string) {
	b.Log(text)
	if b.line != "" && strings.Contains(text, b.line) {
		b.f()
	}
}

// check fails the test unless r is whole and all its checks hold.
func check(t *testing.T, r *demo.Result) {
	t.Helper()
	if err := r.Err(); err != nil || len(r.Checks) < 5 {
		t.Errorf("%v: %+v", err, r)
	}
	if r.Saving <= 0 || r.Simulated <= 0 || r.Straggler <= 0 || !r.Restored {
		t.Errorf("%+v", r)
	}
}

// TestDemo runs the whole demo with the real server and agents, on GPUs that a profile drives.
func TestDemo(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := small()
	c.Profile = profile.Synthetic(profile.SyntheticConfig{Stages: 3, MinMHz: 900, StepMHz: 60, Noise: -1})
	c.Stages = c.Profile.Stages()
	told := 0
	r, err := demo.Run(t.Context(), c, begun{TB: t}, func(*demo.Result) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	check(t, r)
	if told != 1 || r.Frontier <= 0 {
		t.Errorf("told %d times: %+v", told, r)
	}
}

// TestInterrupted ends a demo in the midst of profiling, and one that is kept: nothing is left behind.
func TestInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := func(keep bool, line string) (r *demo.Result, told int, err error) {
		defer goleak.VerifyNone(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := small()
		c.Keep = keep
		r, err = demo.Run(ctx, c, begun{t, line, cancel}, func(*demo.Result) { told++ })
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		return r, told, err
	}
	if r, _, err := run(false, "profiling"); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %+v", err, r)
	}
	r, told, err := run(true, "trains on")
	if err != nil || told != 1 {
		t.Fatal(err, told)
	}
	check(t, r)
}

func TestFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	c := small()
	c.Limit = time.Millisecond
	if _, err := demo.Run(t.Context(), c, begun{TB: t}, nil); err == nil || !strings.Contains(err.Error(), "did not come to its end within 1ms") {
		t.Error(err)
	}
	c = small()
	c.Listen = "127.0.0.1:99999"
	if _, err := demo.Run(t.Context(), c, begun{TB: t}, nil); err == nil || !strings.Contains(err.Error(), "the server's address") {
		t.Error(err)
	}
	c = small()
	c.Latency = -time.Millisecond
	if _, err := demo.Run(t.Context(), c, begun{TB: t}, nil); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Error(err)
	}
}
