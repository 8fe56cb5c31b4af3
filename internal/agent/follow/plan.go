// Package follow decides when a GPU is asked for which clock, from what a training process says of its ops and from the
// schedules of the server. It is pure: times come in with events and go out with requests, as durations since an
// unknown start of the clock that the events carry. Package agent feeds it and carries its requests out.
//
// # Rules
//
// The clock of an op is asked for one switch latency before the op is expected to begin, so that it is there in time:
// a little earlier when the clock rises and a little later when it falls, so that what is mispredicted costs energy and
// not time. A clock that is asked for already is not asked for again.
//
// Neighbouring ops are merged, and then share the highest clock among them, as long as a stretch of equal clocks is
// shorter than 1.25 latencies, as a request that follows so soon would take the one before back, or than 10 ms, as calls
// of the driver share a lock. The shortest stretch is merged with the neighbour of the nearer clock. A server that knows the
// latency makes plans in which no stretch is as short, so that nothing is merged. With switching by phase the ops before the first backward, those after
// the last forward and those between are a stretch each; by step there is one for the whole iteration.
//
// An iteration whose ops differ from the plan runs at the highest clock from then on to its end. So do evaluations.
package follow

import (
	"math"
	"slices"
	"time"
)

// Mode says how a plan chooses clocks.
type Mode int

// The modes.
const (
	Maximum Mode = iota // the GPU's own choice
	Uniform             // one clock an iteration: those of the instructions in turn
	Planned             // one clock an op
)

// Switching says how often clocks may change.
type Switching string

// The kinds of switching.
const (
	// Auto is Fine where the plan holds clocks for long enough, or half of the ops take three latencies or more, else
	// Phase where half of the phases do, else Step.
	Auto  Switching = "auto"
	Fine  Switching = "fine"
	Phase Switching = "phase"
	Step  Switching = "step"
)

// Own is the clock of a GPU that nobody asks for one: the highest that it can keep.
const Own = 0

// Op is one op of an iteration, in execution order.
type Op struct {
	Instruction       string
	Stage, Microbatch int
	MHz               int
	// Start is expected within the iteration, Time how long it takes.
	Start, Time time.Duration
}

// Plan is what the server asks for.
type Plan struct {
	Version int64
	// From is the first iteration that it holds for.
	From int64
	Mode Mode
	// Ops are those of a Planned one; else, where they are given, only their order is compared.
	Ops []Op
	// MHz holds the clock of each instruction of a Uniform one.
	MHz map[string]int
	// Iteration is how long one is expected to take.
	Iteration time.Duration
	// Hold is how long each clock was planned to be kept at least; 0: that was not planned for.
	Hold time.Duration
}

// shortest is how many latencies a stretch of equal clocks lasts at least, and least how long in any case.
const (
	shortest = 1.25
	least    = 10 * time.Millisecond
)

// prepared is a plan with the clocks that will really be asked for.
type prepared struct {
	Plan
	clocks []int // of each op of a Planned one, merged
	next   []int // index of the next op with another clock, len(clocks) where there is none
	turns  []int // clocks of a Uniform one, from the highest down
	merged int   // ops whose clock is another than planned
	// changes is how often the clock changes within an iteration.
	changes int
}

// higher returns the faster of two clocks.
func higher(a, b int) int {
	if a == Own || b == Own {
		return Own
	}
	return max(a, b)
}

// distance returns how far two clocks are apart. Own is above all.
func distance(a, b int) int {
	number := func(mhz int) int {
		if mhz == Own {
			return math.MaxInt32
		}
		return mhz
	}
	return max(number(a), number(b)) - min(number(a), number(b))
}

// mostStretches is how many stretches are merged one by one; a plan with more, of ops far shorter than a switch on any
// GPU, gets one clock.
const mostStretches = 4096

// prepare returns p with the clocks that s and the latencies allow. O(ops + stretches²).
func prepare(p Plan, s Switching, latency func(mhz int) time.Duration) prepared {
	r := prepared{Plan: p}
	switch p.Mode {
	case Uniform:
		for _, mhz := range p.MHz {
			r.turns = append(r.turns, mhz)
		}
		slices.SortFunc(r.turns, func(a, b int) int { return rank(b) - rank(a) })
		r.turns = slices.Compact(r.turns)
	case Planned:
		stretches := stretch(p, s, latency)
		if len(stretches) > mostStretches {
			stretches = stretch(p, Step, latency)
		}
		stretches = merge(stretches, latency)
		r.clocks = make([]int, len(p.Ops))
		for _, v := range stretches {
			for i := v.from; i < v.to; i++ {
				r.clocks[i] = v.mhz
				if p.Ops[i].MHz != v.mhz {
					r.merged++
				}
			}
		}
		r.next = make([]int, len(p.Ops))
		for i := len(p.Ops) - 1; i >= 0; i-- {
			switch {
			case i == len(p.Ops)-1:
				r.next[i] = i + 1
			case r.clocks[i] != r.clocks[i+1]:
				r.next[i] = i + 1
				r.changes++
			default:
				r.next[i] = r.next[i+1]
			}
		}
	}
	return r
}

