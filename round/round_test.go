package round_test

import (
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

// efforts are all there are.
var efforts = []round.Effort{round.Fast, round.Normal, round.Best}

// problem draws a small graph with curves of any shape: single options, zero
// times and negative effective energies among them.
func problem(t *rapid.T) *dag.Problem {
	ops := rapid.IntRange(1, 16).Draw(t, "ops")
	var arcs []dag.Arc
	for to := range int32(ops) {
		for _, from := range rapid.SliceOfN(rapid.Int32Range(0, max(0, to-1)), 0, 3).Draw(t, "from") {
			if from < to {
				arcs = append(arcs, dag.Arc{From: from, To: to})
			}
		}
	}
	g, err := dag.NewGraph(ops, arcs)
	if err != nil {
		t.Fatal(err)
	}
	kinds := rapid.IntRange(1, 5).Draw(t, "kinds")
	var curves []dag.Curve
	for range kinds {
		var options []dag.Option
		for i := range rapid.IntRange(1, 7).Draw(t, "options") {
			options = append(options, dag.Option{
				Knobs:  dag.Knobs{ClockMHz: int32(i)},
				Time:   unit.Time(rapid.Int64Range(0, 200).Draw(t, "time")) * unit.Microsecond,
				Energy: unit.Energy(rapid.Int64Range(-50, 1000).Draw(t, "energy")) * unit.Joule / 1000,
			})
		}
		c, err := dag.NewCurve(options, unit.Power(rapid.Int64Range(0, 3000).Draw(t, "blocking"))*unit.Watt)
		if err != nil {
			t.Fatal(err)
		}
		curves = append(curves, c)
	}
	of := make([]int32, ops)
	for i := range of {
		of[i] = rapid.Int32Range(0, int32(kinds-1)).Draw(t, "curve")
	}
	p, err := dag.NewProblem(g, curves, of, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fastest(p *dag.Problem) unit.Time {
	start := make([]unit.Time, p.Graph.Ops)
	return p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
}

func slowest(p *dag.Problem) unit.Time {
	start := make([]unit.Time, p.Graph.Ops)
	return p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
}

func evaluate(p *dag.Problem, choice []int32) dag.Cost {
	start := make([]unit.Time, p.Graph.Ops)
	return p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Options[choice[op]] })
}

func solution(r *reference.Relaxed) *frontier.Solution {
	return &frontier.Solution{Time: r.Time, Price: r.Price, Start: r.Start, Duration: r.Duration, Flow: r.Flow}
}

func TestRoundKeepsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		least, most := fastest(p), slowest(p)
		asked := unit.Time(rapid.Int64Range(int64(least), int64(most)).Draw(t, "asked"))
		r := reference.Solve(p, asked)
		if r.Time != asked {
			t.Fatalf("the reference solved %v instead of %v", r.Time, asked)
		}
		base, price := p.Bound(r.Flow)
		bound := base.Sub(unit.Product(price, asked))
		choice := round.Round(p, solution(r), round.Fast)
		cost := evaluate(p, choice).Effective
		for _, budget := range []int64{0, 20_000} {
			round.Search(p, solution(r), budget, choice)
			c := evaluate(p, choice)
			if c.Time > asked {
				t.Fatalf("budget %d: a schedule of %v where %v was asked for", budget, c.Time, asked)
			}
			if c.Effective.Cmp(bound) < 0 {
				t.Fatalf("budget %d: %v below the bound %v", budget, c.Effective, bound)
			}
			if c.Effective.Cmp(cost) > 0 {
				t.Fatalf("more effort makes it worse: %v after %v", c.Effective, cost)
			}
			cost = c.Effective
		}
	})
}

// TestRoundKeepsTimeForAnySolution feeds solutions that are none.
func TestRoundKeepsTimeForAnySolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		least, most := fastest(p), slowest(p)
		asked := unit.Time(rapid.Int64Range(int64(least)-1, int64(most)+1).Draw(t, "asked"))
		s := &frontier.Solution{Time: asked}
		if rapid.Bool().Draw(t, "full") {
			anyTime := rapid.Map(rapid.Int64Range(-10, int64(most)+10), func(v int64) unit.Time { return unit.Time(v) })
			s.Start = rapid.SliceOfN(anyTime, p.Graph.Ops, p.Graph.Ops).Draw(t, "start")
			s.Duration = rapid.SliceOfN(anyTime, p.Graph.Ops, p.Graph.Ops).Draw(t, "duration")
			anyFlow := rapid.Map(rapid.Int64Range(0, 1<<40), func(v int64) unit.Power { return unit.Power(v) })
			s.Flow = rapid.SliceOfN(anyFlow, len(p.Graph.Arcs), len(p.Graph.Arcs)).Draw(t, "flow")
		}
		choice := round.Round(p, s, round.Fast)
		if c := evaluate(p, choice); c.Time > max(asked, least) {
			t.Fatalf("a schedule of %v where %v was asked for and %v is possible", c.Time, asked, least)
		}
		if s.Start != nil && asked >= least {
			round.Search(p, s, 5_000, choice)
			if c := evaluate(p, choice); c.Time > asked {
				t.Fatalf("after a search, a schedule of %v where %v was asked for", c.Time, asked)
			}
		}
	})
}

func TestParseEffort(t *testing.T) {
	for _, e := range efforts {
		if got, err := round.ParseEffort(e.String()); err != nil || got != e {
			t.Errorf("ParseEffort(%q) = %v, %v", e.String(), got, err)
		}
	}
	if _, err := round.ParseEffort("slow"); err == nil {
		t.Error(`ParseEffort("slow") succeeds`)
	}
}

// TestSearchAgainstBruteForce wants the best schedule there is of small problems.
func TestSearchAgainstBruteForce(t *testing.T) {
	total, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		work := 1
		for op := range int32(p.Graph.Ops) {
			if work *= len(p.Curve(op).Options); work > 5000 {
				t.Skip("too many schedules")
			}
		}
		asked := unit.Time(rapid.Int64Range(int64(fastest(p)), int64(slowest(p))).Draw(t, "asked"))
		s := solution(reference.Solve(p, asked))
		choice := round.Round(p, s, round.Fast)
		round.Search(p, s, 20_000, choice)
		_, best, _ := reference.Best(p, asked)
		total++
		switch evaluate(p, choice).Effective.Cmp(best) {
		case -1:
			t.Fatal("better than the best of all schedules")
		case 1:
			missed++
		}
	})
	if 20*missed > total {
		t.Errorf("%d of %d schedules are not the best there is", missed, total)
	}
	t.Logf("%d of %d missed", missed, total)
}
