package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/unit"
)

// leastEffective returns the least relaxed Σe' with makespan at most t, by the
// reference solver.
func leastEffective(p *dag.Problem, t unit.Time) unit.Energy128 {
	base, price := p.Bound(reference.Solve(p, t).Flow)
	return base.Sub(unit.Product(price, t))
}

// TestTargets compares the times that the goals come down to with the optima of
// the reference solver at those times and at others.
func TestTargets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := quick(t, drawFrontier(t))
		p := n.problem
		c := newCurve(p)
		if c.tMin != n.file.Header.TMin || c.tMax != n.file.Header.TMax {
			t.Fatalf("from %v to %v, the file says %v to %v", c.tMin, c.tMax, n.file.Header.TMin, n.file.Header.TMax)
		}
		least := c.leastEnergy()
		if least != n.file.Header.LeastEnergyTime {
			t.Errorf("least energy at %v, the file says %v", least, n.file.Header.LeastEnergyTime)
		}
		near := rapid.SampledFrom(n.file.Points).Draw(t, "point")
		draws := unit.Power(float64(near.Energy) / float64(near.Time) * 1e6)
		budget := max(1, draws+unit.Power(rapid.Int64Range(-20, 20).Draw(t, "off"))*unit.Watt/2)
		at, ok := c.averagePower(budget)
		if at < c.tMin || at > c.tMax {
			t.Fatalf("budget %v at %v, outside %v … %v", budget, at, c.tMin, c.tMax)
		}
		// Costs compare up to the rounding of slopes to microwatts.
		slack := unit.Product(2*unit.Microwatt, c.tMax)
		for range p.Graph.Ops {
			slack = slack.Add(unit.Product(unit.Microwatt, c.tMax))
		}
		over := func(t unit.Time) unit.Energy128 { // what is used beyond the budget
			return leastEffective(p, t).Sub(unit.Product(budget-p.BlockingPower, t))
		}
		if beyond := over(at); ok && beyond.Cmp(slack) > 0 {
			t.Errorf("budget %v is not kept at %v: %v J over", budget, at, beyond.Joules())
		}
		other := unit.Time(rapid.Int64Range(int64(c.tMin), int64(c.tMax)).Draw(t, "other"))
		total := func(t unit.Time) unit.Energy128 {
			return leastEffective(p, t).Add(unit.Product(p.BlockingPower, t))
		}
		if total(other).Add(slack).Cmp(total(least)) < 0 {
			t.Errorf("less energy at %v than at %v", other, least)
		}
		// total(at)/at ≤ total(other)/other, with a microwatt to spare, in floats:
		// powers of kilowatts have many digits left.
		average := func(t unit.Time) float64 { return total(t).Joules() / t.Seconds() }
		if !ok && average(at) > average(other)+1e-5*(1+float64(p.Graph.Ops)) {
			t.Errorf("%v W at %v, but %v W at %v", average(at), at, average(other), other)
		}
		switch beyond := over(other); {
		case !ok && beyond.Add(slack).Sign() < 0:
			t.Errorf("budget %v is kept at %v", budget, other)
		case ok && other < at && beyond.Add(slack).Sign() < 0:
			t.Errorf("budget %v is kept at %v, before %v", budget, other, at)
		}
	})
}

func TestTimes(t *testing.T) {
	if got := times(3*One/2, 3); got != 4 { // 4.5: never later than asked
		t.Errorf("1.5 of 3 ns is %v", got)
	}
	if got := times(1<<62, unit.MaxMakespan); got != unit.MaxMakespan {
		t.Errorf("the greatest ratio of the greatest time is %v", got)
	}
}
