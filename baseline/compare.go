package baseline

import (
	"fmt"
	"math"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Comparison sets the methods side by side, on one pipeline.
type Comparison struct {
	Frontier *frontierfile.File
	Pipeline *simulate.Pipeline
	// Pipelines is how many run data-parallel.
	Pipelines int
	// Max is the cost with all ops at their top clocks: what savings and
	// slowdowns are against.
	Max dag.Cost
	// Lines has a line for each baseline, Own the plans of this Perseus that need
	// no baseline's time: the fastest one and that of least energy.
	Lines []Line
	Own   []Line
	// Noise has the effect of noise, if asked for.
	Noise []Noisy
	// Published are the published figures of the workload, if there are any.
	Published *Figures
}

// Line is a method's result, and this Perseus at the same time.
type Line struct {
	Result
	// Saving and Slowdown are against maximum clocks, as fractions.
	Saving, Slowdown float64
	// Ours is this Perseus' plan with an iteration at most as long.
	Ours *Plan
	// OursSaving is its saving.
	OursSaving float64
	// Worse says that ours uses more energy than the baseline at its time: a fault
	// of ours.
	Worse bool
	// Known is the published saving in percent that the line should reproduce, 0
	// where there is none, and PlannedSaving what the method itself expects.
	Known, PlannedSaving float64
}

// Reproduced says that the method's own expectation is the published figure, to
// within 0.3 points.
func (l *Line) Reproduced() bool { return math.Abs(100*l.PlannedSaving-l.Known) <= reproduced }

// CompareOptions say what to compare.
type CompareOptions struct {
	Effort    round.Effort
	Pipelines int
	// Tau is the unit of time of published Perseus; 0 means TauOf.
	Tau unit.Time
	// Noise is the standard deviation of op times, 0 for none, and Margins those to
	// plan with. Seed and Iterations say how to draw.
	Noise      plan.Ratio
	Margins    []plan.Ratio
	Seed       uint64
	Iterations int
}

// Compare plans a frontier's job by all methods, and by this Perseus at the time
// of each. p is the frontier's pipeline, with the measurements if they are at
// hand. It costs All and a plan for each of the baselines' times. The effort is
// where they start: a plan that is no better than its baseline is made again with
// more.
func Compare(f *frontierfile.File, p *simulate.Pipeline, o CompareOptions) (*Comparison, error) {
	c := &Comparison{Frontier: f, Pipeline: p, Pipelines: max(o.Pipelines, 1), Max: p.MaxClocks().Cost()}
	var err error
	figures, known := FiguresOf(f.Header.Profile.SHA256, "")
	known = known && p.Order.Schedule == "1f1b" && p.Ranks() == 8 && p.Problem.Graph.Ops == 2*8*p.Order.Size.Microbatches
	if known {
		c.Published = &figures
	}
	if o.Tau == 0 {
		o.Tau = TauOf(known)
	}
	results := All(p, o.Tau)
	least, fastest := landmarks(p)
	at := &equalTime{p: p, least: least, made: map[unit.Time]Plan{}}
	times := []unit.Time{fastest, least}
	for _, r := range results {
		if r.Schedule != nil {
			times = append(times, r.Cost.Time)
		}
	}
	if err := at.plans(times, o.Effort); err != nil {
		return nil, err
	}
	for i, name := range []string{"fastest", "least energy"} {
		made := at.made[times[i]]
		l := c.line(result(Ours, name, p.Choice("", made.Choice)))
		l.Ours, l.OursSaving = &made, l.Saving
		c.Own = append(c.Own, l)
	}
	for _, r := range results {
		l := c.line(r)
		if r.Schedule != nil {
			if l.Ours, err = at.plan(r.Cost.Time, r.Cost.Energy); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.Method, r.Setting, err)
			}
			l.OursSaving = saving(l.Ours.Energy, c.Max.Energy)
			l.Worse = l.Ours.Energy.Cmp(r.Cost.Energy) > 0
			if known && r.Method == Published && r.Planned > 0 && c.Lines[len(c.Lines)-1].Method != Published {
				l.Known = figures.Intrinsic[p.Order.Size.Microbatches]
			}
		}
		c.Lines = append(c.Lines, l)
	}
	if o.Noise > 0 {
		c.Noise, err = noise(f, p, o)
	}
	return c, err
}

// Ours is the name of this Perseus among the methods.
const Ours Method = "perseus"

func (c *Comparison) line(r Result) Line {
	l := Line{Result: r}
	if r.Schedule != nil {
		l.Saving = saving(r.Cost.Energy, c.Max.Energy)
		l.Slowdown = r.Cost.Time.Seconds()/c.Max.Time.Seconds() - 1
		if r.Planned > 0 {
			l.PlannedSaving = 1 - r.Planned/c.Max.Energy.Joules()
		}
	}
	return l
}

func saving(e, of unit.Energy128) float64 { return of.Sub(e).Joules() / of.Joules() }

// Noisy is how noise slows a plan down.
type Noisy struct {
	Name   string
	Margin plan.Ratio
	// Planned is the time without noise, Mean the mean time with it.
	Planned, Mean unit.Time
	// Slowdown is Mean against maximum clocks under the same noise, as a fraction,
	// and Saving that of the mean energy.
	Slowdown, Saving float64
}

// noise runs maximum clocks and the fastest plan with each margin under noise: op
// for op the same draws.
func noise(f *frontierfile.File, p *simulate.Pipeline, o CompareOptions) ([]Noisy, error) {
	planner, err := plan.New(f)
	if err != nil {
		return nil, err
	}
	var all []Noisy
	var base meanCost
	run := func(name string, margin plan.Ratio, s *simulate.Schedule) error {
		m, err := meanOf(s, o)
		if err != nil {
			return err
		}
		if all == nil {
			base = m
		}
		all = append(all, Noisy{
			Name: name, Margin: margin, Planned: s.Cost().Time, Mean: m.time,
			Slowdown: m.time.Seconds()/base.time.Seconds() - 1, Saving: saving(m.energy, base.energy),
		})
		return nil
	}
	if err := run("max clocks", 0, p.MaxClocks()); err != nil {
		return nil, err
	}
	for _, margin := range append([]plan.Ratio{0}, o.Margins...) {
		r := plan.Request{Goal: plan.Fastest, Margin: margin, Effort: o.Effort}
		if margin > 0 {
			r.Effort = max(r.Effort, round.Normal)
		}
		made, err := planner.Make(r)
		if err != nil {
			return nil, err
		}
		s, err := p.Plan(made)
		if err != nil {
			return nil, err
		}
		if err := run("perseus, fastest", margin, s); err != nil {
			return nil, err
		}
	}
	return all, nil
}

type meanCost struct {
	time   unit.Time
	energy unit.Energy128 // of all iterations
}

func meanOf(s *simulate.Schedule, o CompareOptions) (m meanCost, err error) {
	n := max(o.Iterations, 1)
	sim, err := simulate.NewSimulator([]simulate.Member{{Schedule: s}}, simulate.Options{Noise: o.Noise, Seed: o.Seed})
	if err != nil {
		return m, err
	}
	for range n {
		i := sim.Next()
		m.time += i.Time
		m.energy = m.energy.Add(i.Energy())
	}
	m.time /= unit.Time(n)
	return m, nil
}
