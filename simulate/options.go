package simulate

import (
	"fmt"

	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Member is one pipeline of a data-parallel job, or several equal ones.
type Member struct {
	Schedule *Schedule
	// Copies is how many pipelines run like this, with the same noise and the same
	// slowdowns; 0 means 1.
	Copies int
}

// Options say under what conditions a job runs. The zero value is the world as
// planned.
type Options struct {
	// P2P is how much later an op of another rank can start than what it waits for
	// ends.
	P2P unit.Time
	// Noise is the standard deviation of op times, up to MaxNoise, as a share.
	// Every op of every iteration draws anew. The same Seed gives the same times.
	Noise plan.Ratio
	Seed  uint64
	// Load is what each forward of the first stage takes before it starts, to fetch
	// its data, and Optimizer what each rank takes when all pipelines are done.
	Load, Optimizer unit.Time
	// FixedPower is what one GPU draws meanwhile; nil means as much as it draws
	// waiting.
	FixedPower *unit.Power
	// Blocking is what one GPU draws while it waits.
	Blocking PowerTable
	// Switch is how long clock switches take.
	Switch SwitchTable
	// Slow slows ranks down, in the order of time. Pipelines are the job's members.
	Slow []Slowdown
	// Until keeps the iteration open until then: the time of a straggler that is
	// not simulated.
	Until unit.Time
}

// Check returns an error that names the option which is out of range, for a job
// whose pipelines have the given numbers of ranks.
func (o *Options) Check(ranks []int) error {
	if err := o.check(); err != nil {
		return err
	}
	_, err := newRates(o.Slow, ranks)
	return err
}

func (o *Options) check() error {
	for _, t := range []struct {
		name string
		time unit.Time
	}{{"p2p latency", o.P2P}, {"data loading time", o.Load}, {"optimizer time", o.Optimizer}} {
		if t.time < 0 || t.time > unit.MaxOpTime {
			return fmt.Errorf("%s %v: expected 0s … %v", t.name, t.time, unit.MaxOpTime)
		}
	}
	switch {
	case o.Until < 0 || o.Until > unit.MaxMakespan:
		return fmt.Errorf("straggler time %v: expected 0s … %v", o.Until, unit.MaxMakespan)
	case o.Noise < 0 || o.Noise > MaxNoise:
		return fmt.Errorf("noise %s: expected 0%% … %s", o.Noise.Percent(), MaxNoise.Percent())
	case o.FixedPower != nil && (*o.FixedPower < 0 || *o.FixedPower > unit.MaxPower):
		return fmt.Errorf("fixed power %v: expected 0W … %v", *o.FixedPower, unit.MaxPower)
	}
	return nil
}
