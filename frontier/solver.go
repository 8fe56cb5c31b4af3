package frontier

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// noTarget stops the walk at breakpoints only.
const noTarget unit.Time = -1

// solver is a basis of the network simplex. Its tree arcs form two trees: the
// early one hangs on the source, whose time is fixed, and the late one on the
// sink, whose time is the makespan; as the makespan falls, all of the late tree
// falls with it. An arc of a tree is at a vertex of its curve and takes exactly
// that vertex's duration; any other arc carries a flow between two vertices'
// ranges, so its duration may lie between theirs.
type solver struct {
	*network
	problem *dag.Problem

	makespan unit.Time
	price    unit.Power
	started  bool

	node []node
	partition
	queue queue

	// The ways to the roots of the step to come.
	earlyPath, latePath []int32
}

// node is an event's place in its tree.
type node struct {
	parent int32 // −1 at a root
	arc    int32 // to the parent
	// How much more flow the arc can carry towards the parent and from it.
	up, down int64
}

// residual is an arc in one of its two directions: twice its number, plus one
// where it runs against the arc, that is where flow is taken away.
type residual int32

func (r residual) arc() int32     { return int32(r >> 1) }
func (r residual) backward() bool { return r&1 != 0 }

// ends returns the nodes from and to which r runs.
func (s *solver) ends(r residual) (from, to int32) {
	a := s.arcs[r.arc()]
	if r.backward() {
		return a.head, a.tail
	}
	return a.tail, a.head
}

// newSolver returns the basis at t_max, or nil where there is no op.
func newSolver(p *dag.Problem) *solver {
	if p.Graph.Ops == 0 {
		return nil
	}
	s := &solver{network: newNetwork(p), problem: p}
	s.node = make([]node, s.nodes)
	s.local = append([]int64(nil), s.earliest...)
	s.makespan = unit.Time(s.earliest[s.sink])
	for i := range s.node {
		s.node[i].parent = -1
	}
	for i := range s.arcs {
		a := &s.arcs[i]
		n := &s.node[a.head]
		if n.parent < 0 && s.earliest[a.head] == s.earliest[a.tail]+s.duration[a.vertex] {
			*n = node{parent: a.tail, arc: int32(i), down: s.capacity[a.vertex]}
			a.tree = true
		}
	}
	s.repartition()
	return s
}

// breakpoint walks down to the next time where the price changes, or to target
// if that comes first, and stops before the change. It returns false where the
// makespan cannot fall any more.
func (s *solver) breakpoint(target unit.Time) bool {
	from := s.makespan
	if !s.started {
		if !s.start() {
			return false
		}
		s.started = true
	}
	for {
		r, ok := s.queue.pop()
		if !ok {
			if !s.descend(target) {
				return s.makespan < from
			}
			continue
		}
		if !s.entering(r) {
			continue
		}
		p := s.bottleneck(r)
		if p.amount > 0 && (s.makespan < from || p.amount >= atLeastUnlimited) {
			s.queue.push(s.earlyEnd(r), r)
			return s.makespan < from
		}
		s.pivot(p)
	}
}

// entering says whether r is tight and runs from the early tree to the late one.
func (s *solver) entering(r residual) bool {
	if s.arcs[r.arc()].tree {
		return false
	}
	from, to := s.ends(r)
	return !s.late(from) && s.late(to) && s.time(to)-s.time(from) == s.length(r)
}

func (s *solver) earlyEnd(r residual) int32 {
	from, _ := s.ends(r)
	return from
}

// length returns how much later than its start the end of r must be.
func (s *solver) length(r residual) int64 {
	v := s.arcs[r.arc()].vertex
	if r.backward() {
		return -s.duration[v-1]
	}
	return s.duration[v]
}

// room returns how much flow r can carry until its arc is at the next vertex.
func (s *solver) room(r residual) int64 {
	v := s.arcs[r.arc()].vertex
	if r.backward() {
		v--
	}
	if s.capacity[v] == unlimited {
		return unlimited
	}
	return s.capacity[v] - s.capacity[v-1]
}

// step is a pivot to come.
type step struct {
	enter residual
	// from, in the early tree, and to, in the late one, are the ends of enter.
	from, to int32
	room     int64
	amount   int64
	// leave is the node whose arc to its parent leaves its tree, −1 where enter
	// itself is the bottleneck.
	leave int32
	// early says in which tree leave is.
	early bool
}

