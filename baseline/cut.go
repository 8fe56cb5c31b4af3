package baseline

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/simulate"
)

// cutter is the state of the iterative graph cut. Nodes are events: 2·op when an
// op starts, 2·op+1 when it ends, then the iteration's start and end. Edges are
// the ops, by number, then the dependencies, as the graph's arcs.
type cutter struct {
	p        *simulate.Pipeline
	ops      []publishedOp
	duration []int64 // by op, in units

	source, sink int32
	order        []int32 // nodes in topological order
	from, to     []int32 // by edge
	out, in      [][]int32
	flow         []int64 // by edge
	low, high    []int64 // by edge: bounds of the flow
	early, late  []int64 // by node
	tight        []bool  // by edge: on a longest path
	makespan     int64

	level, next []int32 // by node: of the blocking flow
	queue       []int32
}

// unbounded is a flow that no finite cut has: costs are far below a GJ.
const unbounded int64 = 1 << 60

func (c *cutter) prepare() {
	g := c.p.Problem.Graph
	n := int32(2 * g.Ops)
	c.source, c.sink = n, n+1
	for op := range int32(g.Ops) {
		c.duration = append(c.duration, c.ops[c.p.Problem.CurveOf[op]].max)
		c.from, c.to = append(c.from, 2*op), append(c.to, 2*op+1)
	}
	for _, a := range g.Arcs {
		from, to := 2*a.From+1, 2*a.To
		if a.From == dag.Source {
			from = c.source
		}
		if a.To == dag.Sink {
			to = c.sink
		}
		c.from, c.to = append(c.from, from), append(c.to, to)
	}
	c.out, c.in = make([][]int32, n+2), make([][]int32, n+2)
	for e := range c.from {
		c.out[c.from[e]] = append(c.out[c.from[e]], int32(e))
		c.in[c.to[e]] = append(c.in[c.to[e]], int32(e))
	}
	c.order = append(c.order, c.source)
	for _, op := range g.Order() {
		c.order = append(c.order, 2*op, 2*op+1)
	}
	c.order = append(c.order, c.sink)
	edges := len(c.from)
	c.flow, c.low, c.high, c.tight = make([]int64, edges), make([]int64, edges), make([]int64, edges), make([]bool, edges)
	for e := range c.high {
		c.high[e] = unbounded
	}
	c.early, c.late = make([]int64, n+2), make([]int64, n+2)
	c.level, c.next = make([]int32, n+2), make([]int32, n+2)
}

func (c *cutter) length(e int32) int64 {
	if int(e) < len(c.duration) {
		return c.duration[e]
	}
	return 0
}

// critical finds the edges on longest paths and their capacities.
func (c *cutter) critical() {
	clear(c.early)
	for _, v := range c.order {
		for _, e := range c.out[v] {
			c.early[c.to[e]] = max(c.early[c.to[e]], c.early[v]+c.length(e))
		}
	}
	c.makespan = c.early[c.sink]
	for i := len(c.order) - 1; i >= 0; i-- {
		v := c.order[i]
		c.late[v] = c.makespan
		for _, e := range c.out[v] {
			c.late[v] = min(c.late[v], c.late[c.to[e]]-c.length(e))
		}
	}
	for e := range c.tight {
		u, v := c.from[e], c.to[e]
		c.tight[e] = c.early[u] == c.late[u] && c.early[v] == c.late[v] && c.early[u]+c.length(int32(e)) == c.early[v]
	}
	for op, d := range c.duration {
		o := &c.ops[c.p.Problem.CurveOf[op]]
		c.low[op], c.high[op] = 0, unbounded
		if d < o.max {
			c.low[op] = o.slope[d-o.min]
		}
		if d > o.min {
			c.high[op] = max(o.slope[d-o.min-1], c.low[op])
		}
	}
}

// cut finds a minimum cut of the critical edges, and moves it by a unit. It
// returns the change of cost in joules, or false where the cost has no bound.
func (c *cutter) cut() (change float64, ok bool) {
	for c.levels() {
		clear(c.next)
		for {
			pushed := c.push(c.source, unbounded)
			if pushed >= unbounded {
				return 0, false
			}
			if pushed == 0 {
				break
			}
		}
	}
	for op := range c.duration {
		if !c.tight[op] {
			continue
		}
		o := &c.ops[c.p.Problem.CurveOf[op]]
		before := c.duration[op]
		switch s, t := c.level[2*op] >= 0, c.level[2*op+1] >= 0; {
		case s && !t:
			if before == o.min {
				return 0, false
			}
			c.duration[op]--
		case !s && t && before < o.max:
			c.duration[op]++
		default:
			continue
		}
		change += o.cost(c.duration[op]) - o.cost(before)
	}
	return change, true
}

// levels numbers the nodes that the source reaches in the residual graph by
// distance, −1 the others, and says whether the sink is among them.
func (c *cutter) levels() bool {
	for v := range c.level {
		c.level[v] = -1
	}
	c.level[c.source] = 0
	c.queue = append(c.queue[:0], c.source)
	for i := 0; i < len(c.queue); i++ {
		v := c.queue[i]
		for _, e := range c.out[v] {
			if w := c.to[e]; c.tight[e] && c.level[w] < 0 && c.flow[e] < c.high[e] {
				c.level[w] = c.level[v] + 1
				c.queue = append(c.queue, w)
			}
		}
		for _, e := range c.in[v] {
			if w := c.from[e]; c.tight[e] && c.level[w] < 0 && c.flow[e] > c.low[e] {
				c.level[w] = c.level[v] + 1
				c.queue = append(c.queue, w)
			}
		}
	}
	return c.level[c.sink] >= 0
}

// push sends flow from v to the sink along rising levels, at most limit, and
// returns how much (Dinic, 1970).
func (c *cutter) push(v int32, limit int64) int64 {
	if v == c.sink {
		return limit
	}
	out, in := c.out[v], c.in[v]
	for ; int(c.next[v]) < len(out)+len(in); c.next[v]++ {
		k := int(c.next[v])
		if k < len(out) {
			e := out[k]
			w := c.to[e]
			if room := c.high[e] - c.flow[e]; c.tight[e] && room > 0 && c.level[w] == c.level[v]+1 {
				if c.high[e] == unbounded {
					room = unbounded
				}
				if f := c.push(w, min(limit, room)); f > 0 {
					c.flow[e] += f
					return f
				}
			}
			continue
		}
		e := in[k-len(out)]
		w := c.from[e]
		if room := c.flow[e] - c.low[e]; c.tight[e] && room > 0 && c.level[w] == c.level[v]+1 {
			if f := c.push(w, min(limit, room)); f > 0 {
				c.flow[e] -= f
				return f
			}
		}
	}
	return 0
}
