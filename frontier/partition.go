package frontier

import (
	"math"
	"slices"

	"github.com/perseus-energy/perseus/unit"
)

// partition cuts the two trees into clusters, connected pieces of about as many
// nodes as there are clusters, after Frederickson ("Data structures for on-line
// updating of minimum spanning trees", 1985). A cluster moves from one tree to
// the other as a whole, by one change of its offset, and for each pair of
// clusters only the tightest arc is kept: so the next arc to enter is found
// among a few hundred clusters instead of all arcs, and moving a third of all
// nodes costs a hundred small steps.
//
// Links and due times are kept lazily: they may be too low, never too high, and
// are put right when they come first.
type partition struct {
	// local is a node's time, but for what its cluster adds.
	local   []int64
	cluster []int32
	// clusters holds a range of members each.
	clusters []cluster
	members  []int32
	kin      []kin
	// due is, for each early cluster, the fall at which its first arc to a late
	// one becomes tight; never for a late cluster.
	due []int64
	// fall is how far the late tree has fallen since the partition was made.
	fall int64

	least, most int // nodes in a new cluster, clusters in a partition
	moved       []int32

	// Scratch, per cluster and per node.
	slot    []int32 // of a cluster's link in the list being made, plus one
	touched []link
	order   []int32
	count   []int32
	stack   []int32
}

type cluster struct {
	from, to int32 // members
	root     int32 // the member whose parent is outside, or a root of a tree
	late     bool
	offset   int64
	links    []link
}

// kin is a cluster's place in the tree of clusters; −1 stands for none.
type kin struct{ up, child, next, previous int32 }

// time returns the time of an event.
func (p *partition) time(node int32) int64 {
	c := &p.clusters[p.cluster[node]]
	if c.late {
		return p.local[node] + c.offset - p.fall
	}
	return p.local[node] + c.offset
}

func (p *partition) late(node int32) bool { return p.clusters[p.cluster[node]].late }

// repartition cuts the trees afresh and finds all links.
func (s *solver) repartition() {
	n := int(s.nodes)
	if s.cluster == nil {
		s.cluster = make([]int32, n)
		s.members = make([]int32, n)
		s.order, s.count = make([]int32, 0, n), make([]int32, n)
		s.least = max(4, int(clusterSize*math.Sqrt(float64(n))))
	} else {
		for z := range s.local {
			s.local[z] = s.time(int32(z))
		}
	}
	s.fall = 0
	s.leavesFirst()
	s.cutClusters()
	s.fillMembers()
	s.most = int(crowding*float64(len(s.clusters))) + 16
	s.grow(s.most + 2)
	for c := range s.clusters {
		s.kin[c] = kin{-1, -1, -1, -1}
	}
	for c := range s.clusters {
		if up := s.node[s.clusters[c].root].parent; up >= 0 {
			s.adopt(int32(c), s.cluster[up])
		}
		s.findLinks(int32(c))
		s.clusters[c].links = append(s.clusters[c].links[:0], s.touched...)
	}
	for c := range s.clusters {
		s.setDue(int32(c))
	}
}

// leavesFirst fills order with the nodes, each after all below it.
func (s *solver) leavesFirst() {
	clear(s.count) // of children still to come
	for z := range s.node {
		if up := s.node[z].parent; up >= 0 {
			s.count[up]++
		}
	}
	s.order = s.order[:0]
	for z := range s.nodes {
		for z >= 0 && s.count[z] == 0 {
			s.order = append(s.order, z)
			s.count[z] = -1
			if z = s.node[z].parent; z >= 0 {
				s.count[z]--
			}
		}
	}
}

