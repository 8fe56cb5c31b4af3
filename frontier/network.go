package frontier

import (
	"cmp"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// network is a problem as a flow network: nodes are events, arcs are ops and
// those dependencies that are not contracted. Only the arcs' states change.
type network struct {
	nodes        int32
	source, sink int32
	// arcs holds each op's arc under the op's number, then dependencies.
	arcs         []arc
	adjacent     []int32 // arcs at each node, grouped by node
	adjacentFrom []int32
	earliest     []int64 // time of each node where all ops are slowest

	// The vertices of the arcs' curves, slowest first, all curves in one row: an
	// arc at vertex v takes duration[v] and carries between capacity[v-1] and
	// capacity[v]. Each curve is preceded by a place with the duration never and
	// the capacity 0.
	duration []int64
	capacity []int64

	// dependencyArc is the arc of each dependency, −1 where it is contracted.
	dependencyArc []int32
	// first is each op's slowest vertex.
	first []int32
}

// arc is 16 bytes, since walks over arcs take much of the time.
type arc struct {
	tail, head int32
	// vertex is where the arc of a tree is on its curve. Of any other arc it is
	// the next faster vertex, and the arc carries capacity[vertex-1].
	vertex int32
	tree   bool
}

// never is a duration that no arc reaches.
const never int64 = 1 << 61

// unlimited is the capacity of the fastest vertex. Flows are at most
// unit.MaxFlow, half of it, so that adding or taking one away changes nothing.
const unlimited int64 = 1 << 62

const atLeastUnlimited = unlimited - int64(unit.MaxFlow)

// newNetwork contracts a dependency where it is its target's only one or its
// source's only one: the two events may as well happen together. All arcs of
// Source and Sink go that way.
func newNetwork(p *dag.Problem) *network {
	g := p.Graph
	n := &network{}
	firstOf := make([]int32, len(p.Curves))
	curve := func() int32 {
		n.duration, n.capacity = append(n.duration, never), append(n.capacity, 0)
		return int32(len(n.duration))
	}
	for i := range p.Curves {
		c := &p.Curves[i]
		firstOf[i] = curve()
		for k := range c.Hull {
			n.duration = append(n.duration, int64(c.Vertex(k).Time))
			if k < len(c.Slope) {
				n.capacity = append(n.capacity, int64(c.Slope[k]))
			} else {
				n.capacity = append(n.capacity, unlimited)
			}
		}
	}
	dependency := curve()
	n.duration, n.capacity = append(n.duration, 0), append(n.capacity, unlimited)

	n.source, n.sink = 0, 1
	count := int32(2)
	start, end := make([]int32, g.Ops), make([]int32, g.Ops)
	for op := range int32(g.Ops) {
		if len(g.In(op)) > 1 {
			start[op] = count
			count++
		}
	}
	for op := range int32(g.Ops) {
		out := g.Out(op)
		to := g.Arcs[out[0]].To
		switch {
		case to == dag.Sink:
			end[op] = n.sink
		case len(out) == 1 && len(g.In(to)) > 1:
			end[op] = start[to]
		default:
			end[op] = count
			count++
		}
	}
	for op := range int32(g.Ops) {
		if in := g.In(op); len(in) == 1 {
			if from := g.Arcs[in[0]].From; from != dag.Source {
				start[op] = end[from]
			}
		}
	}
	n.nodes = count
	for op := range int32(g.Ops) {
		n.first = append(n.first, firstOf[p.CurveOf[op]])
		n.arcs = append(n.arcs, arc{tail: start[op], head: end[op], vertex: n.first[op]})
	}
	n.dependencyArc = make([]int32, g.Dependencies)
	for i, a := range g.Arcs[:g.Dependencies] {
		n.dependencyArc[i] = -1
		if len(g.Out(a.From)) > 1 && len(g.In(a.To)) > 1 {
			n.dependencyArc[i] = int32(len(n.arcs))
			n.arcs = append(n.arcs, arc{tail: end[a.From], head: start[a.To], vertex: dependency})
		}
	}
	n.number(p, start, end)
	n.connect()
	return n
}

// number renumbers the nodes by their earliest time where all ops are slowest,
// so that walks touch memory in order.
func (n *network) number(p *dag.Problem, start, end []int32) {
	times := make([]unit.Time, p.Graph.Ops)
	makespan := p.Graph.Starts(times, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
	// An event is as late as the latest end that it stands for, and no earlier
	// than any start: contracted ends wait for the start they are merged with.
	earliest := make([]int64, n.nodes)
	for op := range int32(p.Graph.Ops) {
		earliest[start[op]] = max(earliest[start[op]], int64(times[op]))
		earliest[end[op]] = max(earliest[end[op]], int64(times[op]+p.Curve(op).Slowest().Time))
	}
	earliest[n.sink] = int64(makespan)
	order := make([]int32, n.nodes)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(earliest[a], earliest[b]) })
	number := make([]int32, n.nodes)
	n.earliest = make([]int64, n.nodes)
	for i, old := range order {
		number[old] = int32(i)
		n.earliest[i] = earliest[old]
	}
	for i := range n.arcs {
		n.arcs[i].tail, n.arcs[i].head = number[n.arcs[i].tail], number[n.arcs[i].head]
	}
	n.source, n.sink = number[n.source], number[n.sink]
}

func (n *network) connect() {
	n.adjacentFrom = make([]int32, n.nodes+2)
	for _, a := range n.arcs {
		n.adjacentFrom[a.tail+2]++
		n.adjacentFrom[a.head+2]++
	}
	for i := int32(2); i < n.nodes+2; i++ {
		n.adjacentFrom[i] += n.adjacentFrom[i-1]
	}
	n.adjacent = make([]int32, 2*len(n.arcs))
	put := func(node int32, a int) {
		n.adjacent[n.adjacentFrom[node+1]] = int32(a)
		n.adjacentFrom[node+1]++
	}
	for i, a := range n.arcs {
		put(a.tail, i)
		put(a.head, i)
	}
	n.adjacentFrom = n.adjacentFrom[:n.nodes+1]
}

// at returns the arcs at a node.
func (n *network) at(node int32) []int32 {
	return n.adjacent[n.adjacentFrom[node]:n.adjacentFrom[node+1]]
}
