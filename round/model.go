package round

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// model is a problem with a relaxed solution, laid out for search in one
// direction of time. Backward, time runs from the end of the iteration, so that
// the successors of an op come before it. Energies are in joules, times in
// nanoseconds and flows in joules per nanosecond; floating point only ranks
// candidates, every sum is made in one fixed order, and products are rounded
// before they are added, so that no CPU may fuse them.
type model struct {
	total int64 // the makespan asked for
	price float64
	order []int32 // ops by relaxed start
	place []int32 // position of each op in order
	nodes []node
	opts  []option
	preds []link
	succs []link
}

// node is an op.
type node struct {
	opt0, opt1   int32 // its range of opts
	pred0, pred1 int32
	succ0, succ1 int32
	fastest      int64
	// flow is the op's, first what comes from the start of the iteration and last
	// what goes to its end.
	flow, first, last float64
	isLast            bool
	// The op's times and its wait for the end of the iteration in relaxed optima.
	least, most, wait int64
}

// option is an option of an op. loss is what it costs more than the best one
// where time costs the op's flow.
type option struct {
	time int64
	loss float64
}

// link is a dependency on or of op. wait is how long the flow lets the later op
// wait in a relaxed optimum: 0, or without limit where there is no flow.
type link struct {
	op   int32
	flow float64
	wait int64
}

// far is a time beyond all others.
const far = int64(1) << 55

const wattPerMicrowatt = 1e-15 // J/ns in a microwatt

// newModel returns the model of s, which must have p's sizes.
func newModel(p *dag.Problem, s *frontier.Solution, backward bool) *model {
	g := p.Graph
	m := &model{total: int64(s.Time), price: float64(s.Price) * wattPerMicrowatt, nodes: make([]node, g.Ops)}
	wait := func(a int32) int64 {
		arc := g.Arcs[a]
		start, end := s.Time, unit.Time(0)
		if arc.To >= 0 {
			start = s.Start[arc.To]
		}
		if arc.From >= 0 {
			end = s.Start[arc.From] + s.Duration[arc.From]
		}
		if s.Flow[a] == 0 {
			return far
		}
		return int64(max(0, start-end))
	}
	// What a rank's order implies would only keep more ends open.
	implied := g.Implied()
	needless := func(a int32) bool { return int(a) < g.Dependencies && implied[a] && s.Flow[a] == 0 }
	starts := make([]unit.Time, g.Ops)
	losses := make(map[flowOf]int32)
	for op := range int32(g.Ops) {
		n := &m.nodes[op]
		before, after := g.In(op), g.Out(op)
		var through unit.Power
		for _, a := range before {
			through += s.Flow[a]
		}
		starts[op] = s.Start[op]
		if backward {
			before, after = after, before
			starts[op] = s.Time - s.Start[op] - s.Duration[op]
		}
		n.flow = float64(through) * wattPerMicrowatt
		n.pred0 = int32(len(m.preds))
		for _, a := range before {
			if needless(a) {
				continue
			}
			flow := float64(s.Flow[a]) * wattPerMicrowatt
			if other := otherEnd(g.Arcs[a], op); other >= 0 {
				m.preds = append(m.preds, link{other, flow, wait(a)})
			} else {
				n.first = flow
			}
		}
		n.pred1 = int32(len(m.preds))
		n.succ0 = int32(len(m.succs))
		for _, a := range after {
			if needless(a) {
				continue
			}
			flow := float64(s.Flow[a]) * wattPerMicrowatt
			if other := otherEnd(g.Arcs[a], op); other >= 0 {
				m.succs = append(m.succs, link{other, flow, wait(a)})
			} else {
				n.last, n.isLast, n.wait = flow, true, wait(a)
			}
		}
		n.succ1 = int32(len(m.succs))
		c := p.Curve(op)
		n.fastest = int64(c.Fastest().Time)
		n.setFace(c, through, s.Duration[op])
		key := flowOf{p.CurveOf[op], through}
		if at, ok := losses[key]; ok {
			n.opt0 = at
		} else {
			n.opt0 = int32(len(m.opts))
			losses[key] = n.opt0
			least := c.Least(through)
			for _, o := range c.Options {
				loss := o.Effective.Widen().Add(unit.Product(through, o.Time)).Sub(least).Joules()
				m.opts = append(m.opts, option{int64(o.Time), loss})
			}
		}
		n.opt1 = n.opt0 + int32(len(c.Options))
	}
	m.order = startOrder(m, starts)
	m.place = make([]int32, g.Ops)
	for i, op := range m.order {
		m.place[op] = int32(i)
	}
	return m
}

// flowOf tells the loss tables of ops apart.
type flowOf struct {
	curve   int32
	through unit.Power
}

func otherEnd(a dag.Arc, op int32) int32 {
	if a.From == op {
		return a.To
	}
	return a.From
}

// setFace sets the range of the op's times in relaxed optima with this flow: the
// vertices of the hull at which the price of time may be the flow.
func (n *node) setFace(c *dag.Curve, through unit.Power, relaxed unit.Time) {
	k := 0
	for k < len(c.Slope) && c.Slope[k] < through {
		k++
	}
	n.most = int64(c.Vertex(k).Time)
	for k < len(c.Slope) && c.Slope[k] <= through {
		k++
	}
	n.least = int64(c.Vertex(k).Time)
	if through == 0 {
		n.most, n.least = far, int64(c.Slowest().Time)
	}
	n.least, n.most = min(n.least, int64(relaxed)), max(n.most, int64(relaxed))
}

func (m *model) options(op int32) []option { return m.opts[m.nodes[op].opt0:m.nodes[op].opt1] }

func (m *model) predecessors(op int32) []link { return m.preds[m.nodes[op].pred0:m.nodes[op].pred1] }

func (m *model) successors(op int32) []link { return m.succs[m.nodes[op].succ0:m.nodes[op].succ1] }

// startOrder returns the ops in the topological order of m that comes closest to
// the order of starts; at equal starts the lowest number is first.
func startOrder(m *model, starts []unit.Time) []int32 {
	waiting := make([]int32, len(m.nodes))
	var ready startHeap
	for op := range int32(len(m.nodes)) {
		if waiting[op] = int32(len(m.predecessors(op))); waiting[op] == 0 {
			ready.push(startItem{starts[op], op})
		}
	}
	order := make([]int32, 0, len(m.nodes))
	for len(ready) > 0 {
		op := ready.pop().op
		order = append(order, op)
		for _, l := range m.successors(op) {
			if waiting[l.op]--; waiting[l.op] == 0 {
				ready.push(startItem{starts[l.op], l.op})
			}
		}
	}
	return order
}

type startItem struct {
	start unit.Time
	op    int32
}

func (a startItem) less(b startItem) bool {
	return a.start < b.start || a.start == b.start && a.op < b.op
}

// startHeap is a binary heap, the earliest first.
type startHeap []startItem

func (h *startHeap) push(x startItem) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0 && s[i].less(s[(i-1)/2]); i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *startHeap) pop() startItem {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < n && s[c+1].less(s[c]) {
			c++
		}
		if c >= n || !s[c].less(s[i]) {
			return top
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}
