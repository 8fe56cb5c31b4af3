package reference_test

import (
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func problem(t *rapid.T, maxOps, maxOptions int) *dag.Problem {
	ops := rapid.IntRange(1, maxOps).Draw(t, "ops")
	var arcs []dag.Arc
	for to := range int32(ops) {
		for from := range to {
			if rapid.IntRange(0, 2).Draw(t, "arc") == 0 {
				arcs = append(arcs, dag.Arc{From: from, To: to})
			}
		}
	}
	g, err := dag.NewGraph(ops, arcs)
	if err != nil {
		t.Fatal(err)
	}
	var curves []dag.Curve
	var of []int32
	for op := range int32(ops) {
		var options []dag.Option
		for i := range rapid.IntRange(1, maxOptions).Draw(t, "options") {
			options = append(options, dag.Option{
				Knobs:  dag.Knobs{ClockMHz: int32(i)},
				Time:   unit.Time(rapid.Int64Range(0, 50).Draw(t, "time")) * unit.Microsecond,
				Energy: unit.Energy(rapid.Int64Range(-20, 100).Draw(t, "energy")) * unit.Joule / 1000,
			})
		}
		c, err := dag.NewCurve(options, 300*unit.Watt)
		if err != nil {
			t.Fatal(err)
		}
		curves, of = append(curves, c), append(of, op)
	}
	p, err := dag.NewProblem(g, curves, of, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// relaxedCost returns Σe' on the hulls at the given durations, in joules.
func relaxedCost(p *dag.Problem, duration []unit.Time) float64 {
	var sum float64
	for op, d := range duration {
		c := p.Curve(int32(op))
		k := 0
		for k+1 < len(c.Hull) && c.Vertex(k+1).Time >= d {
			k++
		}
		slow := c.Vertex(k)
		sum += slow.Effective.Joules()
		if k+1 < len(c.Hull) {
			fast := c.Vertex(k + 1)
			share := float64(slow.Time-d) / float64(slow.Time-fast.Time)
			sum += share * (fast.Effective - slow.Effective).Joules()
		}
	}
	return sum
}

// TestSolveProvesItself checks that the schedule keeps the time, that the flow is
// one, and that the schedule costs what the flow's certificate says is the least.
func TestSolveProvesItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 12, 6)
		g := p.Graph
		start := make([]unit.Time, g.Ops)
		least := g.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
		most := g.Starts(start, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
		asked := unit.Time(rapid.Int64Range(int64(least), int64(most)).Draw(t, "asked"))
		r := reference.Solve(p, asked)
		// Events between two breakpoints are rounded to a nanosecond.
		if span := g.Starts(start, func(op int32) unit.Time { return r.Duration[op] }); span > asked+unit.Time(g.Ops) {
			t.Fatalf("makespan %v > %v", span, asked)
		}
		for op := range int32(g.Ops) {
			var in, out unit.Power
			for _, a := range g.In(op) {
				in += r.Flow[a]
			}
			for _, a := range g.Out(op) {
				out += r.Flow[a]
			}
			if in != out {
				t.Fatalf("op %d: flow in %v, out %v", op, in, out)
			}
		}
		base, price := p.Bound(r.Flow)
		if price != r.Price {
			t.Fatalf("flow of value %v, price %v", price, r.Price)
		}
		bound := base.Sub(unit.Product(price, asked)).Joules()
		cost := relaxedCost(p, r.Duration)
		// Rounding of a nanosecond an op at up to 2000 W, and of slopes to 1 µW.
		if tolerance := 1e-4; cost < bound-tolerance || cost > bound+tolerance {
			t.Fatalf("the schedule costs %.9f J, the certificate says %.9f J", cost, bound)
		}
	})
}

func TestBestIsAboveTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t, 5, 4)
		start := make([]unit.Time, p.Graph.Ops)
		least := p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
		most := p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
		if _, _, ok := reference.Best(p, least-1); ok {
			t.Fatal("a schedule faster than the fastest")
		}
		asked := unit.Time(rapid.Int64Range(int64(least), int64(most)).Draw(t, "asked"))
		_, best, ok := reference.Best(p, asked)
		r := reference.Solve(p, asked)
		base, price := p.Bound(r.Flow)
		if !ok || best.Cmp(base.Sub(unit.Product(price, asked))) < 0 {
			t.Fatalf("best %v (%v) below the bound", best, ok)
		}
		if asked == most {
			var slowest unit.Energy128
			for op := range int32(p.Graph.Ops) {
				slowest = slowest.Add(p.Curve(op).Slowest().Effective.Widen())
			}
			if best != slowest {
				t.Fatalf("best at t_max is %v instead of %v", best, slowest)
			}
		}
	})
}
