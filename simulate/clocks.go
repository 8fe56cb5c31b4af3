package simulate

import (
	"slices"

	"github.com/perseus-energy/perseus/unit"
)

// clocks is what a replay needs where the clock in force matters: tables over the
// clocks of a schedule, numbered by ascending frequency.
type clocks struct {
	number  []int32            // by op: the number of its clock, none for ops at any
	blocked [][]unit.Power     // by rank and clock
	latency [][]unit.Time      // by old and new clock; nil where switches take no time
	cost    [][]operatingPoint // by curve and clock
}

// operatingPoint is what an op takes at a clock.
type operatingPoint struct {
	time   unit.Time
	energy unit.Energy
}

// clockState is the clock of a rank, by number. A pending switch, if any, is done
// at the time until.
type clockState struct {
	now, pending int32
	until        unit.Time
}

const none = -1

func newClocks(s *Schedule, o *Options) *clocks {
	c := &clocks{number: make([]int32, len(s.Option))}
	var mhz []int32
	clocked := func(op int) bool { return s.rankOf[op] >= 0 && s.Option[op].Knobs.ClockMHz > 0 }
	for op := range s.Option {
		if clocked(op) {
			mhz = append(mhz, s.Option[op].Knobs.ClockMHz)
		}
	}
	if mhz == nil {
		mhz = append(mhz, 0) // no op has a clock
	}
	slices.Sort(mhz)
	mhz = slices.Compact(mhz)
	for op := range s.Option {
		c.number[op] = none
		if clocked(op) {
			k, _ := slices.BinarySearch(mhz, s.Option[op].Knobs.ClockMHz)
			c.number[op] = int32(k)
		}
	}
	for _, own := range s.Blocking {
		powers := make([]unit.Power, len(mhz))
		for k, clock := range mhz {
			powers[k] = own
			if !o.Blocking.Empty() {
				powers[k] = min(o.Blocking.At(clock), unit.MaxPower/unit.Power(s.GPUsPerRank)) * unit.Power(s.GPUsPerRank)
			}
		}
		c.blocked = append(c.blocked, powers)
	}
	if o.Switch.Empty() {
		return c
	}
	for _, from := range mhz {
		row := make([]unit.Time, len(mhz))
		for k, to := range mhz {
			row[k] = o.Switch.Latency(from, to)
		}
		c.latency = append(c.latency, row)
	}
	for curve := range s.Problem.Curves {
		row := make([]operatingPoint, len(mhz))
		for k, clock := range mhz {
			row[k] = s.operating(int32(curve), clock)
		}
		c.cost = append(c.cost, row)
	}
	return c
}

// operating returns what an op takes at a clock, linear between the two nearest
// known ones, and as at the nearest outside of them.
func (p *Pipeline) operating(curve, clock int32) operatingPoint {
	options := p.Options[curve]
	last := options[len(options)-1]
	for i, o := range options {
		switch {
		case o.Knobs.ClockMHz == clock || o.Knobs.ClockMHz > clock && i == 0:
			return operatingPoint{o.Time, o.Energy}
		case o.Knobs.ClockMHz > clock:
			a := options[i-1]
			span := int64(o.Knobs.ClockMHz - a.Knobs.ClockMHz)
			part := unit.Time(clock - a.Knobs.ClockMHz)
			dt, _ := unit.Product(unit.Power(o.Time-a.Time), part).DivInt(span, unit.Nearest)
			de, _ := unit.Product(unit.Power(o.Energy-a.Energy), part).DivInt(span, unit.Nearest)
			return operatingPoint{a.Time + unit.Time(dt), a.Energy + unit.Energy(de)}
		}
	}
	return operatingPoint{last.Time, last.Energy}
}

// initial returns a rank's clock before its first op: that of its last one, an
// iteration earlier.
func (c *clocks) initial(s *Schedule, rank int) clockState {
	from, to := s.Rank(rank)
	for op := to - 1; op >= from; op-- {
		if c.number[op] != none {
			return clockState{c.number[op], none, 0}
		}
	}
	return clockState{0, none, 0}
}

// switches returns how often each rank's clock changes in an iteration, that from
// its last op to its first included.
func (s *Schedule) switches() []int {
	counts := make([]int, s.Ranks())
	for r := range counts {
		from, to := s.Rank(r)
		first, last := int32(0), int32(0)
		for op := from; op < to; op++ {
			mhz := s.Option[op].Knobs.ClockMHz
			switch {
			case mhz == 0: // runs at any
				continue
			case first == 0:
				first = mhz
			case mhz != last:
				counts[r]++
			}
			last = mhz
		}
		if first != last {
			counts[r]++
		}
	}
	return counts
}

// settle completes a switch that is done by a time.
func (s *clockState) settle(at unit.Time) {
	if s.pending != none && s.until <= at {
		s.now, s.pending = s.pending, none
	}
}

// request asks for an op's clock as it starts. It returns the clock in force and
// until when; not after start where the op's own clock is in force.
func (c *clocks) request(m *member, o *replayOp, rank *rankState, start unit.Time) (now int32, until unit.Time) {
	s, want := &rank.clock, c.number[o.op]
	s.settle(start)
	if want == none {
		return s.now, start
	}
	if s.pending == want {
		return s.now, s.until
	}
	if s.now == want {
		s.pending = none // a switch on its way is called off
		return want, start
	}
	m.timeline.Ranks[o.rank].Switches++
	if c.latency == nil || c.latency[s.now][want] == 0 {
		s.now, s.pending = want, none
		return want, start
	}
	s.pending, s.until = want, start+c.latency[s.now][want]
	return s.now, s.until
}

// switching runs an op that starts at the clock now, until the switch to its own.
func (m *member) switching(o *replayOp, rank *rankState, start unit.Time, now int32, until unit.Time) (end unit.Time, energy unit.Energy) {
	s := m.timeline.Schedule
	option, rate := &s.Option[o.op], m.rates[o.rank]
	old := m.clocks.cost[s.Problem.CurveOf[o.op]][now]
	work := old.time // at the old clock, with the noise of this op
	if m.noise != nil && option.Time > 0 {
		v, _ := unit.Product(unit.Power(old.time), m.work[o.op]).DivInt(int64(option.Time), unit.Up)
		work = unit.Time(v)
	}
	end = rank.end(rate, start, work)
	if end <= until || work == 0 {
		return end, stretched(old.energy, end-start, old.time)
	}
	done := until - start
	if rate != nil {
		done = rate.work(rate.piece(rank.piece, until), until) - rate.work(rate.piece(rank.piece, start), start)
	}
	left, _ := unit.Product(unit.Power(m.work[o.op]), work-done).DivInt(int64(work), unit.Up)
	rank.clock.settle(until)
	end = rank.end(rate, until, unit.Time(left))
	return end, stretched(old.energy, until-start, old.time) + stretched(option.Energy, end-until, option.Time)
}

// waiting returns what a rank's GPUs draw while it waits.
func (c *clocks) waiting(s *clockState, rank int, from, until unit.Time) (e unit.Energy128) {
	s.settle(from)
	if s.pending != none && s.until < until {
		e = unit.Product(c.blocked[rank][s.now], s.until-from)
		from = s.until
		s.settle(from)
	}
	return e.Add(unit.Product(c.blocked[rank][s.now], until-from))
}