// cutClusters makes a cluster of whatever hangs together, from the leaves up, and
// has grown to the least size. The links of old clusters are reused.
func (s *solver) cutClusters() {
	size := s.count
	for z := range size {
		size[z] = 1
	}
	old := s.clusters
	s.clusters = s.clusters[:0]
	add := func(root int32) int32 {
		var links []link
		if k := len(s.clusters); k < cap(old) {
			links = old[:cap(old)][k].links[:0]
		}
		s.clusters = append(s.clusters, cluster{root: root, links: links})
		return int32(len(s.clusters) - 1)
	}
	for _, z := range s.order {
		up := s.node[z].parent
		if up < 0 || int(size[z]) >= s.least {
			s.cluster[z] = add(z)
			continue
		}
		size[up] += size[z]
		s.cluster[z] = -1
	}
	for _, z := range slices.Backward(s.order) {
		up := s.node[z].parent
		if s.cluster[z] < 0 {
			s.cluster[z] = s.cluster[up]
			continue
		}
		c := &s.clusters[s.cluster[z]]
		if up >= 0 {
			c.late = s.clusters[s.cluster[up]].late
		} else {
			c.late = s.started && z == s.sink
		}
	}
}

// clusterSize times the square root of the number of nodes is the least size of
// a new cluster, and a partition is made anew when its clusters have become
// crowding times as many. Both were measured; the optimum is flat.
const (
	clusterSize = 0.4
	crowding    = 4
)

func (p *partition) fillMembers() {
	for _, c := range p.cluster {
		p.clusters[c].to++
	}
	var at int32
	for i := range p.clusters {
		c := &p.clusters[i]
		c.from, at, c.to = at, at+c.to, at
	}
	for z, k := range p.cluster {
		c := &p.clusters[k]
		p.members[c.to] = int32(z)
		c.to++
	}
}

func (p *partition) grow(n int) {
	for len(p.slot) < n {
		p.slot = append(p.slot, 0)
		p.kin = append(p.kin, kin{})
		p.due = append(p.due, never)
	}
}

// crowded says whether so many clusters were split that it is time for a new
// partition.
func (p *partition) crowded() bool { return len(p.clusters) >= p.most }

// setDue computes when c's first link to a late cluster becomes tight.
func (p *partition) setDue(c int32) {
	from := &p.clusters[c]
	if from.late {
		p.due[c] = never
		return
	}
	due := never
	for i := range from.links {
		l := &from.links[i]
		if to := &p.clusters[l.other]; to.late {
			due = min(due, l.out+to.offset)
		}
	}
	p.due[c] = due - from.offset
}

// cutOff moves the piece of tree from x down to the other tree. Parents must be
// as before the move; the arc above x has left the tree.
func (s *solver) cutOff(x int32) {
	if s.clusters[s.cluster[x]].root != x {
		s.split(x)
	}
	s.moved = append(s.moved[:0], s.cluster[x])
	for i := 0; i < len(s.moved); i++ {
		for c := s.kin[s.moved[i]].child; c >= 0; c = s.kin[c].next {
			s.moved = append(s.moved, c)
		}
	}
	for _, c := range s.moved {
		m := &s.clusters[c]
		if m.late = !m.late; m.late {
			m.offset += s.fall
		} else {
			m.offset -= s.fall
		}
	}
	for _, c := range s.moved {
		m := &s.clusters[c]
		if !m.late {
			s.arrive(c)
			continue
		}
		s.due[c] = never
		for i := range m.links {
			l := &m.links[i]
			if from := &s.clusters[l.other]; !from.late {
				s.due[l.other] = min(s.due[l.other], l.in+m.offset-from.offset)
			}
		}
	}
}

// arrive sets the due time of a cluster that has become early, and puts its
// tight arcs in the queue.
func (s *solver) arrive(c int32) {
	from := &s.clusters[c]
	due := never
	now := s.fall + from.offset
	for i := range from.links {
		l := &from.links[i]
		to := &s.clusters[l.other]
		if !to.late {
			continue
		}
		at := l.out + to.offset
		due = min(due, at)
		if at == now {
			s.queue.push(s.earlyEnd(l.outArc), l.outArc)
		}
	}
	s.due[c] = due - from.offset
}

