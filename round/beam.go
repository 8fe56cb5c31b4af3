package round

import (
	"math/bits"
	"slices"
)

// beam searches for a better choice in a window of the order, by beam search.
//
// A state is the ends of the ops that still have successors to come. It is worth
// its gap so far (see schedule.gap: the losses of the options chosen and the
// price of all waiting) plus alpha times the price of the way from its ends to
// the nearest relaxed optimum (see face). States with the same ends are one.
type beam struct {
	m *model
	face
	width  int     // states kept
	alpha  float64 // weight of the way to a relaxed optimum
	noise  float64 // losses are raised at random by up to this, in joules
	random uint64  // state of the generator, not zero
	work   int64   // candidates made so far

	slot    []int32   // of each op: where states hold its end
	pending []int32   // of each op: successors still to come in the window
	closing [][]int32 // of each op: those for which it is the last of them
	limit   []int64   // of each position: latest end in any schedule
	free    []int32
	weight  []float64 // of each slot: alpha times the flow
	key     []uint64  // of each slot, for hashes

	ends, nextEnds []int64 // state by state
	gaps, nextGaps []float64
	hash, nextHash []uint64
	trace          [][]step // of each position and state
	tried          []trial
	candidates     []candidate
	table          []int32 // candidates by hash
	x, row, column []float64
	weights        []float64
}

type step struct{ parent, option int32 }

type trial struct {
	option int32
	time   int64
	loss   float64
}

type candidate struct {
	score, gap float64
	end        int64
	hash       uint64
	step
}

func newBeam(m *model) *beam {
	n := len(m.nodes)
	return &beam{
		m: m, random: 1,
		slot: make([]int32, n), pending: make([]int32, n), closing: make([][]int32, n),
		limit: make([]int64, n), trace: make([][]step, n),
		face: face{live: make([][]int32, n+1), distance: make([][]float64, n+1)},
	}
}

// next returns the next number of Marsaglia's xorshift generator (2003).
func (b *beam) next() uint64 {
	b.random ^= b.random << 13
	b.random ^= b.random >> 7
	b.random ^= b.random << 17
	return b.random
}

// window says what to search: the ops at positions from to to−1, those of them
// for which fixed is false.
type window struct {
	from, to int
	fixed    []bool // by op; nil where none is
}

func (w *window) isFree(op int32) bool { return w.fixed == nil || !w.fixed[op] }

// run searches the window and writes the best choice to s.choice; it is false
// where that is none or, with keep, no better than s's own, which then stays among
// the states to the end. Ops outside the window stay as they are in s, whose events
// must be up to date and become stale. The makespan stays within the model's
// total. O(window · width · breadth · open ops).
func (b *beam) run(s *schedule, w window, keep bool) bool {
	m := b.m
	slots := b.assign(w)
	b.setLimits(s, w)
	b.project(s, w, b.slot, b.closing, slots)
	b.reset(s, w, slots)
	own := int32(-1) // the state of s's own choice
	if keep {
		own = 0
	}
	for i := w.from; i < w.to; i++ {
		op := m.order[i]
		mine := b.expand(s, w, i, slots, own)
		if len(b.candidates) == 0 {
			return false
		}
		own = b.choose(i, int(b.slot[op]), slots, mine)
	}
	best := int32(0)
	for i, g := range b.gaps {
		if g < b.gaps[best] {
			best = int32(i)
		}
	}
	if own >= 0 && b.gaps[own] <= b.gaps[best] {
		return false
	}
	for i := w.to - 1; i >= w.from; i-- {
		t := b.trace[i][best]
		s.choice[m.order[i]] = t.option
		best = t.parent
	}
	return true
}