// bottleneck finds the most flow that can go from source to sink through r, and
// what limits it: of equals the one nearest to the source. That keeps all of the
// early tree within reach of the source and all of the late tree within reach
// of the sink by arcs with room, so that no basis comes back (Cunningham's rule,
// "A network simplex method", 1976).
func (s *solver) bottleneck(r residual) step {
	p := step{enter: r, leave: -1}
	p.from, p.to = s.ends(r)
	p.room = s.room(r)
	p.amount = unlimited
	s.latePath, s.earlyPath = s.latePath[:0], s.earlyPath[:0]
	for z := p.to; ; {
		n := &s.node[z]
		if n.parent < 0 {
			break
		}
		if n.up < p.amount {
			p.amount, p.leave = n.up, z
			if n.up == 0 {
				return p
			}
		}
		s.latePath = append(s.latePath, z)
		z = n.parent
	}
	if p.room <= p.amount {
		p.amount, p.leave = p.room, -1
	}
	for z := p.from; ; {
		n := &s.node[z]
		if n.parent < 0 {
			break
		}
		if n.down <= p.amount {
			p.amount, p.leave, p.early = n.down, z, true
		}
		s.earlyPath = append(s.earlyPath, z)
		z = n.parent
	}
	return p
}

// pivot sends the flow and exchanges the arcs.
func (s *solver) pivot(p step) {
	if p.amount > 0 {
		s.augment(s.earlyPath, -p.amount)
		s.augment(s.latePath, p.amount)
		s.price += unit.Power(p.amount)
	}
	enter := p.enter.arc()
	if p.leave < 0 {
		if p.enter.backward() {
			s.arcs[enter].vertex--
		} else {
			s.arcs[enter].vertex++
		}
		s.insert(enter)
		return
	}
	if p.enter.backward() {
		s.arcs[enter].vertex--
	}
	s.arcs[enter].tree = true
	s.drop(p.leave, p.early)
	s.cutOff(p.leave)
	if p.early {
		s.hang(p.from, p.leave, node{parent: p.to, arc: enter, up: p.room - p.amount, down: p.amount})
	} else {
		s.hang(p.to, p.leave, node{parent: p.from, arc: enter, up: p.amount, down: p.room - p.amount})
	}
	if s.crowded() {
		s.repartition()
	}
}

// augment sends amount along a path to the root, or from it where amount is
// negative. Going through a list is twice as fast as following parents.
func (s *solver) augment(path []int32, amount int64) {
	for _, z := range path {
		n := &s.node[z]
		n.up -= amount
		n.down += amount
	}
}

// drop takes the arc of x to its parent out of the tree. In the early tree it
// has no room from the parent, in the late one none to it.
func (s *solver) drop(x int32, early bool) {
	a := &s.arcs[s.node[x].arc]
	a.tree = false
	if fromX := a.tail == x; fromX != early { // full: it is to be faster
		a.vertex++
	}
	s.insert(s.node[x].arc)
}

// hang turns the piece of tree below x so that y is its root, and hangs it by
// link on another node.
func (s *solver) hang(y, x int32, link node) {
	for z := y; ; {
		old := s.node[z]
		s.node[z] = link
		c, up := s.cluster[z], int32(-1)
		if link.parent >= 0 {
			up = s.cluster[link.parent]
		}
		if c != up {
			s.clusters[c].root = z
			s.adopt(c, up)
		}
		if z == x {
			return
		}
		link = node{parent: z, arc: old.arc, up: old.down, down: old.up}
		z = old.parent
	}
}

// start sends the first flow, along the longest path, and cuts the tree in two.
// It returns false where that flow has no limit: there is only one time.
func (s *solver) start() bool {
	amount, x := unlimited, int32(-1)
	for z := s.sink; s.node[z].parent >= 0; z = s.node[z].parent {
		if down := s.node[z].down; down <= amount {
			amount, x = down, z
		}
		s.earlyPath = append(s.earlyPath, z)
	}
	if amount >= atLeastUnlimited {
		return false
	}
	s.augment(s.earlyPath, -amount)
	s.price = unit.Power(amount)
	s.drop(x, true)
	s.cutOff(x)
	s.hang(s.sink, x, node{parent: -1})
	return true
}

// flow returns what the arc i carries.
func (s *solver) flow(i int32) unit.Power {
	a := &s.arcs[i]
	flow := s.capacity[a.vertex-1]
	if a.tree {
		// It is the way up of one of its ends. The room to take flow away is what
		// it carries above its base.
		if n := &s.node[a.tail]; n.parent == a.head && n.arc == i {
			flow += n.down
		} else {
			flow += s.node[a.head].up
		}
	}
	return unit.Power(flow)
}

// solution fills into with the present basis' times and flows.
func (s *solver) solution(into *Solution) {
	g := s.problem.Graph
	into.Start = resize(into.Start, g.Ops)
	into.Duration = resize(into.Duration, g.Ops)
	into.Flow = resize(into.Flow, len(g.Arcs))
	for op := range g.Ops {
		a := &s.arcs[op]
		start := s.time(a.tail)
		into.Start[op] = unit.Time(start)
		into.Duration[op] = unit.Time(min(s.time(a.head)-start, s.duration[s.first[op]]))
	}
	for i, carrier := range s.carrier {
		into.Flow[i] = 0
		if carrier >= 0 {
			into.Flow[i] = s.flow(carrier)
		}
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
