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
// among few thousand links instead of all arcs, and moving a third of all nodes
// costs a hundred small steps.
type partition struct {
	// local is a node's time, but for what its cluster adds.
	local   []int64
	cluster []int32
	// clusters holds a range of members each.
	clusters []cluster
	members  []int32
	// fall is how far the late tree has fallen since the partition was made.
	fall int64

	least, most int // nodes in a new cluster, clusters in a partition
	moved       []int32
	kin         []kin

	// Scratch, per cluster: the late clusters' times, marks and tightest arcs.
	lateTime []int64
	mark     []int32
	out, in  []link
	touched  []int32
	tight    []residual
	// Scratch, per node.
	order, count []int32
	stack        []int32
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

// link is the tightest arc from one cluster to another, with its slack where
// both offsets are zero.
type link struct {
	slack int64
	other int32
	arc   residual
}

// noSlack is the slack of a link without an arc.
const noSlack int64 = 1 << 60

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
	p.most = 2*len(p.clusters) + 16
	p.scratch(p.most + 2)
	for c := range p.clusters {
		p.kin[c] = kin{-1, -1, -1, -1}
	}
	for c := range p.clusters {
		if up := s.node[p.clusters[c].root].parent; up >= 0 {
			p.adopt(int32(c), p.cluster[up])
		}
		p.findLinks(s, int32(c))
		links := p.clusters[c].links[:0]
		for _, other := range p.touched {
			links = append(links, p.out[other])
			p.mark[other] = -1
		}
		p.clusters[c].links = links
	}
}

// clusterSize times the square root of the number of nodes is the least size of
// a new cluster; measured, with a flat optimum.
const clusterSize = 0.5

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

func (p *partition) scratch(n int) {
	for len(p.mark) < n {
		p.mark = append(p.mark, -1)
		p.out, p.in = append(p.out, link{}), append(p.in, link{})
		p.lateTime = append(p.lateTime, 0)
		p.kin = append(p.kin, kin{})
	}
}

// crowded says whether so many clusters were split that it is time for a new
// partition.
func (p *partition) crowded() bool { return len(p.clusters) >= p.most }

// findLinks fills touched with the clusters that have an arc with c outside of
// the trees, and out and in with the tightest to and from each.
func (p *partition) findLinks(s *solver, c int32) {
	p.touched = p.touched[:0]
	for _, z := range p.members[p.clusters[c].from:p.clusters[c].to] {
		for _, a := range s.at(z) {
			arc := &s.arcs[a]
			if arc.tree {
				continue
			}
			other := p.cluster[arc.tail] ^ p.cluster[arc.head] ^ c
			if other == c {
				continue
			}
			if p.mark[other] != c {
				p.mark[other] = c
				p.touched = append(p.touched, other)
				p.out[other] = link{noSlack, other, 0}
				p.in[other] = link{noSlack, c, 0}
			}
			p.tighten(s, a, arc, &p.out[other], &p.in[other], z)
		}
	}
}

// tighten takes arc a between z's cluster and another into account, in the links
// out of z's cluster and into it.
func (p *partition) tighten(s *solver, a int32, arc *arc, out, in *link, z int32) {
	tension := p.local[arc.head] - p.local[arc.tail]
	forward, backward := out, in
	if arc.tail != z {
		forward, backward = in, out
	}
	if slack := tension - s.duration[arc.vertex]; slack < forward.slack {
		forward.slack, forward.arc = slack, residual(2*a)
	}
	if slack := s.duration[arc.vertex-1] - tension; slack < backward.slack {
		backward.slack, backward.arc = slack, residual(2*a+1)
	}
}

// relink finds the links of c and those of others to it anew.
func (p *partition) relink(s *solver, c int32) {
	for _, l := range p.clusters[c].links {
		links := p.clusters[l.other].links
		for i := range links {
			if links[i].other == c {
				links[i] = links[len(links)-1]
				p.clusters[l.other].links = links[:len(links)-1]
				break
			}
		}
	}
	p.findLinks(s, c)
	links := p.clusters[c].links[:0]
	for _, other := range p.touched {
		links = append(links, p.out[other])
		o := &p.clusters[other]
		o.links = append(o.links, p.in[other])
		p.mark[other] = -1
	}
	p.clusters[c].links = links
}

