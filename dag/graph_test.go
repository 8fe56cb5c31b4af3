package dag_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func arcs(t *rapid.T, ops int) []dag.Arc {
	var out []dag.Arc
	for range rapid.IntRange(0, 3*ops).Draw(t, "arcs") {
		a, b := rapid.IntRange(0, ops-1).Draw(t, "a"), rapid.IntRange(0, ops-1).Draw(t, "b")
		if a != b {
			out = append(out, dag.Arc{From: int32(min(a, b)), To: int32(max(a, b))})
		}
	}
	return out
}

func TestGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.IntRange(1, 12).Draw(t, "ops")
		dependencies := arcs(t, ops)
		g, err := dag.NewGraph(ops, dependencies)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(dependencies).Draw(t, "shuffled")
		if again, err := dag.NewGraph(ops, shuffled); err != nil || !slices.Equal(again.Arcs, g.Arcs) || !slices.Equal(again.Order(), g.Order()) {
			t.Fatal("the graph depends on the order of its input")
		}
		place := make([]int, ops)
		for i, op := range g.Order() {
			place[op] = i
		}
		for i, a := range g.Arcs {
			switch {
			case i < g.Dependencies:
				if !slices.Contains(dependencies, a) || place[a.From] >= place[a.To] {
					t.Fatalf("arc %v", a)
				}
			case a.From == dag.Source:
				if len(g.In(a.To)) != 1 {
					t.Fatalf("op %d starts and has predecessors", a.To)
				}
			case a.To != dag.Sink || len(g.Out(a.From)) != 1:
				t.Fatalf("arc %v", a)
			}
		}
		from, to := g.Sources()
		for op := range int32(ops) {
			if len(g.In(op)) == 0 || len(g.Out(op)) == 0 {
				t.Fatalf("op %d hangs loose", op)
			}
			for _, a := range g.In(op) {
				if g.Arcs[a].To != op || g.Arcs[a].From == dag.Source != (int(a) >= from && int(a) < to) {
					t.Fatalf("arc %v into op %d", g.Arcs[a], op)
				}
			}
			for _, a := range g.Out(op) {
				if g.Arcs[a].From != op {
					t.Fatalf("arc %v out of op %d", g.Arcs[a], op)
				}
			}
		}
		var kept []dag.Arc
		for i, implied := range g.Implied() {
			if !implied {
				kept = append(kept, g.Arcs[i])
			}
		}
		if len(kept) < g.Dependencies {
			if without, err := dag.NewGraph(ops, kept); err != nil || !sameOrder(g, without) {
				t.Fatalf("%v does without more than is implied: %v", g.Arcs, kept)
			}
		}
		times := make([]unit.Time, ops)
		for i := range times {
			times[i] = unit.Time(rapid.Int64Range(0, 9).Draw(t, "time"))
		}
		start := make([]unit.Time, ops)
		makespan := g.Starts(start, func(op int32) unit.Time { return times[op] })
		var longest unit.Time
		for op := range int32(ops) {
			want := latest(g, times, op)
			if start[op] != want {
				t.Fatalf("op %d starts at %d, want %d", op, start[op], want)
			}
			longest = max(longest, want+times[op])
		}
		if makespan != longest {
			t.Fatalf("makespan %d, want %d", makespan, longest)
		}
	})
}

// sameOrder says whether an op comes before another in a if and only if it does
// so in b.
func sameOrder(a, b *dag.Graph) bool {
	for op := range int32(a.Ops) {
		if !slices.Equal(before(a, op), before(b, op)) {
			return false
		}
	}
	return true
}

// before returns which ops come before op.
func before(g *dag.Graph, op int32) []bool {
	earlier := make([]bool, g.Ops)
	var visit func(op int32)
	visit = func(op int32) {
		for _, a := range g.In(op) {
			if from := g.Arcs[a].From; from >= 0 && !earlier[from] {
				earlier[from] = true
				visit(from)
			}
		}
	}
	visit(op)
	return earlier
}

// latest follows the definition of an earliest start.
func latest(g *dag.Graph, times []unit.Time, op int32) (start unit.Time) {
	for _, a := range g.In(op) {
		if from := g.Arcs[a].From; from >= 0 {
			start = max(start, latest(g, times, from)+times[from])
		}
	}
	return start
}

func TestGraphRefuses(t *testing.T) {
	if _, err := dag.NewGraph(2, []dag.Arc{{From: 0, To: 2}}); err == nil {
		t.Error("an op that there is not is accepted")
	}
	if _, err := dag.NewGraph(2, []dag.Arc{{From: -1, To: 1}}); err == nil {
		t.Error("a negative op is accepted")
	}
	dependencies := []dag.Arc{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 1}, {From: 3, To: 4}}
	_, err := dag.NewGraph(5, dependencies)
	var cycle *dag.CycleError
	if !errors.As(err, &cycle) {
		t.Fatalf("error %v, want a cycle", err)
	}
	if len(cycle.Ops) != 3 {
		t.Fatalf("cycle %v", cycle.Ops)
	}
	for i, op := range cycle.Ops {
		next := cycle.Ops[(i+1)%len(cycle.Ops)]
		if !slices.Contains(dependencies, dag.Arc{From: op, To: next}) {
			t.Errorf("cycle %v: op %d does not depend on op %d", cycle.Ops, next, op)
		}
	}
	if _, err := dag.NewGraph(1, []dag.Arc{{From: 0, To: 0}}); !errors.As(err, &cycle) {
		t.Errorf("an op that waits for itself: error %v", err)
	}
}