// assign gives a slot to each op whose end a state of the window holds.
func (b *beam) assign(w window) (slots int) {
	m := b.m
	b.free = b.free[:0]
	take := func() int32 {
		if n := len(b.free); n > 0 {
			v := b.free[n-1]
			b.free = b.free[:n-1]
			return v
		}
		slots++
		return int32(slots - 1)
	}
	window := m.order[w.from:w.to]
	for _, op := range window {
		b.pending[op] = 0
		b.closing[op] = b.closing[op][:0]
		for _, l := range m.predecessors(op) {
			b.pending[l.op] = 0
		}
	}
	for _, op := range window {
		for _, l := range m.predecessors(op) {
			if b.pending[l.op]++; b.pending[l.op] == 1 && int(m.place[l.op]) < w.from {
				b.slot[l.op] = take()
			}
		}
	}
	for _, op := range window {
		for _, l := range m.predecessors(op) {
			if b.pending[l.op]--; b.pending[l.op] == 0 {
				b.closing[op] = append(b.closing[op], l.op)
				b.free = append(b.free, b.slot[l.op])
			}
		}
		b.slot[op] = take()
		if b.pending[op] == 0 {
			b.free = append(b.free, b.slot[op]) // nothing reads it
		}
	}
	return slots
}

// setLimits fills limit: no schedule in which an op ends later keeps the makespan.
func (b *beam) setLimits(s *schedule, w window) {
	m := b.m
	for i := w.to - 1; i >= w.from; i-- {
		end := m.total
		for _, l := range m.successors(m.order[i]) {
			at := int(m.place[l.op])
			switch {
			case at >= w.to:
				end = min(end, s.late[l.op]-s.time(l.op))
			case w.isFree(l.op):
				end = min(end, b.limit[at]-m.nodes[l.op].fastest)
			default:
				end = min(end, b.limit[at]-s.time(l.op))
			}
		}
		b.limit[i] = end
	}
}

// reset sets the one state before the window.
func (b *beam) reset(s *schedule, w window, slots int) {
	if need := (b.width + 1) * slots; len(b.ends) < need {
		b.ends, b.nextEnds = make([]int64, need), make([]int64, need)
	}
	for len(b.key) < slots+1 {
		b.key = append(b.key, b.keyOf(len(b.key)))
		b.weight = append(b.weight, 0)
	}
	if n := slots + 2; len(b.x) < n {
		b.x, b.row, b.column, b.weights = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	}
	b.gaps = append(b.gaps[:0], 0)
	b.hash = append(b.hash[:0], 0)
	for _, op := range b.m.order[w.from:w.to] {
		for _, l := range b.m.predecessors(op) {
			if int(b.m.place[l.op]) < w.from {
				b.ends[b.slot[l.op]] = s.early[l.op]
				b.weight[b.slot[l.op]] = float64(b.alpha * b.m.nodes[l.op].flow)
			}
		}
	}
}

// keyOf returns an odd number of good mixture (splitmix64).
func (b *beam) keyOf(i int) uint64 {
	z := uint64(i+1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) | 1
}

// try fills tried with the options of op to try, slowest first.
func (b *beam) try(s *schedule, w window, op int32) {
	b.tried = b.tried[:0]
	opts := b.m.options(op)
	own := s.choice[op]
	if !w.isFree(op) {
		b.tried = append(b.tried, trial{own, opts[own].time, opts[own].loss})
		return
	}
	worst := lossLimit(opts, breadth)
	for k, o := range opts {
		if o.loss <= worst || int32(k) == own || k == len(opts)-1 {
			if b.noise > 0 {
				o.loss += float64(b.noise * float64(b.next()>>40) * (1.0 / (1 << 24)))
			}
			b.tried = append(b.tried, trial{int32(k), o.time, o.loss})
		}
	}
}

// lossLimit returns the n-th least loss of opts, the greatest where there are
// fewer. n is at most 16.
func lossLimit(opts []option, n int) float64 {
	var least [16]float64
	found := 0
	for _, o := range opts {
		if found == n && o.loss >= least[n-1] {
			continue
		}
		if found < n {
			found++
		}
		j := found - 1
		for ; j > 0 && least[j-1] > o.loss; j-- {
			least[j] = least[j-1]
		}
		least[j] = o.loss
	}
	return least[found-1]
}