// rank orders clocks.
func rank(mhz int) int {
	if mhz == Own {
		return math.MaxInt32
	}
	return mhz
}

// clockOf returns the clock of op i of an iteration; of its first op where it has no plan by op.
func (p *prepared) clockOf(iteration int64, i int) int {
	switch {
	case p.Mode == Uniform && len(p.turns) > 0:
		return p.turns[int(max(iteration, 0)%int64(len(p.turns)))]
	case p.Mode == Planned && len(p.clocks) > 0:
		return p.clocks[min(i, len(p.clocks)-1)]
	}
	return Own
}

// segment is a stretch of ops [from, to) with one clock.
type segment struct {
	from, to int
	mhz      int
	length   time.Duration // until the next one begins
}

// stretch cuts a plan's ops into stretches that s allows.
func stretch(p Plan, s Switching, latency func(int) time.Duration) []segment {
	if s == Auto || s == "" {
		s = automatic(p, latency)
	}
	var out []segment
	first, last := phases(p)
	for i, op := range p.Ops {
		var same bool
		if n := len(out); n > 0 {
			switch s {
			case Step:
				same = true
			case Phase:
				same = i != first && i != last+1
			default:
				same = out[n-1].mhz == op.MHz
			}
		}
		if !same {
			out = append(out, segment{from: i, to: i, mhz: op.MHz})
		}
		g := &out[len(out)-1]
		g.to, g.mhz = i+1, higher(g.mhz, op.MHz)
	}
	for i := range out {
		until := p.Iteration + p.Ops[0].Start // of the next one
		if out[i].to < len(p.Ops) {
			until = p.Ops[out[i].to].Start
		}
		out[i].length = max(until-p.Ops[out[i].from].Start, 0)
	}
	return out
}

// automatic chooses how often to switch.
func automatic(p Plan, latency func(int) time.Duration) Switching {
	long := func(v []segment) bool {
		n := 0
		for _, g := range v {
			if g.length >= 3*latency(g.mhz) {
				n++
			}
		}
		return 2*n >= len(v)
	}
	single := make([]segment, len(p.Ops))
	need := time.Duration(0)
	for _, op := range p.Ops {
		need = max(need, latency(op.MHz))
	}
	if p.Hold > 0 && float64(p.Hold) >= shortest*float64(need) {
		return Fine
	}
	for i, op := range p.Ops {
		single[i] = segment{mhz: op.MHz, length: op.Time}
	}
	switch {
	case long(single):
		return Fine
	case long(stretch(p, Phase, latency)):
		return Phase
	}
	return Step
}

// phases returns the index of the first op that is no forward and of the last one that is.
func phases(p Plan) (first, last int) {
	forward := func(o Op) bool { return o.Instruction == "forward" }
	first, last = slices.IndexFunc(p.Ops, func(o Op) bool { return !forward(o) }), len(p.Ops)-1
	for last >= 0 && !forward(p.Ops[last]) {
		last--
	}
	return first, last
}

// merge joins stretches that are too short with a neighbour until none is, or one is left.
func merge(v []segment, latency func(int) time.Duration) []segment {
	short := func(i int) bool {
		need := latency(v[i].mhz)
		if i+1 < len(v) {
			need = max(need, latency(v[i+1].mhz))
		}
		return v[i].length < least || float64(v[i].length) < shortest*float64(need)
	}
	for len(v) > 1 {
		at := -1
		for i := range v {
			if short(i) && (at < 0 || v[i].length < v[at].length) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		left := at - 1
		if at == 0 || at+1 < len(v) && distance(v[at].mhz, v[at+1].mhz) < distance(v[at].mhz, v[at-1].mhz) {
			left = at
		}
		v[left] = segment{v[left].from, v[left+1].to, higher(v[left].mhz, v[left+1].mhz), v[left].length + v[left+1].length}
		v = slices.Delete(v, left+1, left+2)
		// Equal neighbours are one stretch.
		for _, i := range []int{left, left - 1} {
			if i >= 0 && i+1 < len(v) && v[i].mhz == v[i+1].mhz {
				v[i].to, v[i].length = v[i+1].to, v[i].length+v[i+1].length
				v = slices.Delete(v, i+1, i+2)
			}
		}
	}
	return v
}