// refresh finds the links between two clusters anew.
func (p *partition) refresh(s *solver, a, b int32) {
	if a == b {
		return
	}
	x, y := &p.clusters[a], &p.clusters[b]
	if x.to-x.from > y.to-y.from {
		a, b, x, y = b, a, y, x
	}
	out, in := link{noSlack, b, 0}, link{noSlack, a, 0}
	for _, z := range p.members[x.from:x.to] {
		for _, e := range s.at(z) {
			arc := &s.arcs[e]
			if arc.tree {
				continue
			}
			if p.cluster[arc.tail]^p.cluster[arc.head]^a == b {
				p.tighten(s, e, arc, &out, &in, z)
			}
		}
	}
	x.links = setLink(x.links, out)
	y.links = setLink(y.links, in)
}

func setLink(links []link, l link) []link {
	for i := range links {
		if links[i].other == l.other {
			links[i] = l
			return links
		}
	}
	return append(links, l)
}

// cut is what cutOff did.
type cut struct {
	// rest and piece are the two parts of a cluster that was split.
	rest, piece int32
	split       bool
}

// cutOff moves the piece of tree from x down to the other tree. Parents must be
// as before the move. Where x is not the root of its cluster, that is split; its
// links are then the caller's to find.
func (p *partition) cutOff(s *solver, x int32) cut {
	top := p.cluster[x]
	result := cut{}
	if p.clusters[top].root != x {
		result = cut{rest: top, piece: p.split(s, x), split: true}
		top = result.piece
	}
	p.moved = append(p.moved[:0], top)
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
	return result
}

// split makes a cluster of x and the members of its cluster below it.
func (p *partition) split(s *solver, x int32) int32 {
	c := p.cluster[x]
	old := &p.clusters[c]
	piece := int32(len(p.clusters))
	members := p.members[old.from:old.to]
	// Mark from the root and x down, path by path.
	p.cluster[x] = piece
	mark := p.count
	for _, z := range members {
		mark[z] = 0
	}
	mark[old.root], mark[x] = 1, 2
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
	}
	rest := 0
	for i, z := range members {
		if mark[z] == 1 {
			members[i], members[rest] = members[rest], z
			rest++
		} else {
			p.cluster[z] = piece
		}
	}
	made := cluster{from: old.from + int32(rest), to: old.to, root: x, late: old.late, offset: old.offset}
	old.to = made.from
	if cap(p.clusters) > len(p.clusters) {
		made.links = p.clusters[:len(p.clusters)+1][len(p.clusters)].links[:0]
	}
	p.clusters = append(p.clusters, made)
	p.kin[piece] = kin{-1, -1, -1, -1}
	for child := p.kin[c].child; child >= 0; {
		next := p.kin[child].next
		if p.cluster[s.node[p.clusters[child].root].parent] == piece {
			p.adopt(child, piece)
		}
		child = next
	}
	return piece
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
// O(links).
func (p *partition) descend(s *solver, target unit.Time) bool {
	lateTime := p.lateTime[:len(p.clusters)]
	for c := range p.clusters {
		lateTime[c] = 1 << 61
		if p.clusters[c].late {
			lateTime[c] = p.clusters[c].offset - p.fall
		}
	}
	least := int64(1) << 59
	p.tight = p.tight[:0]
	for c := range p.clusters {
		from := &p.clusters[c]
		if from.late {
			continue
		}
		limit := least + from.offset
		for i := range from.links {
			l := &from.links[i]
			if slack := l.slack + lateTime[l.other]; slack <= limit {
				if slack < limit {
					limit, least = slack, slack-from.offset
					p.tight = p.tight[:0]
				}
				p.tight = append(p.tight, l.arc)
			}
		}
	}
	if left := int64(s.makespan - target); target != noTarget && least >= left {
		p.fall += left
		s.makespan = target
		return false
	}
	p.fall += least
	s.makespan -= unit.Time(least)
	for _, r := range p.tight {
		s.queue.push(s.earlyEnd(r), r)
	}
	return true
}

// offer puts the tight arcs from clusters that have just moved to the early tree
// in the queue.
func (p *partition) offer(s *solver) {
	for _, c := range p.moved {
		from := &p.clusters[c]
		for _, l := range from.links {
			to := &p.clusters[l.other]
			if to.late && l.slack+to.offset-p.fall == from.offset {
				s.queue.push(s.earlyEnd(l.arc), l.arc)
			}
		}
	}
}
