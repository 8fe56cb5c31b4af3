package frontier_test

import (
	"math"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

const watt = unit.Watt

// TestMeasuredProfiles compares the frontier of the published profiles with
// figures of an independent LP solver (HiGHS), and proves each segment by its
// certificate.
func TestMeasuredProfiles(t *testing.T) {
	cases := []struct {
		profile      string
		blocking     unit.Power
		microbatches int
		tMin, tMax   unit.Time
		// bounds are pairs of time and total energy in joules.
		bounds   [][2]float64
		segments int
	}{
		{"gpt3-175b-a100-sxm.csv", 83_640_000, 12, 2836511000, 4244164000, [][2]float64{{2.836511, 6160.4}, {2.9, 5922.051}, {3.1, 5628.303}, {4.244164, 6050.534}}, 536},
		{"gpt3-175b-a100-sxm.csv", 83_640_000, 96, 15679429000, 23462091000, [][2]float64{{23.462091, 41384.388}}, 621},
		{"bloom-176b-a40.csv", 70_380_000, 96, 38971661000, 0, nil, 519},
	}
	for _, c := range cases {
		p := measured(t, c.profile, c.blocking, c.microbatches)
		var s frontier.Solution
		n := 0
		var tMin, tMax unit.Time
		for segment := range frontier.Solve(p) {
			if n == 0 {
				tMax = segment.Slow
			}
			n++
			tMin = segment.Fast
			segment.Solution(&s)
			prove(t, p, &s)
		}
		t.Log(c.profile, c.microbatches, n, tMin, tMax)
		if math.Abs((tMin - c.tMin).Seconds()) > 2e-6 {
			t.Errorf("%s M=%d: t_min %v, want %v", c.profile, c.microbatches, tMin, c.tMin)
		}
		if c.tMax != 0 && math.Abs((tMax-c.tMax).Seconds()) > 2e-6 {
			t.Errorf("%s M=%d: t_max %v, want %v", c.profile, c.microbatches, tMax, c.tMax)
		}
		for _, b := range c.bounds {
			at := max(tMin, unit.Time(b[0]*1e9))
			s, err := frontier.At(p, at)
			if err != nil {
				t.Fatal(err)
			}
			bound := prove(t, p, s) + p.BlockingPower.Watts()*at.Seconds()
			t.Log(at, bound, b[1])
			if math.Abs(bound/b[1]-1) > 1e-5 {
				t.Errorf("%s M=%d: bound at %v is %.4f J, want %.4f J", c.profile, c.microbatches, at, bound, b[1])
			}
		}
	}
}

// prove checks that a solution is feasible, its flow conserved, and that the
// two prove each other optimal; it returns the relaxed Σe' in joules.
func prove(t testing.TB, p *dag.Problem, s *frontier.Solution) float64 {
	t.Helper()
	g := p.Graph
	relaxed := 0.0
	for op := range int32(g.Ops) {
		c := p.Curve(op)
		d := s.Duration[op]
		if d < c.Fastest().Time || d > c.Slowest().Time {
			t.Fatalf("op %d takes %v, outside its curve", op, d)
		}
		if end := s.Start[op] + d; s.Start[op] < 0 || end > s.Time {
			t.Fatalf("op %d runs %v … %v, outside 0 … %v", op, s.Start[op], end, s.Time)
		}
		relaxed += relaxedCost(c, d)
		var in, out unit.Power
		for _, a := range g.In(op) {
			in += s.Flow[a]
		}
		for _, a := range g.Out(op) {
			out += s.Flow[a]
		}
		if in != out {
			t.Fatalf("op %d: flow in %v, out %v", op, in, out)
		}
	}
	for i, a := range g.Arcs {
		if s.Flow[i] < 0 {
			t.Fatalf("arc %d carries %v", i, s.Flow[i])
		}
		if a.From >= 0 && a.To >= 0 && s.Start[a.From]+s.Duration[a.From] > s.Start[a.To] {
			t.Fatalf("op %d starts before op %d ends", a.To, a.From)
		}
	}
	base, price := p.Bound(s.Flow)
	if price != s.Price {
		t.Fatalf("flow of value %v at price %v", price, s.Price)
	}
	bound := base.Sub(unit.Product(price, s.Time)).Joules()
	if gap := relaxed - bound; math.Abs(gap) > rounding(p)+1e-12*math.Abs(relaxed)+1e-17 {
		t.Fatalf("at %v: relaxed %.9f J, bound %g J below it, allowed %g J", s.Time, relaxed, gap, rounding(p))
	}
	return relaxed
}

// rounding returns by how much the rounding of slopes to a microwatt can part a
// bound from the optimum, in joules.
func rounding(p *dag.Problem) float64 {
	var span unit.Time
	for op := range int32(p.Graph.Ops) {
		c := p.Curve(op)
		span += c.Slowest().Time - c.Fastest().Time
	}
	return 0.5e-6 * span.Seconds()
}

// relaxedCost returns the effective energy of an op of duration d in joules.
func relaxedCost(c *dag.Curve, d unit.Time) float64 {
	for k := range len(c.Hull) {
		v := c.Vertex(k)
		if d == v.Time {
			return v.Effective.Joules()
		}
		if d > v.Time {
			u := c.Vertex(k - 1)
			share := (d - v.Time).Seconds() / (u.Time - v.Time).Seconds()
			return v.Effective.Joules() + share*(u.Effective-v.Effective).Joules()
		}
	}
	return math.NaN()
}
