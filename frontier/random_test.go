package frontier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/unit"
)

// randomProblem returns a problem of at most 24 ops. Odd seeds give at least 12
// ops of at least three options each. Among the others are chains, parallel ops,
// ladders, ops of one option or no time, and equal curves with many optima;
// effective energies are negative in about half of all.
func randomProblem(t testing.TB, seed uint64) *dag.Problem {
	rng := rand.New(rand.NewPCG(seed, 77))
	rich := seed%2 == 1
	ops, least := 1+rng.IntN(14), 1
	if rich {
		ops, least = 12+rng.IntN(13), 3
	}
	coarse := unit.Time(1) // of times: coarse ones give ties
	if rng.IntN(2) == 0 {
		coarse = 1000
	}
	blocking := unit.Power(rng.IntN(3)) * 100 * watt

	var arcs []dag.Arc
	arc := func(from, to int) { arcs = append(arcs, dag.Arc{From: int32(from), To: int32(to)}) }
	switch rng.IntN(6) {
	case 0: // a chain
		for i := range ops - 1 {
			arc(i, i+1)
		}
	case 1: // all parallel
	case 2: // a ladder, as pipelines have
		for i := range ops - 2 {
			arc(i, i+2)
			if i%2 == 0 || rng.IntN(2) == 0 {
				arc(i, i+1)
			}
		}
	case 3: // complete layers
		layer := 1 + rng.IntN(4)
		for i := range ops {
			for j := (i/layer + 1) * layer; j < min(ops, (i/layer+2)*layer); j++ {
				arc(i, j)
			}
		}
	default:
		density := rng.Float64()
		for i := range ops {
			for j := i + 1; j < ops; j++ {
				if rng.Float64() < density*3/float64(j-i+2) {
					arc(i, j)
				}
			}
		}
	}
	g, err := dag.NewGraph(ops, arcs)
	if err != nil {
		t.Fatal(err)
	}
	curves := make([]dag.Curve, 1+rng.IntN(ops))
	for i := range curves {
		n := least + rng.IntN(5)
		if !rich && rng.IntN(4) == 0 {
			n = 1
		}
		curves[i] = randomCurve(t, rng, n, coarse, blocking)
	}
	curveOf := make([]int32, ops)
	for op := range curveOf {
		curveOf[op] = int32(rng.IntN(len(curves)))
	}
	p, err := dag.NewProblem(g, curves, curveOf, blocking)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// randomCurve returns a curve with n options on its front or, rarely, fewer.
func randomCurve(t testing.TB, rng *rand.Rand, n int, coarse unit.Time, blocking unit.Power) dag.Curve {
	time := unit.Time(rng.IntN(30)) * coarse
	if rng.IntN(5) == 0 {
		time = 0
	}
	effective := unit.Energy(rng.IntN(2_000_000)-1_000_000) * 1000
	var options []dag.Option
	for k := range n {
		options = append(options, dag.Option{
			Knobs:  dag.Knobs{ClockMHz: int32(2000 - k)},
			Time:   time,
			Energy: effective + unit.Energy(blocking/1000)*unit.Energy(time),
		})
		time += unit.Time(1+rng.IntN(20)) * coarse
		effective -= unit.Energy(1+rng.IntN(400)) * unit.Energy(coarse) * 1000
	}
	c, err := dag.NewCurve(options, blocking)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRandomProblems solves 10,000 random problems. Each segment is proved by its
// schedule and its flow, and at some times the optimum is compared with the one
// of an independent algorithm. The smallest problems are also solved by trying
// all schedules, which no bound may exceed.
func TestRandomProblems(t *testing.T) {
	cases := uint64(10_000)
	if testing.Short() {
		cases = 500
	}
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < cases; seed += parts {
				checkRandom(t, seed)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func checkRandom(t *testing.T, seed uint64) {
	p := randomProblem(t, seed)
	tMin, tMax := spans(p)
	var s frontier.Solution
	last, price := tMax, unit.Power(0)
	for segment := range frontier.Solve(p) {
		if segment.Slow != last || segment.Fast >= segment.Slow || segment.Price <= price {
			t.Fatalf("segment %v … %v at %v after one to %v at %v", segment.Slow, segment.Fast, segment.Price, last, price)
		}
		last, price = segment.Fast, segment.Price
		segment.Solution(&s)
		prove(t, p, &s)
		// The same flow is optimal at the slow end too.
		base, _ := p.Bound(s.Flow)
		slow, err := frontier.At(p, segment.Slow)
		if err != nil {
			t.Fatal(err)
		}
		bound := base.Sub(unit.Product(segment.Price, segment.Slow)).Joules()
		if at := prove(t, p, slow); math.Abs(at-bound) > rounding(p)+1e-12*math.Abs(at) {
			t.Fatalf("flow of segment %v … %v gives %.12f J at its slow end, optimum %.12f J", segment.Slow, segment.Fast, bound, at)
		}
	}
	if last != tMin {
		t.Fatalf("the frontier ends at %v, t_min is %v", last, tMin)
	}
	rng := rand.New(rand.NewPCG(seed, 78))
	for range 3 {
		at := tMin
		if tMax > tMin {
			at += unit.Time(rng.Int64N(int64(tMax-tMin) + 1))
		}
		s, err := frontier.At(p, at)
		if err != nil {
			t.Fatal(err)
		}
		got := prove(t, p, s)
		r := reference.Solve(p, at)
		want := 0.0
		for op := range int32(p.Graph.Ops) {
			want += relaxedCost(p.Curve(op), r.Duration[op])
		}
		if math.Abs(got-want) > 1e-6*math.Max(1e-6, math.Abs(want)) {
			t.Fatalf("at %v: %.12f J, the reference has %.12f J", at, got, want)
		}
		base, price := p.Bound(s.Flow)
		bound := base.Sub(unit.Product(price, at))
		if best, ok := tryAll(p, at); ok && best.Cmp(bound) < 0 {
			t.Fatalf("at %v: a schedule costs %v J, less than the bound %v J", at, best.Joules(), bound.Joules())
		}
	}
	if tMin > 0 {
		if _, err := frontier.At(p, tMin-1); err == nil {
			t.Fatal("a time below t_min is accepted")
		}
	}
}

// spans returns the makespans where all ops are fastest and slowest.
func spans(p *dag.Problem) (tMin, tMax unit.Time) {
	start := make([]unit.Time, p.Graph.Ops)
	tMin = p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
	tMax = p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
	return tMin, tMax
}

// tryAll returns the least Σe' of all schedules with makespan at most limit, or
// false where there are more than a few thousand.
func tryAll(p *dag.Problem, limit unit.Time) (best unit.Energy128, ok bool) {
	count := 1
	for op := range int32(p.Graph.Ops) {
		if count *= len(p.Curve(op).Options); count > 3000 {
			return best, false
		}
	}
	start := make([]unit.Time, p.Graph.Ops)
	for n := range count {
		choice := make([]int, p.Graph.Ops)
		for op := range choice {
			k := len(p.Curve(int32(op)).Options)
			choice[op] = n % k
			n /= k
		}
		c := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Options[choice[op]] })
		if c.Time <= limit && (!ok || c.Effective.Cmp(best) < 0) {
			best, ok = c.Effective, true
		}
	}
	return best, ok
}

func TestNoOps(t *testing.T) {
	g, err := dag.NewGraph(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewProblem(g, nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range frontier.Solve(p) {
		t.Fatal("a problem without ops has a segment")
	}
	if s, err := frontier.At(p, 0); err != nil || s.Time != 0 || len(s.Start) != 0 {
		t.Fatalf("got %v, %v", s, err)
	}
}

// TestOneTime has a problem with t_min = t_max.
func TestOneTime(t *testing.T) {
	c, err := dag.NewCurve([]dag.Option{{Time: 5, Energy: 7}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := dag.NewGraph(2, []dag.Arc{{From: 0, To: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewProblem(g, []dag.Curve{c}, []int32{0, 0}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range frontier.Solve(p) {
		t.Fatal("a problem with one time has a segment")
	}
	s, err := frontier.At(p, 100)
	if err != nil {
		t.Fatal(err)
	}
	if s.Time != 10 || s.Price != 0 {
		t.Fatalf("time %v at price %v", s.Time, s.Price)
	}
	prove(t, p, s)
}
