// Package reference holds slow, simple algorithms that the tests of other
// packages compare with: the exact optimum of the relaxed problem at one time,
// and the best schedule of real options by trying all.
//
// It is for tests only. It shares nothing with package frontier but the
// definition of a problem (package dag), and it finds its optimum another way:
// successive shortest paths at whole nodes with a Dijkstra search per phase. Its
// answers carry their own proof: a feasible schedule and a feasible flow whose
// certificate (dag.Problem.Bound) meets the schedule's cost.
package reference

import (
	"container/heap"
	"math"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Relaxed is an optimum of the relaxed problem: least Σe' over the convex hulls
// with makespan at most Time.
type Relaxed struct {
	// Time is the makespan asked for, at most the time at which all ops are slowest.
	Time unit.Time
	// Price is the flow's value λ, the slope of the frontier at and above Time.
	Price unit.Power
	// Start and Duration are per op; Flow is per arc of the graph.
	Start, Duration []unit.Time
	Flow            []unit.Power
}

// Walk holds the state of a walk down the frontier from the slowest schedule.
type Walk struct {
	p        *dag.Problem
	edges    []edge
	adjacent [][]int32 // edge indexes; those ≥ len(edges) mean the edge backwards
	// potential is the longest distance from the source of each event, before and
	// after the last phase. Event 2j is the start of op j, 2j+1 its end.
	before, after []unit.Time
	source, sink  int32
	value         unit.Power
	done          bool
}

// edge is an op (curve not nil) or a dependency, from event to event.
type edge struct {
	from, to int32
	curve    *dag.Curve
	flow     unit.Power
}

const infinite = unit.Power(math.MaxInt64)

// forward returns the length of the longest parallel arc that takes more flow,
// and how much.
func (e *edge) forward() (unit.Time, unit.Power) {
	if e.curve == nil {
		return 0, infinite
	}
	for k, s := range e.curve.Slope {
		if e.flow < s {
			return e.curve.Vertex(k).Time, s - e.flow
		}
	}
	return e.curve.Fastest().Time, infinite
}

// backward returns the length of the shortest parallel arc with flow, and how
// much of it can be taken back.
func (e *edge) backward() (unit.Time, unit.Power) {
	if e.curve == nil || e.flow == 0 {
		return 0, e.flow
	}
	k := 0
	below := unit.Power(0)
	for k < len(e.curve.Slope) && e.curve.Slope[k] < e.flow {
		below = e.curve.Slope[k]
		k++
	}
	return e.curve.Vertex(k).Time, e.flow - below
}

// residual returns the ends, length and capacity of an edge in a direction.
func (w *Walk) residual(i int32) (from, to int32, length unit.Time, capacity unit.Power) {
	if n := int32(len(w.edges)); i >= n {
		e := &w.edges[i-n]
		t, c := e.backward()
		return e.to, e.from, -t, c
	}
	e := &w.edges[i]
	t, c := e.forward()
	return e.from, e.to, t, c
}

// NewWalk starts at the slowest schedule.
func NewWalk(p *dag.Problem) *Walk {
	n := int32(2 * p.Graph.Ops)
	w := &Walk{p: p, source: n, sink: n + 1}
	event := func(op int32, end int32) int32 {
		switch op {
		case dag.Source:
			return w.source
		case dag.Sink:
			return w.sink
		}
		return 2*op + end
	}
	for _, a := range p.Graph.Arcs {
		w.edges = append(w.edges, edge{from: event(a.From, 1), to: event(a.To, 0)})
	}
	for op := range int32(p.Graph.Ops) {
		w.edges = append(w.edges, edge{from: 2 * op, to: 2*op + 1, curve: p.Curve(op)})
	}
	w.adjacent = make([][]int32, n+2)
	for i, e := range w.edges {
		w.adjacent[e.from] = append(w.adjacent[e.from], int32(i))
		w.adjacent[e.to] = append(w.adjacent[e.to], int32(len(w.edges)+i))
	}
	start := make([]unit.Time, p.Graph.Ops)
	time := func(op int32) unit.Time { return p.Curve(op).Slowest().Time }
	makespan := p.Graph.Starts(start, time)
	w.after = make([]unit.Time, n+2)
	for op, s := range start {
		w.after[2*op], w.after[2*op+1] = s, s+time(int32(op))
	}
	w.after[w.sink] = makespan
	w.before = append(w.before, w.after...)
	return w
}

// Next goes to the next faster breakpoint; it is false where there is none.
func (w *Walk) Next() bool {
	if w.done {
		return false
	}
	for w.augment() {
	}
	if w.done {
		return false
	}
	copy(w.before, w.after)
	w.search()
	return true
}

// search lowers the potentials to the longest distances of the residual graph.
func (w *Walk) search() {
	slack := make([]unit.Time, len(w.after))
	for i := range slack {
		slack[i] = math.MaxInt64
	}
	slack[w.source] = 0
	closed := make([]bool, len(slack))
	q := &queue{{w.source, 0}}
	for q.Len() > 0 {
		at := heap.Pop(q).(item)
		if closed[at.node] {
			continue
		}
		closed[at.node] = true
		for _, i := range w.adjacent[at.node] {
			from, to, length, capacity := w.residual(i)
			if capacity == 0 {
				continue
			}
			if d := at.slack + w.before[to] - w.before[from] - length; d < slack[to] {
				slack[to] = d
				heap.Push(q, item{to, d})
			}
		}
	}
	for i, d := range slack {
		w.after[i] = w.before[i] - d
	}
}

// augment sends flow along one path of tight arcs with the fewest arcs; it is
// false where there is none, and sets done where flow is without limit.
func (w *Walk) augment() bool {
	via := make([]int32, len(w.after))
	for i := range via {
		via[i] = -1
	}
	list := []int32{w.source}
	for n := 0; n < len(list) && via[w.sink] < 0; n++ {
		for _, i := range w.adjacent[list[n]] {
			from, to, length, capacity := w.residual(i)
			if to != w.source && via[to] < 0 && capacity > 0 && w.after[from]+length == w.after[to] {
				via[to] = i
				list = append(list, to)
			}
		}
	}
	if via[w.sink] < 0 {
		return false
	}
	least := infinite
	for v := w.sink; v != w.source; {
		from, _, _, capacity := w.residual(via[v])
		least = min(least, capacity)
		v = from
	}
	if least == infinite {
		w.done = true
		return false
	}
	for v := w.sink; v != w.source; {
		from, _, _, _ := w.residual(via[v])
		if n := int32(len(w.edges)); via[v] >= n {
			w.edges[via[v]-n].flow -= least
		} else {
			w.edges[via[v]].flow += least
		}
		v = from
	}
	w.value += least
	return true
}

// Span returns the times at the ends of the last segment walked.
func (w *Walk) Span() (slow, fast unit.Time) { return w.before[w.sink], w.after[w.sink] }

// At returns the optimum at a time on the last segment walked.
func (w *Walk) At(t unit.Time) *Relaxed {
	slow, fast := w.Span()
	r := &Relaxed{Time: t, Price: w.value}
	between := func(v int32) unit.Time {
		fall := w.before[v] - w.after[v]
		if slow == fast {
			return w.after[v]
		}
		q, _ := unit.Product(unit.Power(fall), t-fast).DivInt(int64(slow-fast), unit.Down)
		return w.after[v] + unit.Time(q)
	}
	for op := range int32(w.p.Graph.Ops) {
		c := w.p.Curve(op)
		start := between(2 * op)
		r.Start = append(r.Start, start)
		r.Duration = append(r.Duration, max(c.Fastest().Time, min(c.Slowest().Time, between(2*op+1)-start)))
	}
	for _, e := range w.edges[:len(w.p.Graph.Arcs)] {
		r.Flow = append(r.Flow, e.flow)
	}
	return r
}

// Solve returns the relaxed optimum at t, or at the nearest time that exists.
func Solve(p *dag.Problem, t unit.Time) *Relaxed {
	w := NewWalk(p)
	for {
		if _, fast := w.Span(); fast <= t || !w.Next() {
			slow, fast := w.Span()
			return w.At(max(fast, min(slow, t)))
		}
	}
}

type item struct {
	node  int32
	slack unit.Time
}

type queue []item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].slack < q[j].slack }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
