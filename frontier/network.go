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

	// carrier is, for each arc of the graph, the arc that carries its flow: the
	// dependency's own, or the op's where the dependency is contracted; −1 where
	// there is no flow.
	carrier []int32
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

// newNetwork leaves out dependencies that others imply, and contracts one where
// it is its target's only one or its source's only one: the two events may as
// well happen together. All arcs of Source and Sink go that way.
func newNetwork(p *dag.Problem) *network {
	g := p.Graph
	n := &network{nodes: 2, source: 0, sink: 1, carrier: make([]int32, len(g.Arcs))}
	firstOf, dependency := n.curves(p.Curves)

	in, out := make([]int32, g.Ops), make([]int32, g.Ops)
	implied := g.Implied()
	for i, a := range g.Arcs {
		if i < g.Dependencies && implied[i] {
			continue
		}
		if a.From >= 0 {
			out[a.From]++
		}
		if a.To >= 0 {
			in[a.To]++
		}
	}
	// The start of an op with several predecessors and the end of one with several
	// successors are events of their own, unless they are contracted.
	start, end := make([]int32, g.Ops), make([]int32, g.Ops)
	event := func() int32 {
		n.nodes++
		return n.nodes - 1
	}
	for op := range start {
		start[op] = -1
		if in[op] > 1 {
			start[op] = event()
		}
		end[op] = -1
	}
	for i, a := range g.Arcs {
		switch {
		case i < g.Dependencies && implied[i]:
		case a.To == dag.Sink:
			end[a.From] = n.sink
		case a.From >= 0 && out[a.From] == 1 && in[a.To] > 1:
			end[a.From] = start[a.To]
		}
	}
	for op := range end {
		if end[op] < 0 {
			end[op] = event()
		}
	}
	for i, a := range g.Arcs {
		if i < g.Dependencies && implied[i] || a.To < 0 || in[a.To] > 1 {
			continue
		}
		start[a.To] = n.source
		if a.From >= 0 {
			start[a.To] = end[a.From]
		}
	}
	for op := range int32(g.Ops) {
		n.first = append(n.first, firstOf[p.CurveOf[op]])
		n.arcs = append(n.arcs, arc{tail: start[op], head: end[op], vertex: n.first[op]})
	}
	for i, a := range g.Arcs {
		switch {
		case i < g.Dependencies && implied[i]:
			n.carrier[i] = -1
		case a.To >= 0 && in[a.To] == 1:
			n.carrier[i] = a.To
		case out[a.From] == 1:
			n.carrier[i] = a.From
		default:
			n.carrier[i] = int32(len(n.arcs))
			n.arcs = append(n.arcs, arc{tail: end[a.From], head: start[a.To], vertex: dependency})
		}
	}
	n.number(p, start, end)
	n.connect()
	return n
}

// curves lays out the curves' vertices, and the one of dependencies, and returns
// the slowest vertex of each.
func (n *network) curves(curves []dag.Curve) (first []int32, dependency int32) {
	begin := func() int32 {
		n.duration, n.capacity = append(n.duration, never), append(n.capacity, 0)
		return int32(len(n.duration))
	}
	for i := range curves {
		c := &curves[i]
		first = append(first, begin())
		for k := range c.Hull {
			n.duration = append(n.duration, int64(c.Vertex(k).Time))
			if k < len(c.Slope) {
				n.capacity = append(n.capacity, int64(c.Slope[k]))
			} else {
				n.capacity = append(n.capacity, unlimited)
			}
		}
	}
	dependency = begin()
	n.duration, n.capacity = append(n.duration, 0), append(n.capacity, unlimited)
	return first, dependency
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
