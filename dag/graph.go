package dag

import (
	"cmp"
	"fmt"
	"slices"
)

// The ends of an iteration, as ends of arcs. Source comes before every op that
// depends on none, Sink after every op on which none depends.
const (
	Source int32 = -1
	Sink   int32 = -2
)

// Arc says that op To starts no earlier than op From ends.
type Arc struct{ From, To int32 }

// Graph is an acyclic graph of ops, numbered from 0. It is immutable.
type Graph struct {
	// Ops is the number of ops.
	Ops int
	// Arcs holds every dependency once, then an arc from Source to each op
	// without predecessor, then an arc to Sink from each op without successor.
	// Each of the three parts is sorted by From, then To.
	Arcs []Arc
	// Dependencies is how many of the arcs are between ops.
	Dependencies int

	order    []int32 // topological
	in, out  []int32 // arcs, grouped by op
	inStart  []int32
	outStart []int32
}

// CycleError reports ops that wait for each other.
type CycleError struct {
	// Ops is a cycle: each op depends on the one before it, the first on the last.
	Ops []int32
}

func (e *CycleError) Error() string {
	return fmt.Sprintf("%d ops wait for each other in a cycle, op %d among them", len(e.Ops), e.Ops[0])
}

// NewGraph returns the graph of ops 0 … ops−1 with the given dependencies, in
// any order; repeats count once. It fails where an arc names an op that there is
// not, and with a *CycleError where ops wait for each other. The input is not
// kept. O(ops + arcs·log arcs).
func NewGraph(ops int, dependencies []Arc) (*Graph, error) {
	arcs := make([]Arc, len(dependencies), len(dependencies)+16)
	copy(arcs, dependencies)
	for _, a := range arcs {
		if a.From < 0 || a.To < 0 || int(a.From) >= ops || int(a.To) >= ops {
			return nil, fmt.Errorf("dependency of op %d on op %d: there are ops 0 … %d only", a.To, a.From, ops-1)
		}
	}
	byEnds := func(a, b Arc) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) }
	if !slices.IsSortedFunc(arcs, byEnds) {
		slices.SortFunc(arcs, byEnds)
	}
	arcs = slices.Compact(arcs)
	g := &Graph{Ops: ops, Dependencies: len(arcs)}
	indegree, outdegree := make([]int32, ops), make([]int32, ops)
	for _, a := range arcs {
		outdegree[a.From]++
		indegree[a.To]++
	}
	for i := range int32(ops) {
		if indegree[i] == 0 {
			arcs = append(arcs, Arc{Source, i})
		}
	}
	for i := range int32(ops) {
		if outdegree[i] == 0 {
			arcs = append(arcs, Arc{i, Sink})
		}
	}
	g.Arcs = slices.Clip(arcs)
	g.in, g.inStart = group(ops, g.Arcs, func(a Arc) int32 { return a.To })
	g.out, g.outStart = group(ops, g.Arcs, func(a Arc) int32 { return a.From })
	return g, g.sort(indegree)
}

// group returns the indexes of arcs grouped by key (negative keys left out), and
// where each group starts.
func group(ops int, arcs []Arc, key func(Arc) int32) (index, start []int32) {
	start = make([]int32, ops+2)
	for _, a := range arcs {
		if k := key(a); k >= 0 {
			start[k+2]++
		}
	}
	for i := 2; i < len(start); i++ {
		start[i] += start[i-1]
	}
	index = make([]int32, start[len(start)-1])
	for i, a := range arcs {
		if k := key(a); k >= 0 {
			index[start[k+1]] = int32(i)
			start[k+1]++
		}
	}
	return index, start[:ops+1]
}

// sort fills order, first come first served from the lowest number.
func (g *Graph) sort(indegree []int32) error {
	g.order = make([]int32, 0, g.Ops)
	for i := range int32(g.Ops) {
		if indegree[i] == 0 {
			g.order = append(g.order, i)
		}
	}
	for n := 0; n < len(g.order); n++ {
		for _, a := range g.Out(g.order[n]) {
			to := g.Arcs[a].To
			if to < 0 {
				continue
			}
			if indegree[to]--; indegree[to] == 0 {
				g.order = append(g.order, to)
			}
		}
	}
	if len(g.order) < g.Ops {
		return g.cycle(indegree)
	}
	return nil
}

// cycle finds a cycle among the ops whose remaining indegree is not zero, by
// walking back from the first of them.
func (g *Graph) cycle(indegree []int32) error {
	op := int32(slices.IndexFunc(indegree, func(d int32) bool { return d > 0 }))
	seen := map[int32]int{}
	var path []int32
	for {
		if at, ok := seen[op]; ok {
			slices.Reverse(path[at:])
			return &CycleError{Ops: path[at:]}
		}
		seen[op] = len(path)
		path = append(path, op)
		for _, a := range g.In(op) {
			if from := g.Arcs[a].From; from >= 0 && indegree[from] > 0 {
				op = from
				break
			}
		}
	}
}

// Order returns the ops in a topological order that depends on the graph alone.
// It is shared: callers must not change it.
func (g *Graph) Order() []int32 { return g.order }

// In returns the indexes of the arcs that end at op, Out of those that start
// there. They are shared: callers must not change them.
func (g *Graph) In(op int32) []int32 { return g.in[g.inStart[op]:g.inStart[op+1]] }

// Out returns the indexes of the arcs that start at op; see In.
func (g *Graph) Out(op int32) []int32 { return g.out[g.outStart[op]:g.outStart[op+1]] }

// Sources returns the indexes of the arcs from Source as a range, Sinks those
// to Sink.
func (g *Graph) Sources() (from, to int) {
	to = g.Dependencies
	for to < len(g.Arcs) && g.Arcs[to].From == Source {
		to++
	}
	return g.Dependencies, to
}

// Implied says of each dependency whether it skips ops of a chain: of ops with
// consecutive numbers each of which depends on the one before, as those of a rank
// do. Others imply it, so that schedules and proofs can do without it. It finds no
// other dependency that is implied. O(ops + arcs).
func (g *Graph) Implied() []bool {
	linked := make([]bool, g.Ops+1) // op depends on op−1
	for _, a := range g.Arcs[:g.Dependencies] {
		if a.To == a.From+1 {
			linked[a.To] = true
		}
	}
	chain := make([]int32, g.Ops)
	for op := int32(1); op < int32(g.Ops); op++ {
		chain[op] = op
		if linked[op] {
			chain[op] = chain[op-1]
		}
	}
	implied := make([]bool, g.Dependencies)
	for i, a := range g.Arcs[:g.Dependencies] {
		implied[i] = a.To > a.From+1 && chain[a.From] == chain[a.To]
	}
	return implied
}
