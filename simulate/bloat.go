package simulate

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// Causes is where a pipeline's energy in an iteration goes, and how much of it is
// bloat, by the package comment's definitions.
type Causes struct {
	// Compute, Fixed and Blocking add up to Total.
	Compute, Fixed, Blocking, Total unit.Energy128
	// Needed, Intrinsic and Extrinsic add up to Total as well.
	Needed, Intrinsic, Extrinsic unit.Energy128
}

// Causes returns where the energy of a pipeline goes in an iteration whose
// pipelines take the time done, the optimizer not counted. The bounds E(t) are
// those of the ops as measured: with noise, latency or a slowdown, intrinsic
// bloat also holds what these cost, and may be below zero where ops were lucky.
// It costs one walk of the frontier to the pipeline's own time.
func (t *Timeline) Causes(done unit.Time) (c Causes, err error) {
	sum := t.Sum()
	c.Compute, c.Fixed, c.Blocking, c.Total = sum.Compute, sum.FixedEnergy, sum.Blocking, sum.Energy()
	p := t.Schedule.Problem
	least := p.Graph.Starts(make([]unit.Time, p.Graph.Ops), func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
	own, all := max(t.Time, least), max(done, least)
	var bounds [2]unit.Energy128
	i := 0
	for s, err := range frontier.Times(p, []unit.Time{all, own}) {
		if err != nil {
			return c, err
		}
		bounds[i] = boundAt(p, s, [2]unit.Time{all, own}[i])
		i++
	}
	c.Extrinsic = bounds[1].Sub(bounds[0])
	// Needed is the bound at the job's time, waiting included, and the fixed work.
	c.Needed = c.Fixed.Add(bounds[0])
	for r, blocking := range t.Schedule.Blocking {
		c.Needed = c.Needed.Add(unit.Product(blocking, done-fixedWithin(t, r, done)))
	}
	c.Intrinsic = c.Total.Sub(c.Needed).Sub(c.Extrinsic)
	return c, nil
}

// fixedWithin returns the fixed work of a rank before a time, without the
// optimizer's.
func fixedWithin(t *Timeline, rank int, done unit.Time) unit.Time {
	u := &t.Ranks[rank]
	return done - u.Busy - u.Blocked
}

// boundAt returns the least Σe' with makespan at most t that the solution's flow
// proves.
func boundAt(p *dag.Problem, s *frontier.Solution, t unit.Time) unit.Energy128 {
	flow := s.Flow
	if flow == nil { // no op has a choice
		flow = make([]unit.Power, len(p.Graph.Arcs))
	}
	base, price := p.Bound(flow)
	return base.Sub(unit.Product(price, t))
}
