package baseline

import (
	"cmp"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Plan is what this Perseus plans for a time: the relaxed optimum at that very
// time, rounded to clocks.
type Plan struct {
	// Limit is the time that was asked for, Time the plan's own.
	Limit, Time       unit.Time
	Energy, Effective unit.Energy128
	// Bound is an energy below which no schedule of makespan Time can stay.
	Bound  unit.Energy128
	Effort round.Effort
	Choice []int32
}

// Gap returns how far Energy is above Bound at most, as a fraction.
func (p *Plan) Gap() float64 {
	if p.Bound.Sign() <= 0 {
		return 0
	}
	return p.Energy.Sub(p.Bound).Joules() / p.Bound.Joules()
}

// Optimal says that no schedule of the plan's time uses less energy, to the
// nanojoule.
func (p *Plan) Optimal() bool {
	v, ok := p.Energy.Sub(p.Bound).Nanojoules(unit.Up)
	return ok && v <= 1
}

// Waiting returns the plan's energy where it waits until a later time for a
// straggler.
func (p *Plan) Waiting(pipe *simulate.Pipeline, until unit.Time) unit.Energy128 {
	return p.Effective.Add(unit.Product(pipe.Problem.BlockingPower, max(until, p.Time)))
}

// PlansAt returns a plan for each of the given times, none of them less than the
// least one: the least Σe' with a makespan of at most that. It walks the frontier
// once.
func PlansAt(p *dag.Problem, times []unit.Time, e round.Effort) ([]Plan, error) {
	falling := make([]int, len(times))
	for i := range falling {
		falling[i] = i
	}
	slices.SortStableFunc(falling, func(a, b int) int { return cmp.Compare(times[b], times[a]) })
	at := make([]unit.Time, len(times))
	for i, k := range falling {
		at[i] = times[k]
	}
	plans := make([]Plan, len(times))
	start := make([]unit.Time, p.Graph.Ops)
	rounder := round.NewRounder(p)
	i := 0
	for s, err := range frontier.Times(p, at) {
		if err != nil {
			return nil, err
		}
		v := &plans[falling[i]]
		v.Limit, v.Effort = at[i], e
		if s.Flow == nil { // no op has a choice
			s.Flow, v.Choice = make([]unit.Power, len(p.Graph.Arcs)), make([]int32, p.Graph.Ops)
		} else {
			v.Choice = rounder.Round(s, e, nil)
		}
		cost := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Options[v.Choice[op]] })
		v.Time, v.Energy, v.Effective = cost.Time, cost.Energy, cost.Effective
		base, price := p.Bound(s.Flow)
		v.Bound = base.Sub(unit.Product(price, v.Time)).Add(unit.Product(p.BlockingPower, v.Time))
		i++
	}
	return plans, nil
}

// landmarks returns the time of the least total energy of a problem, and the least
// time.
func landmarks(p *simulate.Pipeline) (least, fastest unit.Time) {
	g := p.Problem.Graph
	fastest = g.Starts(make([]unit.Time, g.Ops), func(op int32) unit.Time { return p.Problem.Curve(op).Fastest().Time })
	for s := range frontier.Solve(p.Problem) {
		if s.Price > p.Problem.BlockingPower {
			return s.Slow, fastest
		}
	}
	return fastest, fastest
}

// equalTime makes plans for the times of baselines.
type equalTime struct {
	p *simulate.Pipeline
	// least is the time of the least energy: what is asked beyond gets the plan for
	// it.
	least unit.Time
	made  map[unit.Time]Plan
}

// plans makes the plan of each time, at an effort, in one walk.
func (e *equalTime) plans(times []unit.Time, effort round.Effort) error {
	var anew []unit.Time
	for _, t := range times {
		t = min(t, e.least)
		if _, ok := e.made[t]; !ok && !slices.Contains(anew, t) {
			anew = append(anew, t)
		}
	}
	made, err := PlansAt(e.p.Problem, anew, effort)
	for i := range made {
		e.made[anew[i]] = made[i]
	}
	return err
}

// plan returns the plan of least total energy with an iteration of at most t.
// Where it uses more than a baseline does, more work is spent on it, up to the
// best effort.
func (e *equalTime) plan(t unit.Time, theirs unit.Energy128) (*Plan, error) {
	t = min(t, e.least)
	for {
		v := e.made[t]
		if v.Energy.Cmp(theirs) <= 0 || v.Effort == round.Best {
			return &v, nil
		}
		more, err := PlansAt(e.p.Problem, []unit.Time{t}, v.Effort+1)
		if err != nil {
			return nil, err
		}
		if more[0].Energy.Cmp(v.Energy) > 0 {
			v.Effort = more[0].Effort
			more[0] = v
		}
		e.made[t] = more[0]
	}
}
