package frontier

import (
	"math"

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

// newPartition cuts the trees afresh: from the leaves up, whatever hangs
// together and has grown to size is a cluster.
func (p *partition) newPartition(s *solver) {
	n := int(s.nodes)
	if p.cluster == nil {
		p.cluster = make([]int32, n)
		p.members = make([]int32, n)
		p.order, p.count = make([]int32, 0, n), make([]int32, n)
		p.least = max(4, int(clusterSize*math.Sqrt(float64(n))))
	} else {
		for z := range p.local {
			p.local[z] = p.time(int32(z))
		}
	}
	p.fall = 0

	// Order the nodes from the leaves to the roots, counting children.
	clear(p.count)
	for z := range s.node {
		if up := s.node[z].parent; up >= 0 {
			p.count[up]++
		}
	}
	p.order = p.order[:0]
	for z := range int32(n) {
		for z >= 0 && p.count[z] == 0 {
			p.order = append(p.order, z)
			p.count[z] = -1
			if z = s.node[z].parent; z >= 0 {
				p.count[z]--
			}
		}
	}
	size := p.count
	for z := range size {
		size[z] = 1
	}
	old := p.clusters
	lateRoot := s.started
	p.clusters = p.clusters[:0]
	add := func(root int32) int32 {
		var links []link
		if k := len(p.clusters); k < cap(old) {
			links = old[:cap(old)][k].links[:0]
		}
		p.clusters = append(p.clusters, cluster{root: root, links: links})
		return int32(len(p.clusters) - 1)
	}
	for _, z := range p.order {
		up := s.node[z].parent
		if up < 0 || int(size[z]) >= p.least {
			p.cluster[z] = add(z)
			continue
		}
		size[up] += size[z]
		p.cluster[z] = -1
	}
	for i := n - 1; i >= 0; i-- {
		z := p.order[i]
		up := s.node[z].parent
		if p.cluster[z] < 0 {
			p.cluster[z] = p.cluster[up]
			continue
		}
		c := &p.clusters[p.cluster[z]]
		if up >= 0 {
			c.late = p.clusters[p.cluster[up]].late
		} else {
			c.late = lateRoot && z == s.sink
		}
	}
	p.fillMembers()
	p.most = int(crowding*float64(len(p.clusters))) + 16
	p.grow(p.most + 2)
	for c := range p.clusters {
		p.kin[c] = kin{-1, -1, -1, -1}
	}
	for c := range p.clusters {
		if up := s.node[p.clusters[c].root].parent; up >= 0 {
			p.adopt(int32(c), p.cluster[up])
		}
		p.findLinks(s, int32(c))
		p.clusters[c].links = append(p.clusters[c].links[:0], p.touched...)
	}
	for c := range p.clusters {
		p.setDue(int32(c))
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
func (p *partition) cutOff(s *solver, x int32) {
	if p.clusters[p.cluster[x]].root != x {
		p.split(s, x)
	}
	p.moved = append(p.moved[:0], p.cluster[x])
	for i := 0; i < len(p.moved); i++ {
		for c := p.kin[p.moved[i]].child; c >= 0; c = p.kin[c].next {
			p.moved = append(p.moved, c)
		}
	}
	for _, c := range p.moved {
		m := &p.clusters[c]
		if m.late = !m.late; m.late {
			m.offset += p.fall
		} else {
			m.offset -= p.fall
		}
	}
	for _, c := range p.moved {
		m := &p.clusters[c]
		if !m.late {
			p.arrive(s, c)
			continue
		}
		p.due[c] = never
		for i := range m.links {
			l := &m.links[i]
			if from := &p.clusters[l.other]; !from.late {
				p.due[l.other] = min(p.due[l.other], l.in+m.offset-from.offset)
			}
		}
	}
}

// arrive sets the due time of a cluster that has become early, and puts its
// tight arcs in the queue.
func (p *partition) arrive(s *solver, c int32) {
	from := &p.clusters[c]
	due := never
	now := p.fall + from.offset
	for i := range from.links {
		l := &from.links[i]
		to := &p.clusters[l.other]
		if !to.late {
			continue
		}
		at := l.out + to.offset
		due = min(due, at)
		if at == now {
			s.queue.push(s.earlyEnd(l.outArc), l.outArc)
		}
	}
	p.due[c] = due - from.offset
}

// split cuts x's cluster above x. The smaller part becomes a new cluster; the
// larger one keeps its number and its links, which may now be too low.
func (p *partition) split(s *solver, x int32) {
	c := p.cluster[x]
	old := p.clusters[c]
	members := p.members[old.from:old.to]
	// Mark from the root and x down, path by path.
	mark := p.count
	for _, z := range members {
		mark[z] = 0
	}
	const upper, lower = 1, 2
	mark[old.root], mark[x] = upper, lower
	size := 0
	for _, z := range members {
		at := z
		p.stack = p.stack[:0]
		for mark[at] == 0 {
			p.stack = append(p.stack, at)
			at = s.node[at].parent
		}
		known := mark[at]
		for _, at := range p.stack {
			mark[at] = known
		}
		if mark[z] == lower {
			size++
		}
	}
	// The new cluster takes the end of the range.
	part, made := int32(len(p.clusters)), old
	made.links = nil
	if cap(p.clusters) > len(p.clusters) {
		made.links = p.clusters[:part+1][part].links[:0]
	}
	goes := int32(lower)
	if 2*size > len(members) {
		goes = upper
	}
	stay := 0
	for i, z := range members {
		if mark[z] == goes {
			p.cluster[z] = part
		} else {
			members[i], members[stay] = members[stay], z
			stay++
		}
	}
	made.from = old.from + int32(stay)
	p.clusters = append(p.clusters, made)
	p.clusters[c].to = made.from
	p.kin[part] = kin{-1, -1, -1, -1}
	p.due[part] = p.due[c]
	if goes == lower {
		p.clusters[part].root = x
		p.adopt(part, c)
	} else {
		p.clusters[c].root = x
		p.adopt(part, p.kin[c].up)
		p.adopt(c, part)
	}
	for child := p.kin[c].child; child >= 0; {
		next := p.kin[child].next
		if child != part && p.cluster[s.node[p.clusters[child].root].parent] == part {
			p.adopt(child, part)
		}
		child = next
	}
	p.findLinks(s, part)
	p.clusters[part].links = append(p.clusters[part].links, p.touched...)
	for _, l := range p.touched {
		o := &p.clusters[l.other]
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
func (p *partition) descend(s *solver, target unit.Time) bool {
	due := p.due[:len(p.clusters)]
	for len(s.queue.heap) == 0 {
		first := never
		for _, d := range due {
			first = min(first, d)
		}
		if left := int64(s.makespan - target); target != noTarget && first-p.fall >= left {
			p.fall += left
			s.makespan = target
			return false
		}
		for c, d := range due {
			if d == first {
				p.check(s, int32(c))
			}
		}
		if len(s.queue.heap) > 0 {
			s.makespan -= unit.Time(first - p.fall)
			p.fall = first
		}
	}
	return true
}

// check puts the arcs of early cluster c in the queue that are tight when it is
// due, after putting right the links that say so, and sets when it is due next.
func (p *partition) check(s *solver, c int32) {
	due := p.due[c] + p.clusters[c].offset
	next := never
	for i := 0; i < len(p.clusters[c].links); i++ {
		l := &p.clusters[c].links[i]
		to := &p.clusters[l.other]
		if !to.late {
			continue
		}
		at := l.out + to.offset
		if at == due && !p.exact(s, c, l) {
			l = p.refresh(s, c, l.other)
			at = l.out + to.offset
		}
		if at == due {
			s.queue.push(s.earlyEnd(l.outArc), l.outArc)
		}
		next = min(next, at)
	}
	p.due[c] = next - p.clusters[c].offset
}
