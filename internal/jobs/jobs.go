// Package jobs puts a profile and a pipeline together as people name them: a
// schedule for the stages that were measured, and the power of one waiting GPU.
//
// It is what the commands know that packages profile and pipeline, which do not
// know each other, cannot. It comes before package characterize, which computes,
// and is not for computing.
package jobs

import (
	"errors"
	"fmt"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// Order returns the order of the named schedule for a model of the given number
// of stages. Where size has no ranks there are as many as hold the stages, and
// where it has ranks and no chunks each rank holds as many as there are, if the
// schedule takes several. It fails where the schedule has no such size, or another
// number of stages then.
func Order(schedule string, size pipeline.Size, stages int) (*pipeline.Order, error) {
	s, err := pipeline.Find(schedule)
	if err != nil {
		return nil, err
	}
	if several := s.Placement == pipeline.Loop && s.Example.Chunks > 1; several && size.Ranks > 0 && size.Chunks == 0 && stages%size.Ranks == 0 {
		size.Chunks = stages / size.Ranks
	}
	if size.Ranks == 0 {
		each := s.Example.Chunks // stages a rank
		switch {
		case s.Placement == pipeline.Bidirectional: // each stage is on two ranks
			each = 1
		case size.Chunks > 0:
			each = size.Chunks
		}
		if stages%each != 0 {
			return nil, fmt.Errorf("%s: the profile's %d stages do not divide among ranks of %d each; %s", s.Name, stages, each, whatStagesAre)
		}
		size.Ranks = stages / each
	}
	o, err := pipeline.Build(schedule, size)
	if err != nil {
		return nil, err
	}
	if o.Stages != stages {
		return nil, fmt.Errorf("%s on %s with %s each has %d stages, but the profile has %d; %s%s",
			s.Name, count(o.Size.Ranks, "rank"), count(o.Size.Chunks, "chunk"), o.Stages, stages, whatStagesAre, waysOut(o, stages))
	}
	return o, nil
}

// whatStagesAre ends messages about stages that do not fit.
const whatStagesAre = "a stage is a part of the model that runs as one forward and one backward, and there are ranks × chunks of them"

// waysOut says what to do where a profile has another number of stages than an
// order of several ranks.
func waysOut(o *pipeline.Order, stages int) string {
	ways := fmt.Sprintf(": measure %d stages, each chunk by itself", o.Stages)
	if o.Size.Chunks == 1 {
		ways = fmt.Sprintf(": measure %d stages", o.Stages)
	}
	if o.Placement != pipeline.Bidirectional && stages%o.Size.Chunks == 0 && stages/o.Size.Chunks > 0 {
		ways += fmt.Sprintf(", or give --ranks %d", stages/o.Size.Chunks)
	}
	if o.Placement == pipeline.Loop && o.Size.Chunks > 1 && stages%o.Size.Ranks == 0 && stages >= o.Size.Ranks {
		if chunks := stages / o.Size.Ranks; chunks > 1 {
			ways += fmt.Sprintf(", or --chunks %d", chunks)
		} else {
			ways += ", or take a schedule of one chunk a rank, such as 1f1b"
		}
	}
	return ways
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// New returns the job of running a profile's stages in an order. blocking is
// what one GPU draws while it waits: one value for all, or one for each rank.
func New(p *profile.Profile, o *pipeline.Order, blocking []unit.Power) (characterize.Job, error) {
	return newJob(p, o, blocking, p.GPUsPerStage)
}

// newJob is New for gpus GPUs a rank: those of the profile, or as many like the
// profile's one.
func newJob(p *profile.Profile, o *pipeline.Order, blocking []unit.Power, gpus int) (characterize.Job, error) {
	ranks := len(o.Ranks)
	switch {
	case o.Stages != p.Stages():
		return characterize.Job{}, fmt.Errorf("the order has %d stages, but the profile has %d", o.Stages, p.Stages())
	case len(blocking) == 0:
		return characterize.Job{}, errors.New("the power of a waiting GPU is missing")
	case len(blocking) > 1 && len(blocking) != ranks:
		return characterize.Job{}, fmt.Errorf("%d blocking powers for %d ranks: give one for all, or one for each rank", len(blocking), ranks)
	}
	most := unit.MaxPower / unit.Power(ranks*gpus)
	for _, b := range blocking {
		if b < 0 || b > most {
			return characterize.Job{}, fmt.Errorf("blocking power %v of a GPU: expected 0W to %v", b, most)
		}
	}
	job := characterize.NewJob(p, o, blocking[0])
	if gpus != p.GPUsPerStage {
		job.Measurements, job.GPUsPerRank = characterize.Alike(p, gpus), gpus
	}
	for rank := range job.BlockingPower {
		job.BlockingPower[rank] = blocking[min(rank, len(blocking)-1)] * unit.Power(gpus)
	}
	return job, nil
}

// Example is what perseus --example stands for.
type Example struct {
	Schedule string
	Size     pipeline.Size
	Blocking []unit.Power
}

// WithDefaults returns e with what it lacks: GPUs that wait at 84 W and, where
// scheduled, 1F1B with 12 microbatches.
func (e Example) WithDefaults(scheduled bool) Example {
	if len(e.Blocking) == 0 {
		e.Blocking = []unit.Power{84 * unit.Watt}
	}
	if scheduled && e.Schedule == "" {
		e.Schedule = "1f1b"
	}
	if scheduled && e.Size.Microbatches == 0 {
		e.Size.Microbatches = 12
	}
	return e
}

// ExampleProfile returns the profile of the example: 8 stages of a synthetic
// model, each op measured three times at each clock.
func ExampleProfile() *profile.Profile {
	return profile.Synthetic(profile.SyntheticConfig{Stages: 8, Repeats: 3})
}