// expand fills candidates with the states that follow from the op at position i
// and returns the index of the one that follows from s's own choice, or −1.
func (b *beam) expand(s *schedule, w window, i, slots int, own int32) (mine int32) {
	m := b.m
	op := m.order[i]
	n := &m.nodes[op]
	slot := int(b.slot[op])
	b.weight[slot] = float64(b.alpha * n.flow)
	b.try(s, w, op)
	preds, succs := m.predecessors(op), m.successors(op)

	size := 1 << bits.Len(uint(2*len(b.gaps)*len(b.tried)))
	if len(b.table) < size {
		b.table = make([]int32, size)
	}
	table, mask := b.table[:size], uint64(size-1)
	clear(table)

	needed := slices.ContainsFunc(succs, func(l link) bool { return int(m.place[l.op]) < w.to })
	v := b.view(i+1, slot)
	limit := b.limit[i]
	mine = -1
	candidates := b.candidates[:0]
	for state := range b.gaps {
		ends := b.ends[state*slots : (state+1)*slots]
		start := int64(0)
		for _, l := range preds {
			start = max(start, ends[b.slot[l.op]])
		}
		gap := b.gaps[state] + float64(n.first*float64(start))
		for _, l := range preds {
			gap += float64(l.flow * float64(start-ends[b.slot[l.op]]))
		}
		hash := b.hash[state]
		for _, closed := range b.closing[op] {
			at := b.slot[closed]
			hash -= b.key[at] * uint64(ends[at])
		}
		v.set(ends, m.total)
		for _, t := range b.tried {
			end := start + t.time
			if end > limit {
				continue
			}
			c := candidate{gap: gap + t.loss, end: end, hash: hash, step: step{int32(state), t.option}}
			if n.isLast {
				c.gap += float64(n.last * float64(m.total-end))
			}
			for _, l := range succs {
				if int(m.place[l.op]) >= w.to {
					c.gap += float64(l.flow * float64(s.late[l.op]-s.time(l.op)-end))
				}
			}
			if needed {
				c.hash += b.key[slot] * uint64(end)
			}
			c.score = c.gap + v.penalty(end)
			if own == int32(state) && t.option == s.choice[op] {
				mine = int32(len(candidates)) // kept apart, whatever equals it
				candidates = append(candidates, c)
				continue
			}
			at := (c.hash ^ c.hash>>29) & mask
			for table[at] != 0 && candidates[table[at]-1].hash != c.hash {
				at = (at + 1) & mask
			}
			if table[at] == 0 {
				candidates = append(candidates, c)
				table[at] = int32(len(candidates))
			} else if old := &candidates[table[at]-1]; c.score < old.score {
				*old = c
			}
		}
	}
	b.work += int64(len(b.gaps)) * int64(len(b.tried)+1)
	b.candidates = candidates
	return mine
}

// choose makes the best candidates the states and returns which of them is the
// candidate mine.
func (b *beam) choose(i, slot, slots int, mine int32) (own int32) {
	own = -1
	kept := b.candidates
	var saved candidate
	if mine >= 0 {
		saved = kept[mine]
	}
	if len(kept) > b.width {
		selectLeast(kept, b.width)
		kept = kept[:b.width]
	}
	b.nextGaps, b.nextHash = b.nextGaps[:0], b.nextHash[:0]
	trace := b.trace[i][:0]
	put := func(c *candidate) {
		at := len(b.nextGaps) * slots
		copy(b.nextEnds[at:at+slots], b.ends[int(c.parent)*slots:])
		b.nextEnds[at+slot] = c.end
		b.nextGaps = append(b.nextGaps, c.gap)
		b.nextHash = append(b.nextHash, c.hash)
		trace = append(trace, c.step)
	}
	for j := range kept {
		if mine >= 0 && kept[j].step == saved.step {
			own = int32(j)
		}
		put(&kept[j])
	}
	if mine >= 0 && own < 0 {
		own = int32(len(b.nextGaps))
		put(&saved)
	}
	b.trace[i] = trace
	b.ends, b.nextEnds = b.nextEnds, b.ends
	b.gaps, b.nextGaps = b.nextGaps, b.gaps
	b.hash, b.nextHash = b.nextHash, b.hash
	return own
}

// selectLeast reorders c so that the n with the least score come first
// (quickselect; which of equal ones is chosen depends on the input alone).
func selectLeast(c []candidate, n int) {
	low, high := 0, len(c)
	for high-low > 1 {
		first, middle, last := c[low].score, c[(low+high)/2].score, c[high-1].score
		pivot := max(min(first, middle), min(max(first, middle), last))
		i, j := low, high-1
		for i <= j {
			for c[i].score < pivot {
				i++
			}
			for c[j].score > pivot {
				j--
			}
			if i <= j {
				c[i], c[j] = c[j], c[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			high = j + 1
		case n >= i:
			low = i
		default:
			return
		}
	}
}
