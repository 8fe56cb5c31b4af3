package trial_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/trial"
)

const ms = time.Millisecond

// run runs iterations of a second that drift, with noise, in which a needless call costs so much.
func run(t *testing.T, seed uint64, cost, noise time.Duration, broken int64) *trial.Trial {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var tr trial.Trial
	needless := 0
	for i := range int64(80) {
		planned := i >= 7
		took := time.Second + time.Duration(i)*ms/10 + time.Duration(random.NormFloat64()*float64(noise))
		if tr.Begin(i, planned) {
			needless++
			for range 20 {
				tr.Called()
				took += cost
			}
		}
		tr.End(i, took, i != broken)
	}
	if !tr.Over() || needless != 20 {
		t.Fatalf("over: %t, after needless calls in %d iterations", tr.Over(), needless)
	}
	return &tr
}

func TestCost(t *testing.T) {
	for _, noise := range []time.Duration{0, ms, 5 * ms} {
		false95 := 0
		for seed := range uint64(200) {
			if got := run(t, seed, 2*ms, noise, -1).Cost(); got < 3*ms/2 || got > 5*ms/2 {
				t.Errorf("noise %v, seed %d: a call costs %v, want 2 ms", noise, seed, got)
			}
			if got := run(t, seed, 0, noise, -1).Cost(); got != 0 {
				false95++
			}
		}
		if false95 > 12 {
			t.Errorf("noise %v: %d of 200 trials found a cost where there is none", noise, false95)
		}
	}
	if got := run(t, 1, 30*time.Microsecond, 0, -1).Cost(); got != 0 {
		t.Errorf("%v, although it is less than a thousandth", got)
	}
	if got := run(t, 1, 2*ms, 0, 20).Cost(); got != 0 {
		t.Errorf("%v, although an iteration went otherwise", got)
	}
	var none trial.Trial
	if none.Cost() != 0 || none.Over() || none.Begin(3, false) {
		t.Error("a trial that has not begun")
	}
}

func TestHold(t *testing.T) {
	for _, c := range []struct{ latency, cost, want time.Duration }{
		{0, 0, 0}, {60 * ms, 0, 78 * ms}, {10 * ms, 20 * time.Microsecond, 13 * ms}, {10 * ms, ms, 500 * ms},
	} {
		if got := trial.Hold(c.latency, c.cost); got != c.want {
			t.Errorf("latency %v, cost %v: %v, want %v", c.latency, c.cost, got, c.want)
		}
	}
}
