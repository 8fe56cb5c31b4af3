package round

import (
	"cmp"
	"math"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Hold returns choice, or, where a rank would keep a clock for less than hold, another choice of options whose makespan is
// at most limit, or that of choice if that is more, and in which every rank keeps each clock for at least hold, as GPUs do
// whose switches take long. ranks has the first op of each rank and then the number of ops: ops are numbered rank by rank
// in execution order. Ops of one option only, as transfers, have no clock and are passed over.
//
// A clock is kept from the start of its first op to the start of the first op with another one, or of the next iteration.
// A rank whose whole iteration is shorter has one clock. In a stretch of equal clocks an op that was not measured at that
// clock, or does better in all ways at a higher one, has the next higher option instead, and one that was measured to be
// slower at a higher clock keeps the faster option; the GPU is to run the highest.
//
// The stretches are chosen rank by rank, at least cost where time costs what choice says it is worth to each op and more
// where that turned out too slow; then each stretch is slowed down as far as the makespan allows. How much is lost is not
// bounded. O(ops·clocks) for each of at most 64 rounds, and O(ops + arcs) for each try of a slower stretch, of which a budget
// of 2²⁸ op visits allows at least a thousand for up to 2¹⁸ ops. The result is the caller's.
func Hold(p *dag.Problem, choice []int32, ranks []int32, hold, limit unit.Time) []int32 {
	h := &holder{p: p, hold: hold, start: make([]unit.Time, p.Graph.Ops), choice: slices.Clone(choice)}
	h.limit = max(limit, h.makespan())
	if h.kept(choice, ranks) || hold <= 0 {
		return h.choice
	}
	for i := range len(ranks) - 1 {
		if r := newHeld(p, ranks[i], ranks[i+1]); len(r.ops) > 0 {
			h.ranks = append(h.ranks, r)
		}
	}
	h.begin(choice)
	h.descend()
	h.lengthen()
	return h.choice
}

type holder struct {
	p           *dag.Problem
	hold, limit unit.Time
	start       []unit.Time
	choice      []int32
	ranks       []*held
	visits      int // ops visited by tries
}

// held is a rank: what its ops take at each clock of any of them.
type held struct {
	ops    []int32
	clocks []int32 // rising
	// option of each op at each clock, op by op.
	option []int32
	exact  []bool
	parts  []stretch
}

// stretch is a run of ops [from, to) of a rank at clocks[clock].
type stretch struct{ from, to, clock int }

func newHeld(p *dag.Problem, from, to int32) *held {
	r := &held{}
	for op := from; op < to; op++ {
		c := p.Curve(op)
		if len(c.Options) < 2 && c.Top.Knobs.ClockMHz == 0 {
			continue
		}
		r.ops = append(r.ops, op)
		for _, o := range c.Options {
			r.clocks = append(r.clocks, o.Knobs.ClockMHz)
		}
	}
	slices.Sort(r.clocks)
	r.clocks = slices.Compact(r.clocks)
	for _, op := range r.ops {
		options := p.Curve(op).Options
		fastest := int32(0) // so far: measurements may say that a higher clock is slower, and no rank is slowed by raising it
		for _, mhz := range r.clocks {
			best := int32(len(options) - 1)
			for k := range options {
				at := &options[k]
				if at.Knobs.ClockMHz >= mhz && at.Knobs.ClockMHz < options[best].Knobs.ClockMHz {
					best = int32(k)
				}
			}
			best = max(best, fastest)
			fastest = best
			r.option = append(r.option, best)
			r.exact = append(r.exact, options[best].Knobs.ClockMHz == mhz)
		}
	}
	return r
}

func (r *held) at(i, clock int) int32 { return r.option[i*len(r.clocks)+clock] }

func (h *holder) makespan() unit.Time {
	return h.p.Graph.Starts(h.start, func(op int32) unit.Time { return h.p.Curve(op).Options[h.choice[op]].Time })
}

// kept tells whether every clock is kept for long enough as it is. h.start holds the starts.
func (h *holder) kept(choice, ranks []int32) bool {
	for i := range len(ranks) - 1 {
		r := newHeld(h.p, ranks[i], ranks[i+1])
		begin := 0
		for k := 1; k <= len(r.ops); k++ {
			clock := func(k int) dag.Knobs { return h.p.Curve(r.ops[k]).Options[choice[r.ops[k]]].Knobs }
			if k < len(r.ops) && clock(k) == clock(begin) {
				continue
			}
			if h.length(r, begin, k) < h.hold && (begin > 0 || k < len(r.ops)) {
				return false
			}
			begin = k
		}
	}
	return true
}

// length returns how long a rank keeps the clock of ops [from, to), as h.start has it.
func (h *holder) length(r *held, from, to int) unit.Time { return h.from(r, to) - h.from(r, from) }

func (h *holder) from(r *held, i int) unit.Time {
	if i == len(r.ops) {
		return h.limit + h.start[r.ops[0]]
	}
	return h.start[r.ops[i]]
}

// rounds bounds how often stretches are chosen anew, and dearer is by how much time costs more on critical ops then.
const (
	rounds = 64
	dearer = 1.3
)

// begin chooses stretches that keep the limit: at worst one for each rank, at its highest clock.
func (h *holder) begin(choice []int32) {
	starts := slices.Clone(h.start)
	price := make([]float64, len(choice)) // pJ/ns
	for op := range price {
		price[op] = priceOf(h.p.Curve(int32(op)), choice[op])
	}
	late := make([]unit.Time, len(choice))
	best, least := []int32(nil), math.Inf(1)
	var parts [][]stretch
	for range rounds {
		for _, r := range h.ranks {
			copy(h.start, starts)
			h.divide(r, price)
			h.apply(r)
		}
		if h.makespan() <= h.limit {
			if cost := h.cost(); cost < least {
				best, least = slices.Clone(h.choice), cost
				parts = parts[:0]
				for _, r := range h.ranks {
					parts = append(parts, slices.Clone(r.parts))
				}
			}
			break
		}
		h.dearer(price, late)
	}
	if best != nil {
		copy(h.choice, best)
		for i, r := range h.ranks {
			r.parts = parts[i]
		}
		return
	}
	for _, r := range h.ranks {
		r.parts = []stretch{{0, len(r.ops), len(r.clocks) - 1}}
		h.apply(r)
	}
}

// priceOf returns what time is worth where an option of a curve is right: the mean of the slopes on its sides.
func priceOf(c *dag.Curve, k int32) float64 {
	slope := func(a, b int32) float64 {
		x, y := &c.Options[a], &c.Options[b]
		return float64(y.Effective-x.Effective) / float64(x.Time-y.Time)
	}
	n := int32(len(c.Options))
	switch {
	case n < 2:
		return 0
	case k == 0:
		return slope(0, 1) / 2
	case k == n-1:
		return slope(n-2, n-1)
	}
	return (slope(k-1, k) + slope(k, k+1)) / 2
}

// dearer raises the price of time of the ops that make the schedule late.
func (h *holder) dearer(price []float64, late []unit.Time) {
	g := h.p.Graph
	time := func(op int32) unit.Time { return h.p.Curve(op).Options[h.choice[op]].Time }
	for i := range late {
		late[i] = h.limit
	}
	order := g.Order()
	for i := len(order) - 1; i >= 0; i-- {
		op := order[i]
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 {
				late[op] = min(late[op], late[to]-time(to))
			}
		}
		if h.start[op]+time(op) > late[op] {
			price[op] = float64(price[op] * dearer)
		}
	}
}

