package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// Watching ends when enough was seen, else after longest, or on a node that is too busy to look often after atMost.
// Reading more often would cost training that runs meanwhile.
const (
	longest    = time.Second
	atMost     = 4 * longest
	readEvery  = 2 * time.Millisecond
	clockEvery = 10 // readings of the counter
	enough     = 6  // steps of the counter
)

// seen is what watching a GPU gave.
type seen struct {
	samples   []Sample
	steps     []step
	scope     gpu.Scope
	energyErr error
	watched   time.Duration
}

// step is a move of the energy counter, at when it was first seen.
type step struct {
	at   time.Time
	rise unit.Energy
}

// Sample is a clock and why it is no higher.
type Sample struct {
	MHz int
	gpu.Throttle
}

// watch reads counter and clock for a while. It fails only if ctx ends.
func watch(ctx context.Context, c *Config, d gpu.Device) (seen, error) {
	var s seen
	start := c.Now()
	last, err := d.Energy()
	s.scope, s.energyErr = last.Scope, err
	blind := false // the clock or what holds it down cannot be read
	for i := 0; ; i++ {
		if i%clockEvery == 0 && !blind {
			sample, err := look(d)
			if blind = err != nil; !blind {
				s.samples = append(s.samples, sample)
			}
		}
		s.watched = c.Now().Sub(start)
		looked := blind || len(s.samples) >= enoughSamples
		if looked && (len(s.steps) >= enough || s.watched >= longest) || s.watched >= atMost {
			return s, nil
		}
		if err := c.Wait(ctx, readEvery); err != nil {
			return s, err
		}
		if s.energyErr != nil {
			continue
		}
		now, err := d.Energy()
		if err != nil {
			s.energyErr = err
			continue
		}
		if rise := now.Energy - last.Energy; rise != 0 {
			s.steps = append(s.steps, step{now.At, rise})
			last = now
		}
	}
}

// look takes one sample.
func look(d gpu.Device) (Sample, error) {
	mhz, err := d.Clock()
	if err != nil {
		return Sample{}, err
	}
	t, err := d.Throttle()
	return Sample{mhz, t}, err
}

// Counter is how an energy counter moves.
type Counter struct {
	// Period is the median time between two steps, Step the median rise. A Period of 2 ms is the shortest seen.
	Period unit.Time   `json:"period_s"`
	Step   unit.Energy `json:"step_j"`
	Scope  gpu.Scope   `json:"scope"`
}

// counter judges the energy counter.
func (g *GPU) counter(s seen) {
	switch {
	case s.energyErr != nil:
		return // calls has it, unless it began to fail in between: the next run will
	case len(s.steps) < 3:
		g.add("energy counter", Missing, fmt.Sprintf("the counter moved %d times in %v", len(s.steps), s.watched.Round(time.Millisecond)),
			"this GPU or driver does not count energy fast enough, so ops cannot be measured here: measure the profile on another GPU of the model")
		return
	}
	var periods []unit.Time
	var rises []unit.Energy
	for i, now := range s.steps[1:] {
		periods = append(periods, unit.Time(now.at.Sub(s.steps[i].at)))
		rises = append(rises, now.rise)
	}
	g.Counter = &Counter{Period: median(periods), Step: median(rises), Scope: s.scope}
	// A window is off by up to one period at an edge that is not aligned to a step.
	period := time.Duration(g.Counter.Period)
	g.add("energy counter", OK, fmt.Sprintf("moves every %v, by some %.3g J now; to be right to 1 %% a measurement takes %v",
		period.Round(time.Millisecond), g.Counter.Step.Joules(), (100*period).Round(100*time.Millisecond)), "")
	if s.scope == gpu.ScopeModule {
		g.add("energy scope", Note, "the counter covers the whole module, with the processor and its memory: savings are shown smaller than the GPU's",
			"keep the processor's load alike between measurements; reports say that the energy is the module's")
	}
}

func median[T unit.Time | unit.Energy](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}
