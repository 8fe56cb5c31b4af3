package emulated

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/unit"
)

// Op is what a GPU runs: how long it takes and what it draws at each clock. It is immutable, and good for all boards
// with the same clocks.
type Op struct {
	name  string
	time  []time.Duration // by clock, in the board's order
	power []unit.Power
}

// Point is what an op takes at a clock.
type Point struct {
	MHz    int
	Time   time.Duration
	Energy unit.Energy
}

// Measured returns the op that takes what was measured. At a clock without measurement it takes what it does at the next
// higher one that has, or at the highest of all. It fails without measurements, and on times and energies that are not
// positive.
func (b *Board) Measured(name string, points []Point) (*Op, error) {
	p := slices.SortedFunc(slices.Values(points), func(a, b Point) int { return b.MHz - a.MHz })
	if len(p) == 0 {
		return nil, fmt.Errorf("%s: no measurement", name)
	}
	for _, m := range p {
		if m.Time <= 0 || m.Energy <= 0 {
			return nil, fmt.Errorf("%s at %d MHz: time %v and energy %v must be positive", name, m.MHz, m.Time, m.Energy)
		}
	}
	o := &Op{name: name}
	i := 0
	for _, f := range b.clocks {
		for i+1 < len(p) && p[i+1].MHz >= f {
			i++
		}
		o.time = append(o.time, p[i].Time)
		o.power = append(o.power, unit.Power(math.Round(float64(p[i].Energy)*1e3/float64(p[i].Time)))) // pJ/ns are mW
	}
	return o, nil
}

// Formula returns the op of so many cycles and so much memory time, during which the GPU is as busy as load says. It
// takes a nanosecond at least.
func (b *Board) Formula(name string, cycles float64, memory time.Duration, load float64) *Op {
	o := &Op{name: name}
	for _, f := range b.clocks {
		o.time = append(o.time, max(1, time.Duration(math.Round(cycles/float64(f)*1e3))+memory))
		o.power = append(o.power, b.formula(load, f))
	}
	return o
}

func (b *Board) formula(load float64, mhz int) unit.Power {
	x := float64(mhz) / float64(b.highest())
	return b.c.Idle + unit.Power(load*(float64(b.c.Static)+float64(b.c.Dynamic)*x*x*x))
}

// Start has an op start at an instant that has come, no further back than Late and the end of the op before, and returns when it will
// end if nothing is changed on the way. It fails, saying until when, where an op still runs then or the instant is
// settled already.
func (b *Board) Start(at time.Time, o *Op) (end time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	if now := b.c.Now(); at.After(now) {
		return end, fmt.Errorf("%s of %s starts %v ahead of time", o.name, b.c.Info.ID, at.Sub(now))
	}
	if at.Before(b.settled.at) {
		return end, fmt.Errorf("%s of %s starts %v too early: time is settled until then", o.name, b.c.Info.ID, b.settled.at.Sub(at))
	}
	s := b.settled
	rest := s.run(b, at, b.journal)
	if s.op != nil {
		return end, fmt.Errorf("%s of %s starts before %s ends", o.name, b.c.Info.ID, s.op.name)
	}
	s.op, s.left, s.waiting = o, 1, true
	// What is told for good makes all before it final.
	b.settled, b.journal = s, rest
	b.settle()
	return b.project(), nil
}

// End returns when the op that runs, or the last one, ends or ended, and whether that is still to come. It can change as
// clocks do.
func (b *Board) End() (end time.Time, running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	if b.known.op == nil {
		return b.known.ended, false
	}
	return b.project(), true
}

// project returns when the op that is known to run ends by all that is known. b.mu is held.
func (b *Board) project() time.Time {
	if b.known.op == nil {
		return b.known.ended
	}
	s, journal := b.known, b.journal
	for len(journal) > 0 && !journal[0].at.After(s.at) {
		journal = journal[1:]
	}
	for s.op != nil {
		next := s.end(b)
		if !s.effective.IsZero() && s.effective.Before(next) {
			next = s.effective
		}
		if len(journal) > 0 && journal[0].at.Before(next) {
			next = journal[0].at
		}
		journal = s.run(b, next, journal)
	}
	return s.ended
}

// Join says that ops are to come: the GPU waits from now on.
func (b *Board) Join() { b.set(func(_ *Board, s *state) { s.waiting = true }) }

// Leave says that no more ops come: the GPU is idle from now on and no longer waits. An op that runs is broken off.
func (b *Board) Leave() {
	b.set(func(_ *Board, s *state) { s.op, s.left, s.waiting = nil, 0, false })
}

// Work returns how long an op of so many cycles and so much memory time takes if it starts now and nothing but a
// pending clock change happens on the way.
func (b *Board) Work(cycles float64, memory time.Duration) time.Duration {
	o := b.Formula("work", cycles, memory, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	known := b.known
	defer func() { b.known = known }()
	b.known.op, b.known.left = o, 1
	return b.project().Sub(b.known.at)
}

// Fastest returns the time of the op at the highest clock.
func (o *Op) Fastest() time.Duration { return o.time[0] }