// divide cuts a rank into the stretches of least cost, by the lengths that h.start has. O(ops·clocks).
func (h *holder) divide(r *held, price []float64) {
	const unmeasured = 1e15 // pJ, more than an op takes
	n, f := len(r.ops), len(r.clocks)
	type mark struct {
		cost  float64
		from  int
		clock int
	}
	reached := make([]mark, n+1)
	sum := make([]float64, (n+1)*f) // cost of the first i ops at a clock
	for i, op := range r.ops {
		options := h.p.Curve(op).Options
		for c := range f {
			o := &options[r.at(i, c)]
			cost := float64(o.Effective) + float64(price[op]*float64(o.Time))
			if !r.exact[i*f+c] {
				cost += unmeasured
			}
			sum[(i+1)*f+c] = sum[i*f+c] + cost
		}
	}
	least := make([]mark, f)
	for c := range least {
		least[c].cost = math.Inf(1)
	}
	allowed := 0
	for i := 1; i <= n; i++ {
		for ; allowed < i && (h.length(r, allowed, i) >= h.hold || allowed == 0 && i == n); allowed++ {
			for c := range f {
				if cost := reached[allowed].cost - sum[allowed*f+c]; cost < least[c].cost {
					least[c] = mark{cost, allowed, c}
				}
			}
		}
		reached[i] = mark{cost: math.Inf(1)}
		for c := range f {
			if cost := least[c].cost + sum[i*f+c]; cost < reached[i].cost {
				reached[i] = mark{cost, least[c].from, c}
			}
		}
	}
	r.parts = r.parts[:0]
	for i := n; i > 0; i = reached[i].from {
		m := reached[i]
		if k := len(r.parts) - 1; k >= 0 && r.parts[k].clock == m.clock {
			r.parts[k].from = m.from
			continue
		}
		r.parts = append(r.parts, stretch{m.from, i, m.clock})
	}
	slices.Reverse(r.parts)
}

