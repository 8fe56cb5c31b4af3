package emulated

import (
	"math"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// state is all that time and requests change. It is a value, so that what is only supposed can be tried on a copy.
type state struct {
	at       time.Time // all below holds from then on
	inForce  gpu.Range
	pending  gpu.Range // asked for, in effect from effective on; none if that is zero
	memory   gpu.Range
	ceiling  int
	slowdown bool
	limit    gpu.PowerLimit
	mig      bool
	readOnly bool
	lost     bool
	handles  int // generation of handles; a lost GPU invalidates those before
	load     float64

	op      *Op     // running, or nil
	left    float64 // what is left of it, 1 at its start
	waiting bool    // an op ran, and another is to come

	energy    unit.Energy128
	shown     unit.Energy128
	nextShown time.Time
	capped    time.Duration

	effective time.Time // of pending
	ended     time.Time // of the last op
}

// entry is a change and when it happens.
type entry struct {
	at     time.Time
	change Change
}

// run brings s to an instant, through what the journal has until then, and returns the rest of the journal. It does
// nothing if s is there already.
func (s *state) run(b *Board, to time.Time, journal []entry) []entry {
	for {
		next, what := to, 0
		if len(journal) > 0 && !journal[0].at.After(next) {
			next, what = journal[0].at, 1
		}
		if !s.effective.IsZero() && !s.effective.After(next) {
			next, what = s.effective, 2
		}
		if s.op != nil {
			if end := s.end(b); !end.After(next) {
				next, what = end, 3
			}
		}
		s.integrate(b, next)
		switch what {
		case 0:
			return journal
		case 1:
			journal[0].change(b, s)
			journal = journal[1:]
		case 2:
			s.inForce, s.effective = s.pending, time.Time{}
		case 3:
			s.op, s.left, s.ended = nil, 0, next
		}
	}
}

// end returns when the running op is over at the clock of now.
func (s *state) end(b *Board) time.Time {
	i, _ := s.clock(b)
	return s.at.Add(time.Duration(math.Round(s.left * float64(s.op.time[i]))))
}

// integrate passes time in which nothing changes.
func (s *state) integrate(b *Board, to time.Time) {
	d := to.Sub(s.at)
	if d <= 0 {
		return
	}
	i, capped := s.clock(b)
	p := s.power(b, i)
	if step := b.c.CounterStep; step == 0 {
		s.shown = s.energy.Add(unit.Product(p, unit.Time(d)))
	} else if !s.nextShown.After(to) {
		// The last step within the piece; those before cannot be seen any more.
		last := s.nextShown.Add(to.Sub(s.nextShown) / step * step)
		s.shown = s.energy.Add(unit.Product(p, unit.Time(last.Sub(s.at))))
		s.nextShown = last.Add(step)
	}
	s.energy = s.energy.Add(unit.Product(p, unit.Time(d)))
	if capped {
		s.capped += d
	}
	if s.op != nil {
		s.left = max(0, s.left-float64(d)/float64(s.op.time[i]))
	}
	s.at = to
}

// clock returns the number of the clock that the GPU has, and whether the power limit lowers it.
func (s *state) clock(b *Board) (i int, capped bool) {
	top := min(s.inForce.Max, s.ceiling)
	if s.slowdown {
		top = min(top, b.highest()/2)
	}
	last := len(b.clocks) - 1
	for i = range b.clocks {
		if b.clocks[i] > top && i < last {
			continue
		}
		if s.limit.Enforced == 0 || s.power(b, i) <= s.limit.Enforced {
			return i, capped
		}
		capped = true
	}
	return last, capped
}

// power returns what the GPU draws at a clock.
func (s *state) power(b *Board, i int) unit.Power {
	switch {
	case s.op != nil:
		return s.op.power[i]
	case s.waiting:
		return b.blocking[i]
	}
	return b.formula(s.load, b.clocks[i])
}

// requested is the range that holds, or will once the latency is over.
func (s *state) requested() gpu.Range {
	if !s.effective.IsZero() {
		return s.pending
	}
	return s.inForce
}

// lock asks for a range, after checking it.
func (b *Board) lock(r gpu.Range) error {
	if r.Min > r.Max || !b.offers(r.Min) || !b.offers(r.Max) {
		return gpu.ErrInvalid
	}
	if cost := b.c.CallCost; cost > 0 {
		b.change(func(b *Board, s *state) {
			if s.op != nil {
				i, _ := s.clock(b)
				s.left += float64(cost) / float64(s.op.time[i])
			}
		})
	}
	if b.known.requested() != r { // asking again does not start the latency anew
		b.change(lock(r))
	}
	return nil
}

func (b *Board) offers(mhz int) bool {
	_, found := slices.BinarySearchFunc(b.clocks, mhz, func(f, want int) int { return want - f })
	return found
}