// TestBound checks the certificate on random flows: no schedule is below it.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.IntRange(1, 5).Draw(t, "ops")
		g, err := dag.NewGraph(ops, arcs(t, ops))
		if err != nil {
			t.Fatal(err)
		}
		blocking := unit.Power(rapid.Int64Range(0, 5000).Draw(t, "blocking"))
		var curves []dag.Curve
		var curveOf []int32
		for op := range ops {
			c, err := dag.NewCurve(options(t), blocking)
			if err != nil {
				t.Fatal(err)
			}
			curves, curveOf = append(curves, c), append(curveOf, int32(op))
		}
		p, err := dag.NewProblem(g, curves, curveOf, blocking)
		if err != nil {
			t.Fatal(err)
		}
		// A feasible flow is a sum of paths.
		flow := make([]unit.Power, len(g.Arcs))
		var value unit.Power
		from, to := g.Sources()
		for range rapid.IntRange(0, 4).Draw(t, "paths") {
			amount := unit.Power(rapid.Int64Range(0, 20000).Draw(t, "amount"))
			value += amount
			a := int32(rapid.IntRange(from, to-1).Draw(t, "source"))
			for {
				flow[a] += amount
				op := g.Arcs[a].To
				if op < 0 {
					break
				}
				out := g.Out(op)
				a = out[rapid.IntRange(0, len(out)-1).Draw(t, "next")]
			}
		}
		base, price := p.Bound(flow)
		if price != value {
			t.Fatalf("price %d, want %d", price, value)
		}
		start := make([]unit.Time, ops)
		choice := make([]int32, ops)
		for range 20 {
			for op := range choice {
				choice[op] = rapid.Int32Range(0, int32(len(curves[op].Options)-1)).Draw(t, "option")
			}
			c := p.Evaluate(start, func(op int32) dag.Option { return curves[op].Options[choice[op]] })
			if same := p.EvaluateChoice(start, choice); same != c {
				t.Fatalf("the choice costs %+v, its options %+v", same, c)
			}
			if bound := base.Sub(unit.Product(price, c.Time)); c.Effective.Cmp(bound) < 0 {
				t.Fatalf("a schedule of %d has %v J, below the bound %v J", c.Time, c.Effective.Joules(), bound.Joules())
			}
			if want := c.Effective.Add(unit.Product(blocking, c.Time)); c.Energy != want {
				t.Fatalf("energy %v, want %v", c.Energy, want)
			}
		}
	})
}

func TestProblemRefuses(t *testing.T) {
	g, err := dag.NewGraph(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	long, err := dag.NewCurve([]dag.Option{{Time: unit.MaxOpTime}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dag.NewProblem(g, []dag.Curve{long}, []int32{0}, 0); err == nil {
		t.Error("an op without a curve is accepted")
	}
	if _, err := dag.NewProblem(g, []dag.Curve{long}, []int32{0, 1}, 0); err == nil {
		t.Error("a curve that there is not is accepted")
	}
	if _, err := dag.NewProblem(g, []dag.Curve{long}, []int32{0, 0}, -1); err == nil {
		t.Error("a negative blocking power is accepted")
	}
	n := int(unit.MaxMakespan/unit.MaxOpTime) + 1
	many, err := dag.NewGraph(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dag.NewProblem(many, []dag.Curve{long}, make([]int32, n), 0); err == nil {
		t.Error("an endless iteration is accepted")
	}
	steep, err := dag.NewCurve([]dag.Option{{Time: 1, Energy: unit.Joule}, {Time: 2}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	n = int(unit.MaxFlow/steep.Slope[0]) + 1
	if many, err = dag.NewGraph(n, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := dag.NewProblem(many, []dag.Curve{steep}, make([]int32, n), 0); err == nil {
		t.Error("endless slopes are accepted")
	}
}

func ExampleProblem_Bound() {
	// Two ops in a row, each 1 s for 20 J or 2 s for 10 J.
	c, _ := dag.NewCurve([]dag.Option{
		{Knobs: dag.Knobs{ClockMHz: 1400}, Time: 1 * unit.Second, Energy: 20 * unit.Joule},
		{Knobs: dag.Knobs{ClockMHz: 700}, Time: 2 * unit.Second, Energy: 10 * unit.Joule},
	}, 0)
	g, _ := dag.NewGraph(2, []dag.Arc{{From: 0, To: 1}})
	p, _ := dag.NewProblem(g, []dag.Curve{c}, []int32{0, 0}, 0)
	// A flow of 10 W through both proves what three seconds cost at least.
	base, price := p.Bound([]unit.Power{10 * unit.Watt, 10 * unit.Watt, 10 * unit.Watt})
	fmt.Println(base.Sub(unit.Product(price, 3*unit.Second)).Joules(), "J")
	// Output: 30 J
}
