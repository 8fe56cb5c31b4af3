// Package meter finds how long ops take and what energy they need, from their begins and ends, the clock in force and
// readings of an energy counter that moves in steps. It is pure; times are durations since an unknown start.
//
// # Method
//
// A counter that moves every 100 ms cannot tell the energy of an op of 40 ms. What is known exactly are windows between
// two steps of the counter: their energy, and for how long the GPU was in which state in them, a state being an
// instruction of a stage, or waiting, at a clock. A window's energy is the sum of the states' powers times their
// durations, so windows are equations and the powers the unknowns; they are found by least squares over all windows
// since [Meter.Reset], with a weak prior that any power is like the mean. The energy of an op is its state's power times
// its time. Where the powers' standard error stays above Tolerance, windows do not tell the state from others, and the
// energy is left out. A counter without steps gives windows of single ops, so nothing changes for it.
//
// Windows in which the clock was changing are left out, and so are ops that had another clock for more than a twentieth
// of their time.
package meter

import (
	"math"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/unit"
)

// Tolerance is the largest standard error of an energy that is reported, as a share of it.
const Tolerance = 0.02

// Changing stands for a clock that is not known, as it may change at any time.
const Changing = -1

// Op names what the GPU does. The zero value is waiting.
type Op struct {
	Stage       int
	Instruction string
}

// outside is the time between steps.
var outside = Op{-1, ""}

// Sample is one op.
type Sample struct {
	Op
	MHz    int // asked for
	Time   time.Duration
	Energy float64 // in J; 0: not known
	Error  float64 // standard error of Energy in J
}

// Iteration is one step.
type Iteration struct {
	Index, Version int64
	Time           time.Duration
	Energy         float64 // in J; 0: not known
	// Waiting is what the GPU draws while it waits, by clock, in W, where it is known.
	Waiting map[int]float64
	Ops     []Sample
	Capped  bool
}

// state is an op at a clock.
type state struct {
	op  Op
	mhz int
}

// mark says what holds from a time on.
type mark[T any] struct {
	at time.Duration
	v  T
}

// point is a reading at which the counter stood exactly.
type point struct {
	at, unsure time.Duration
	joules     float64
}

// mostStates bounds the unknowns; a plan with more clocks gets times only.
const mostStates = 24

// Meter measures one GPU. It is not safe for concurrent use.
type Meter struct {
	ops    []mark[Op]
	clocks []mark[int]
	points []point // of the time that ops and clocks still cover

	counter counter
	model   model
	// sharing tells work from the rest only, and powers is what it has found.
	sharing model
	powers  map[state]power

	step    *Iteration // under way
	begun   time.Duration
	length  time.Duration // of the step before
	ended   []pending
	horizon time.Duration // events are known up to here
	fine    bool
}

type pending struct {
	it    *Iteration
	begin time.Duration
	end   time.Duration
	spans []span
}

type span struct{ from, to time.Duration }

// New returns a meter that has seen nothing; the clock is not known.
func New() *Meter {
	return &Meter{ops: []mark[Op]{{0, outside}}, clocks: []mark[int]{{0, Changing}}}
}

// Fine says whether energies of ops are wanted, for which the counter is read more often.
func (m *Meter) Fine(on bool) { m.fine = on }

// Reset forgets what is known of powers, as after a change of schedule. Readings stay.
func (m *Meter) Reset() { m.model = model{} }

// Clock says that the clock is mhz from a time on, which may lie ahead. An earlier one that lies further ahead is off.
func (m *Meter) Clock(at time.Duration, mhz int) {
	for n := len(m.clocks); n > 1 && m.clocks[n-1].at >= at; n = len(m.clocks) {
		m.clocks = m.clocks[:n-1]
	}
	m.clocks = append(m.clocks, mark[int]{at, mhz})
}

// Begin says that an op begins.
func (m *Meter) Begin(at time.Duration, op Op) {
	m.add(at, op)
	if m.step != nil {
		p := &m.ended[len(m.ended)-1]
		m.step.Ops = append(m.step.Ops, Sample{Op: op})
		p.spans = append(p.spans, span{at, -1})
	}
}

// End says that the op ends; without one under way it does nothing.
func (m *Meter) End(at time.Duration) {
	if m.step == nil {
		return
	}
	p := &m.ended[len(m.ended)-1]
	if n := len(p.spans); n > 0 && p.spans[n-1].to < 0 {
		p.spans[n-1].to = max(at, p.spans[n-1].from)
		m.add(at, Op{})
	}
}

