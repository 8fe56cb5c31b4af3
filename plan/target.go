package plan

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// target is the point of the relaxed frontier that a request comes down to.
type target struct {
	time unit.Time
	// limit is the makespan that the plan must keep to: time, or more where the
	// least Σe' or the least energy comes sooner.
	limit    unit.Time
	feasible bool
	note     string
}

// curve is a problem's relaxed frontier as its solver walks it.
type curve struct {
	p    *dag.Problem
	tMin unit.Time
	tMax unit.Time
	// slowest is the least Σe' of all, at tMax and later.
	slowest unit.Energy128
}

func newCurve(p *dag.Problem) *curve {
	c := &curve{p: p}
	start := make([]unit.Time, p.Graph.Ops)
	c.tMin = p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
	cost := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Slowest() })
	c.tMax, c.slowest = cost.Time, cost.Effective
	return c
}

// leastEnergy returns the time of the least total energy: the slow end of the
// first segment, from t_max down, whose price is over what the GPUs draw while
// they wait. Of several such times it is the fastest.
func (c *curve) leastEnergy() unit.Time {
	for s := range frontier.Solve(c.p) {
		if s.Price > c.p.BlockingPower {
			return s.Slow
		}
	}
	return c.tMin
}

// averagePower returns the least time at which the relaxed energy over the time
// is at most budget. Where there is none, ok is false and the time is that of
// the least average power, the fastest one of several.
//
// Σe' ≤ (budget − blocking)·T bounds a convex function by a linear one, so the
// times that keep to the budget are one interval. Along a segment of price λ,
// Σe' = a − λT, and the average a/T − λ + blocking moves one way only: the least
// is at a breakpoint.
func (c *curve) averagePower(budget unit.Power) (t unit.Time, ok bool) {
	surplus := budget - c.p.BlockingPower // what may be used beyond waiting
	within := func(effective unit.Energy128, t unit.Time) bool {
		return effective.Cmp(unit.Product(surplus, t)) <= 0
	}
	t, ok = c.tMax, within(c.slowest, c.tMax)
	least, rising := c.tMax, false
	effective := c.slowest
	for s := range frontier.Solve(c.p) {
		fast := effective.Add(unit.Product(s.Price, s.Slow-s.Fast))
		// With a = Σe' + λT: below 0 the average falls as T falls.
		a := effective.Add(unit.Product(s.Price, s.Slow))
		rising = rising || a.Sign() > 0
		if !rising {
			least = s.Fast
		}
		switch {
		case within(fast, s.Fast):
			t, ok = s.Fast, true
		case ok || within(effective, s.Slow):
			// The budget is crossed here: a ≤ (surplus + λ)·T, and the factor is
			// positive, because otherwise the faster end would keep to it as well.
			v, fits := a.DivInt(int64(surplus+s.Price), unit.Up)
			if !fits {
				return s.Slow, true
			}
			return min(max(unit.Time(v), s.Fast), s.Slow), true
		case rising:
			return least, false
		}
		effective = fast
	}
	if !ok {
		return least, false
	}
	return t, true
}