// apply takes the rank's stretches into the choice.
func (h *holder) apply(r *held) {
	for _, s := range r.parts {
		h.set(r, s)
	}
}

func (h *holder) set(r *held, s stretch) {
	for i := s.from; i < s.to; i++ {
		h.choice[r.ops[i]] = r.at(i, s.clock)
	}
}

// cost returns Σe' in picojoules; it only ranks.
func (h *holder) cost() (sum float64) {
	for op, k := range h.choice {
		sum += float64(h.p.Curve(int32(op)).Options[k].Effective)
	}
	return sum
}

// visitsMax bounds the tries of descend, in ops.
const visitsMax = 1 << 28

// lowering is a lower clock for a stretch.
type lowering struct {
	rank, part, clock int
	gain              float64 // pJ
	slower            unit.Time
}

// descend slows stretches down while the limit allows it: those first that gain most for the time that they take longer.
func (h *holder) descend() {
	for again := true; again; {
		again = false
		var all []lowering
		for i, r := range h.ranks {
			for k, s := range r.parts {
				for c := range s.clock {
					if t, ok := h.lowering(r, s, c); ok {
						t.rank, t.part = i, k
						all = append(all, t)
					}
				}
			}
		}
		slices.SortStableFunc(all, func(a, b lowering) int {
			return cmp.Compare(b.gain*float64(a.slower), a.gain*float64(b.slower))
		})
		for _, t := range all {
			if h.visits > visitsMax {
				return
			}
			r := h.ranks[t.rank]
			s := r.parts[t.part]
			if t.clock >= s.clock {
				continue
			}
			if now, ok := h.lowering(r, s, t.clock); !ok || now.gain < t.gain/2 {
				continue // most of it has been had; what is left comes in the next round
			}
			slower := stretch{s.from, s.to, t.clock}
			h.set(r, slower)
			h.visits += len(h.choice)
			if h.makespan() > h.limit {
				h.set(r, s)
				continue
			}
			r.parts[t.part] = slower
			again = true
		}
	}
}

// lowering returns what a lower clock gains; ok is false where that is nothing.
func (h *holder) lowering(r *held, s stretch, clock int) (t lowering, ok bool) {
	t.clock = clock
	for i := s.from; i < s.to; i++ {
		options := h.p.Curve(r.ops[i]).Options
		a, b := &options[h.choice[r.ops[i]]], &options[r.at(i, clock)]
		if !r.exact[i*len(r.clocks)+clock] && r.exact[i*len(r.clocks)+s.clock] {
			return t, false
		}
		t.gain += float64(a.Effective - b.Effective)
		t.slower += b.Time - a.Time
	}
	return t, t.gain > 0 && t.slower > 0
}

// lengthen joins stretches that turned out too short with the neighbour of the nearer clock, at the higher one of the two.
func (h *holder) lengthen() {
	for again := true; again; {
		again = false
		h.makespan()
		for _, r := range h.ranks {
			for k := 0; len(r.parts) > 1 && k < len(r.parts); k++ {
				s := r.parts[k]
				if h.length(r, s.from, s.to) >= h.hold {
					continue
				}
				left := k - 1
				if k == 0 || k+1 < len(r.parts) && apart(s, r.parts[k+1]) < apart(s, r.parts[k-1]) {
					left = k
				}
				a, b := r.parts[left], r.parts[left+1]
				joined := stretch{a.from, b.to, max(a.clock, b.clock)}
				h.set(r, joined)
				r.parts = slices.Replace(r.parts, left, left+2, joined)
				again = true
				k--
			}
		}
	}
}

func apart(a, b stretch) int { return max(a.clock, b.clock) - min(a.clock, b.clock) }