// StepBegin says that a step begins; counted ones are to be measured.
func (m *Meter) StepBegin(at time.Duration, index, version int64) {
	m.StepEnd(at, false)
	m.add(at, Op{})
	m.step = &Iteration{Index: index, Version: version}
	m.begun = at
	m.ended = append(m.ended, pending{it: m.step, begin: at, end: -1})
	m.counter.want()
}

// StepEnd says that a step ends. One that is not kept, as it did not go as planned, is measured without its ops.
func (m *Meter) StepEnd(at time.Duration, keep bool) {
	if m.step == nil {
		m.add(at, outside)
		return
	}
	m.End(at)
	p := &m.ended[len(m.ended)-1]
	p.end, m.step.Time, m.length = at, at-m.begun, at-m.begun
	if !keep {
		m.step.Ops, p.spans = nil, nil
	}
	m.step = nil
	m.add(at, outside)
	m.counter.want()
}

// Drop leaves the step under way out.
func (m *Meter) Drop() {
	if m.step != nil {
		m.ended, m.step = m.ended[:len(m.ended)-1], nil
	}
}

func (m *Meter) add(at time.Duration, op Op) {
	if n := len(m.ops); at < m.ops[n-1].at {
		at = m.ops[n-1].at
	}
	m.ops = append(m.ops, mark[Op]{at, op})
	m.horizon = max(m.horizon, at)
	m.counter.event(at)
}

// Capped says that power or heat held the GPU back during the step under way, or the last one.
func (m *Meter) Capped() {
	if n := len(m.ended); n > 0 {
		m.ended[n-1].it.Capped = true
	}
}

// NoEnergy says that the GPU has no counter.
func (m *Meter) NoEnergy() { m.counter.missing = true }

// NextRead returns when the counter should be read next; ok is false where it should not, until the next event.
func (m *Meter) NextRead(now time.Duration) (at time.Duration, ok bool) {
	at, ok = m.counter.next(now, m.fine || m.nearEnd(now))
	if period := m.counter.period(); !ok && period > 0 && !m.counter.free && m.step != nil && m.length > 0 {
		// The last step of the counter before the end of this step is worth having too.
		if soon := m.begun + m.length - period*3/2; soon > now {
			return soon, true
		}
	}
	return at, ok
}

// nearEnd tells whether the step under way ends soon, if it is like the one before.
func (m *Meter) nearEnd(now time.Duration) bool {
	return m.step != nil && m.length > 0 && now >= m.begun+m.length-m.counter.period()*3/2 && now < m.begun+2*m.length
}

// Reading takes what the counter said to a call that began and ended at the times given.
func (m *Meter) Reading(begin, end time.Duration, e unit.Energy) {
	p, ok, broken := m.counter.reading(begin, end, e)
	if broken {
		m.points = nil
	}
	if ok {
		m.points = append(m.points, p)
	}
	m.windows()
}

// windows hands the windows whose events are known to the model.
func (m *Meter) windows() {
	for len(m.points) > 1 && m.points[1].at <= m.horizon {
		a, b := m.points[0], m.points[1]
		if x, ok := m.durations(a.at, b.at); ok {
			m.model.add(x, b.joules-a.joules, b.at-a.at, a.unsure+b.unsure)
		}
		if len(m.ended) > 0 && m.ended[0].begin < b.at {
			// A step's energy needs the points around its ends.
			m.keep(a, b)
		}
		m.points = m.points[1:]
		m.trim(b.at)
	}
}

// keep shares a window's energy out to the steps that it overlaps, by the powers of work and of the rest as they are
// known from all windows so far: at the ends of a step the GPU draws less than on average.
func (m *Meter) keep(a, b point) {
	joules := func(from, to time.Duration) (j float64) {
		for _, p := range m.rough(from, to) {
			w := 1.0
			if m.powers != nil {
				w = m.powers[p.state].mean
			}
			j += w * p.seconds
		}
		return j
	}
	m.sharing.add(m.rough(a.at, b.at), b.joules-a.joules, b.at-a.at, a.unsure+b.unsure)
	m.powers = m.sharing.solve()
	all := joules(a.at, b.at)
	for i := range m.ended {
		p := &m.ended[i]
		from, to := max(p.begin, a.at), b.at
		if p.end >= 0 {
			to = min(p.end, b.at)
		}
		if to > from && all > 0 {
			p.it.Energy += (b.joules - a.joules) * joules(from, to) / all
		}
	}
}

// rough returns for how long the GPU worked and for how long it did not.
func (m *Meter) rough(from, to time.Duration) []part {
	var work time.Duration
	for i, o := range m.ops {
		end := to
		if i+1 < len(m.ops) {
			end = min(end, m.ops[i+1].at)
		}
		if o.v.Instruction != "" {
			work += max(0, end-max(from, o.at))
		}
	}
	return []part{{state{Op{0, "work"}, 0}, work.Seconds()}, {state{outside, 0}, (to - from - work).Seconds()}}
}

