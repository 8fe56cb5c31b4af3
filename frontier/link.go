package frontier

// link holds the tightest arcs between a cluster and another, outward and
// inward, with their slacks where both offsets are zero. Each of the two
// clusters has one.
type link struct {
	out, in       int64
	outArc, inArc residual
	other         int32
}

// noSlack is the slack of a link without an arc.
const noSlack int64 = 1 << 60

// findLinks fills touched with c's links, exact.
func (s *solver) findLinks(c int32) {
	s.touched = s.touched[:0]
	for _, z := range s.members[s.clusters[c].from:s.clusters[c].to] {
		for _, a := range s.at(z) {
			arc := &s.arcs[a]
			if arc.tree {
				continue
			}
			other := s.cluster[arc.tail] ^ s.cluster[arc.head] ^ c
			if other == c {
				continue
			}
			if s.slot[other] == 0 {
				s.touched = append(s.touched, link{out: noSlack, in: noSlack, other: other})
				s.slot[other] = int32(len(s.touched))
			}
			s.touched[s.slot[other]-1].tighten(s, a, arc.tail == z)
		}
	}
	for i := range s.touched {
		s.slot[s.touched[i].other] = 0
	}
}

// tighten takes into account the arc a, which runs outward or inward.
func (l *link) tighten(s *solver, a int32, outward bool) {
	arc := &s.arcs[a]
	tension := s.local[arc.head] - s.local[arc.tail]
	forward, backward := tension-s.duration[arc.vertex], s.duration[arc.vertex-1]-tension
	out, outArc, in, inArc := forward, residual(2*a), backward, residual(2*a+1)
	if !outward {
		out, outArc, in, inArc = in, inArc, out, outArc
	}
	if out < l.out {
		l.out, l.outArc = out, outArc
	}
	if in < l.in {
		l.in, l.inArc = in, inArc
	}
}

// mirror returns l as the other cluster has it.
func (l link) mirror(c int32) link {
	return link{out: l.in, in: l.out, outArc: l.inArc, inArc: l.outArc, other: c}
}

// linkOf returns c's link with another cluster, made where there is none.
func (p *partition) linkOf(c, other int32) *link {
	links := p.clusters[c].links
	for i := range links {
		if links[i].other == other {
			return &links[i]
		}
	}
	p.clusters[c].links = append(links, link{out: noSlack, in: noSlack, other: other})
	return &p.clusters[c].links[len(links)]
}

// insert takes into account that arc a has left a tree or moved on its curve.
func (s *solver) insert(a int32) {
	c, d := s.cluster[s.arcs[a].tail], s.cluster[s.arcs[a].head]
	if c == d {
		return
	}
	s.linkOf(c, d).tighten(s, a, true)
	s.linkOf(d, c).tighten(s, a, false)
}

// refresh makes the links between two clusters exact and returns a's.
func (s *solver) refresh(a, b int32) *link {
	x, y := a, b
	if s.clusters[a].to-s.clusters[a].from > s.clusters[b].to-s.clusters[b].from {
		x, y = b, a
	}
	exact := link{out: noSlack, in: noSlack, other: y}
	for _, z := range s.members[s.clusters[x].from:s.clusters[x].to] {
		for _, e := range s.at(z) {
			arc := &s.arcs[e]
			if !arc.tree && s.cluster[arc.tail]^s.cluster[arc.head]^x == y {
				exact.tighten(s, e, arc.tail == z)
			}
		}
	}
	*s.linkOf(x, y) = exact
	*s.linkOf(y, x) = exact.mirror(x)
	return s.linkOf(a, b)
}

// exact says whether c's link l outward is what it was when it was found.
func (s *solver) exact(c int32, l *link) bool {
	if s.arcs[l.outArc.arc()].tree {
		return false
	}
	from, to := s.ends(l.outArc)
	return s.cluster[from] == c && s.cluster[to] == l.other && s.local[to]-s.local[from]-s.length(l.outArc) == l.out
}
