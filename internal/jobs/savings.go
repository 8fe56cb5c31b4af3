package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

// ScheduleSavings is what can be saved with one schedule.
type ScheduleSavings struct {
	Schedule string
	Chunks   int
	// Inference says that there is no backward.
	Inference bool
	// Idle is the share of the ranks' time in which they wait, all ops at their top
	// clocks.
	Idle float64
	// Header has the landmarks.
	Header *frontierfile.Header
	// Fastest, LeastEnergy and Straggler are what is saved at unchanged time, at the
	// least energy, and while a pipeline waits for one that is 1.2 times slower.
	Fastest, LeastEnergy, Straggler report.Saving
}

// Savings returns what can be saved with each schedule, of the same model on the
// same GPUs: so many ranks, or with 0 half as many as the profile has stages, each of
// which runs its neighbouring stages as one, or, where the schedule has chunks, as
// that many. What
// the profile lacks is derived by the given rules, and by the presets of package
// derive where they say nothing. blocking is what
// one GPU draws while it waits. It fails where the profile's stages do not
// divide among the ranks, and as characterize.Run does. A schedule that has no such size is left
// out.
func Savings(ctx context.Context, p *profile.Profile, microbatches int, blocking unit.Power, ranks int, given []derive.Rule) ([]ScheduleSavings, error) {
	switch {
	case ranks == 0 && p.Stages()%2 != 0:
		return nil, fmt.Errorf("the profile has %d stages; for two on each rank their number must be even", p.Stages())
	case ranks == 0:
		ranks = p.Stages() / 2
	case ranks < 0 || p.Stages()%ranks != 0:
		return nil, fmt.Errorf("the profile's %d stages do not divide among %d ranks", p.Stages(), ranks)
	}
	most := unit.MaxPower / unit.Power(p.Stages()*p.GPUsPerStage)
	if blocking < 0 || blocking > most {
		return nil, fmt.Errorf("blocking power %v of a GPU: expected 0W to %v", blocking, most)
	}
	presets, err := derive.Parse("split-backward,recompute,overlap")
	if err != nil {
		return nil, err
	}
	rules := slices.Clone(given)
	for _, r := range presets {
		if derive.Find(given, r.Instruction, -1) == nil {
			rules = append(rules, renamed(r, given))
		}
	}
	var all []ScheduleSavings
	for _, s := range pipeline.Schedules() {
		size := pipeline.Size{Ranks: ranks, Chunks: s.Example.Chunks, Microbatches: microbatches}
		o, err := pipeline.Build(s.Name, size)
		if err != nil || o.Stages > p.Stages() || p.Stages()%o.Stages != 0 {
			continue // no such size
		}
		j := characterize.Job{
			Measurements: joined{p, p.Stages() / o.Stages}, Order: o, GPUsPerRank: p.GPUsPerStage,
			BlockingPower: slices.Repeat([]unit.Power{blocking * unit.Power(p.GPUsPerStage)}, len(o.Ranks)),
		}
		for _, r := range rules {
			if slices.Contains(o.Instructions(), r.Instruction) && !slices.Contains(p.Instructions(), r.Instruction) {
				j.Terms.Derived = append(j.Terms.Derived, r.String())
			}
		}
		f, err := characterize.Run(ctx, j, characterize.Options{})
		var lacking *characterize.MissingError
		switch {
		case errors.As(err, &lacking):
			return nil, fmt.Errorf("%s: %w; %s", s.Name, err, byRule(lacking.Instruction, p.Instructions()))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		rows, err := report.Savings(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		v := ScheduleSavings{Schedule: s.Name, Chunks: o.Size.Chunks, Header: &f.Header, Fastest: rows[0], LeastEnergy: rows[1]}
		v.Inference = !slices.ContainsFunc(o.Instructions(), func(name string) bool {
			return name == pipeline.Backward.Instruction() || name == pipeline.InputGrad.Instruction() || name == pipeline.Overlap.Instruction()
		})
		for _, r := range rows {
			if r.Straggler.String() == "1.2" {
				v.Straggler = r
			}
		}
		if v.Idle, err = idle(&f.Header); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// renamed returns a rule with the terms that others rename in the words of those:
// rules do not build on each other.
func renamed(r derive.Rule, given []derive.Rule) derive.Rule {
	r.Terms = slices.Clone(r.Terms)
	for i, t := range r.Terms {
		if g := derive.Find(given, t.Instruction, -1); g != nil && len(g.Terms) == 1 && g.Terms[0].Factor == unit.One {
			r.Terms[i].Instruction = g.Terms[0].Instruction
		}
	}
	return r
}

// idle returns the share of time in which ranks wait at top clocks.
func idle(h *frontierfile.Header) (float64, error) {
	problem, _, err := characterize.Problem(h)
	if err != nil {
		return 0, err
	}
	busy := unit.Time(0)
	for op := range int32(problem.Graph.Ops) {
		busy += problem.Curve(op).Top.Time
	}
	return 1 - busy.Seconds()/(float64(h.Ranks)*h.MaxClockTime.Seconds()), nil
}

// joined is a profile of whose stages each few neighbours are one: its time and
// energy are their sums, at the clocks that all of them have.
type joined struct {
	*profile.Profile
	each int
}

func (j joined) Stages() int { return j.Profile.Stages() / j.each }

func (j joined) Options(stage int, instruction string) (sum []dag.Option, err error) {
	for i := range j.each {
		options, err := j.Profile.Options(stage*j.each+i, instruction)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			sum = options
			continue
		}
		var both []dag.Option
		for _, o := range options {
			k, found := slices.BinarySearchFunc(sum, o, func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
			if found {
				o.Time, o.Energy = o.Time+sum[k].Time, o.Energy+sum[k].Energy
				both = append(both, o)
			}
		}
		sum = both
	}
	return sum, nil
}