// durations returns for how long the GPU was in which state from a to b, in the order in which they began; ok is false
// if the clock was changing.
func (m *Meter) durations(a, b time.Duration) (parts []part, ok bool) {
	o, c := 0, 0
	for t := a; t < b; {
		for o+1 < len(m.ops) && m.ops[o+1].at <= t {
			o++
		}
		for c+1 < len(m.clocks) && m.clocks[c+1].at <= t {
			c++
		}
		until := b
		if o+1 < len(m.ops) {
			until = min(until, m.ops[o+1].at)
		}
		if c+1 < len(m.clocks) {
			until = min(until, m.clocks[c+1].at)
		}
		s := state{m.ops[o].v, m.clocks[c].v}
		if s.mhz == Changing {
			return nil, false
		}
		i := slices.IndexFunc(parts, func(p part) bool { return p.state == s })
		if i < 0 {
			i = len(parts)
			parts = append(parts, part{state: s})
		}
		parts[i].seconds += (until - t).Seconds()
		t = until
	}
	return parts, true
}

// clockOf returns the clock that held for 95 % of a span at least, or Changing.
func (m *Meter) clockOf(s span) int {
	var best int
	var longest time.Duration
	by := map[int]time.Duration{}
	for i, c := range m.clocks {
		to := s.to
		if i+1 < len(m.clocks) {
			to = min(to, m.clocks[i+1].at)
		}
		if d := to - max(s.from, c.at); d > 0 {
			if by[c.v] += d; by[c.v] > longest {
				best, longest = c.v, by[c.v]
			}
		}
	}
	if longest*20 < (s.to-s.from)*19 {
		return Changing
	}
	return best
}

// trim forgets marks that end before t and that no step needs.
func (m *Meter) trim(t time.Duration) {
	if len(m.ended) > 0 {
		t = min(t, m.ended[0].begin)
	}
	m.ops = m.ops[before(m.ops, t):]
	m.clocks = m.clocks[before(m.clocks, t):]
}

// before returns the index of the last mark at or before t, or 0.
func before[T any](marks []mark[T], t time.Duration) int {
	i, found := slices.BinarySearchFunc(marks, t, func(k mark[T], t time.Duration) int { return int(k.at - t) })
	if found {
		return i
	}
	return max(i-1, 0)
}

// longestWait is after how long a step is handed out although the counter has not moved since.
const longestWait = time.Second

// Take returns the steps that have ended and are measured, oldest first. now is the time.
func (m *Meter) Take(now time.Duration) (done []Iteration) {
	m.windows()
	for len(m.ended) > 0 {
		p := m.ended[0]
		if p.end < 0 {
			break
		}
		covered := len(m.points) > 0 && m.points[0].at >= p.end
		if !covered && !m.counter.missing && now-p.end < longestWait {
			break
		}
		if !covered {
			p.it.Energy = 0
		}
		m.finish(&p)
		done = append(done, *p.it)
		m.ended = m.ended[1:]
		if len(m.points) > 0 {
			m.trim(m.points[0].at)
		} else {
			m.trim(p.end)
		}
	}
	return done
}

// Deadline returns when the oldest step that has ended is handed out at the latest; ok is false where there is none.
func (m *Meter) Deadline() (at time.Duration, ok bool) {
	if len(m.ended) == 0 || m.ended[0].end < 0 {
		return 0, false
	}
	return m.ended[0].end + longestWait, true
}

// finish gives the ops of a step their clocks and energies.
func (m *Meter) finish(p *pending) {
	powers := m.model.solve()
	kept := p.it.Ops[:0]
	for i, s := range p.it.Ops {
		sp := p.spans[i]
		s.Time, s.MHz = sp.to-sp.from, m.clockOf(sp)
		if s.MHz == Changing || s.Time <= 0 {
			continue
		}
		if w, ok := powers[state{s.Op, s.MHz}]; ok && w.deviation <= Tolerance*w.mean {
			s.Energy, s.Error = w.mean*s.Time.Seconds(), w.deviation*s.Time.Seconds()
		}
		kept = append(kept, s)
	}
	p.it.Ops = kept
	for s, w := range powers {
		if s.op == (Op{}) && w.deviation <= Tolerance*w.mean {
			if p.it.Waiting == nil {
				p.it.Waiting = map[int]float64{}
			}
			p.it.Waiting[s.mhz] = w.mean
		}
	}
	if math.IsNaN(p.it.Energy) || p.it.Energy < 0 {
		p.it.Energy = 0
	}
}