// split cuts x's cluster above x. The smaller part becomes a new cluster; the
// larger one keeps its number and its links, which may now be too low.
func (s *solver) split(x int32) {
	c := s.cluster[x]
	old := s.clusters[c]
	members := s.members[old.from:old.to]
	// Mark from the root and x down, path by path.
	mark := s.count
	for _, z := range members {
		mark[z] = 0
	}
	const upper, lower = 1, 2
	mark[old.root], mark[x] = upper, lower
	size := 0
	for _, z := range members {
		at := z
		s.stack = s.stack[:0]
		for mark[at] == 0 {
			s.stack = append(s.stack, at)
			at = s.node[at].parent
		}
		known := mark[at]
		for _, at := range s.stack {
			mark[at] = known
		}
		if mark[z] == lower {
			size++
		}
	}
	// The new cluster takes the end of the range.
	part, made := int32(len(s.clusters)), old
	made.links = nil
	if cap(s.clusters) > len(s.clusters) {
		made.links = s.clusters[:part+1][part].links[:0]
	}
	goes := int32(lower)
	if 2*size > len(members) {
		goes = upper
	}
	stay := 0
	for i, z := range members {
		if mark[z] == goes {
			s.cluster[z] = part
		} else {
			members[i], members[stay] = members[stay], z
			stay++
		}
	}
	made.from = old.from + int32(stay)
	s.clusters = append(s.clusters, made)
	s.clusters[c].to = made.from
	s.kin[part] = kin{-1, -1, -1, -1}
	s.due[part] = s.due[c]
	if goes == lower {
		s.clusters[part].root = x
		s.adopt(part, c)
	} else {
		s.clusters[c].root = x
		s.adopt(part, s.kin[c].up)
		s.adopt(c, part)
	}
	for child := s.kin[c].child; child >= 0; {
		next := s.kin[child].next
		if child != part && s.cluster[s.node[s.clusters[child].root].parent] == part {
			s.adopt(child, part)
		}
		child = next
	}
	s.findLinks(part)
	s.clusters[part].links = append(s.clusters[part].links, s.touched...)
	for _, l := range s.touched {
		o := &s.clusters[l.other]
		o.links = append(o.links, l.mirror(part))
	}
}

// adopt moves cluster c below another, or below none.
func (p *partition) adopt(c, up int32) {
	k := &p.kin[c]
	if k.next >= 0 {
		p.kin[k.next].previous = k.previous
	}
	switch {
	case k.previous >= 0:
		p.kin[k.previous].next = k.next
	case k.up >= 0:
		p.kin[k.up].child = k.next
	}
	k.up, k.previous, k.next = up, -1, -1
	if up >= 0 {
		k.next = p.kin[up].child
		p.kin[up].child = c
		if k.next >= 0 {
			p.kin[k.next].previous = c
		}
	}
}

// descend lets the late tree fall until an arc from the early tree to it is
// tight, and puts all such arcs in the queue; or until target, and returns false.
// O(clusters), and O(members) for each link that has to be put right.
func (s *solver) descend(target unit.Time) bool {
	due := s.due[:len(s.clusters)]
	for len(s.queue.heap) == 0 {
		first := never
		for _, d := range due {
			first = min(first, d)
		}
		if left := int64(s.makespan - target); target != noTarget && first-s.fall >= left {
			s.fall += left
			s.makespan = target
			return false
		}
		for c, d := range due {
			if d == first {
				s.check(int32(c))
			}
		}
		if len(s.queue.heap) > 0 {
			s.makespan -= unit.Time(first - s.fall)
			s.fall = first
		}
	}
	return true
}

// check puts the arcs of early cluster c in the queue that are tight when it is
// due, after putting right the links that say so, and sets when it is due next.
func (s *solver) check(c int32) {
	due := s.due[c] + s.clusters[c].offset
	next := never
	for i := 0; i < len(s.clusters[c].links); i++ {
		l := &s.clusters[c].links[i]
		to := &s.clusters[l.other]
		if !to.late {
			continue
		}
		at := l.out + to.offset
		if at == due && !s.exact(c, l) {
			l = s.refresh(c, l.other)
			at = l.out + to.offset
		}
		if at == due {
			s.queue.push(s.earlyEnd(l.outArc), l.outArc)
		}
		next = min(next, at)
	}
	s.due[c] = next - s.clusters[c].offset
}
