package simulate

import (
	"errors"
	"fmt"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Simulator runs a job iteration by iteration. It is not safe for concurrent use.
type Simulator struct {
	options   Options
	members   []*member
	iteration Iteration
	next      unit.Time // when the next iteration begins
}

// NewSimulator returns a simulator of a job of the given pipelines. It fails
// where an option is out of range, naming it. O(ops), and with clock switches
// O(clocks · curves) too.
func NewSimulator(members []Member, o Options) (*Simulator, error) {
	if len(members) == 0 {
		return nil, errors.New("a job without pipelines")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ranks := make([]int, len(members))
	for i, m := range members {
		if m.Copies < 0 {
			return nil, fmt.Errorf("pipeline %d: %d copies", i, m.Copies)
		}
		ranks[i] = m.Schedule.Ranks()
	}
	rates, err := newRates(o.Slow, ranks)
	if err != nil {
		return nil, err
	}
	s := &Simulator{options: o}
	for i, m := range members {
		v, err := newMember(m, &s.options, rates[i], uint64(i))
		if err != nil {
			return nil, fmt.Errorf("pipeline %d: %w", i, err)
		}
		s.members = append(s.members, v)
		s.iteration.Timelines = append(s.iteration.Timelines, &v.timeline)
	}
	s.iteration.Number = -1
	return s, nil
}

// Run returns the job's iteration under the given conditions: the first one of a
// simulator.
func Run(members []Member, o Options) (*Iteration, error) {
	s, err := NewSimulator(members, o)
	if err != nil {
		return nil, err
	}
	return s.Next(), nil
}

// Next runs the next iteration. The result is valid until the next call, which
// reuses it. O(ops + arcs), without allocating.
func (s *Simulator) Next() *Iteration {
	n := &s.iteration
	n.Number++
	n.Begin, n.Optimizer = s.next, s.options.Optimizer
	done := s.options.Until
	for _, m := range s.members {
		m.run(n.Begin)
		done = max(done, m.timeline.Time)
	}
	for _, m := range s.members {
		m.finish(done)
	}
	n.Time = done + n.Optimizer
	s.next += n.Time
	return n
}

// member is one pipeline with what its replay needs.
type member struct {
	timeline Timeline
	options  *Options
	begin    unit.Time // of the iteration
	rates    []rate
	noise    *noise
	clocks   *clocks // nil where clocks do not matter

	ops   []replayOp  // in topological order
	preds []int32     // what ops wait for; ^op where another rank sends it
	work  []unit.Time // by op: measured time with noise
	last  []unit.Time // by op: end, counted from the simulation's beginning
	ranks []rankState
	// switches counts each rank's clock switches where they take no time, and
	// clocks is nil.
	switches []int
	fixed    []unit.Power // by rank, during fixed work
}

// replayOp is an op in the order of the replay.
type replayOp struct {
	op, rank int32
	to       int32 // end of its part of preds
	load     bool  // fetches data first
}

// rankState is where a rank stands during a replay.
type rankState struct {
	free  unit.Time // end of its last op
	piece int       // of its rate
	clock clockState
}

func newMember(m Member, o *Options, rates []rate, stream uint64) (*member, error) {
	s, ops := m.Schedule, len(m.Schedule.Option)
	v := &member{
		options: o, rates: rates,
		timeline: Timeline{
			Schedule: s, Copies: max(m.Copies, 1),
			Start: make([]unit.Time, ops), Duration: make([]unit.Time, ops), Energy: make([]unit.Energy, ops),
			Ranks: make([]Usage, s.Ranks()),
		},
		ops: make([]replayOp, 0, ops), last: make([]unit.Time, ops),
		work: make([]unit.Time, ops), ranks: make([]rankState, s.Ranks()), fixed: make([]unit.Power, s.Ranks()),
	}
	if o.Noise > 0 {
		v.noise = newNoise(o.Seed, stream, o.Noise)
	}
	if !o.Blocking.Empty() || !o.Switch.Empty() {
		v.clocks = newClocks(s, o)
	}
	for r := range v.fixed {
		v.fixed[r] = s.Blocking[r]
		if o.FixedPower != nil {
			v.fixed[r] = *o.FixedPower * unit.Power(s.GPUsPerRank)
		}
		if v.fixed[r] < 0 || v.fixed[r] > unit.MaxPower {
			return nil, fmt.Errorf("rank %d: fixed power is more than %v", r, unit.MaxPower)
		}
	}
	for op, option := range s.Option {
		v.work[op], v.timeline.Energy[op] = option.Time, option.Energy
	}
	load := make([]bool, ops)
	if o.Load > 0 {
		op := 0
		for _, a := range s.Order.All() {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				load[op] = load[op] || p.Kind == pipeline.Forward && p.Stage == 0
			}
			op++
		}
	}
	g := s.Problem.Graph
	for _, op := range g.Order() {
		rank := s.rankOf[op]
		for _, a := range g.In(op) {
			switch from := g.Arcs[a].From; {
			case from == dag.Source:
			case s.rankOf[from] != rank && s.rankOf[from] >= 0: // what a transfer brings had its latency before
				v.preds = append(v.preds, ^from)
			default:
				v.preds = append(v.preds, from)
			}
		}
		v.ops = append(v.ops, replayOp{op: op, rank: rank, to: int32(len(v.preds)), load: load[op]})
	}
	if v.clocks == nil {
		v.switches = s.switches()
	} else {
		for r := range v.ranks {
			v.ranks[r].clock = v.clocks.initial(s, r)
		}
	}
	return v, nil
}

// run replays the pipeline from a time on.
func (m *member) run(begin unit.Time) {
	t := &m.timeline
	m.begin = begin
	if m.noise != nil {
		for op := range m.work {
			m.work[op] = scale(t.Schedule.Option[op].Time, m.noise.next())
		}
	}
	clear(t.Ranks)
	for r, n := range m.switches {
		t.Ranks[r].Switches = n
	}
	t.Elsewhere = unit.Energy128{}
	for r := range m.ranks {
		m.ranks[r].free = begin
	}
	t.Time = 0
	p2p, from := m.options.P2P, int32(0)
	for i := range m.ops {
		o := &m.ops[i]
		if o.rank < 0 {
			from = m.elsewhere(o, from, begin)
			continue
		}
		rank, usage := &m.ranks[o.rank], &t.Ranks[o.rank]
		ready := rank.free
		for _, p := range m.preds[from:o.to] {
			if p >= 0 {
				ready = max(ready, m.last[p])
			} else {
				ready = max(ready, m.last[^p]+p2p)
			}
		}
		from = o.to
		m.wait(int(o.rank), ready)
		start := ready
		if o.load {
			start += m.options.Load
			usage.Fixed += m.options.Load
			usage.FixedEnergy = usage.FixedEnergy.Add(unit.Product(m.fixed[o.rank], m.options.Load))
		}
		end, energy := m.compute(o, rank, start)
		t.Start[o.op], t.Duration[o.op], t.Energy[o.op] = start-begin, end-start, energy
		m.last[o.op], rank.free = end, end
		usage.Busy += end - start
		usage.Compute = usage.Compute.Add(energy.Widen())
		t.Time = max(t.Time, end-begin)
	}
}

// elsewhere runs an op that occupies no GPU, whose predecessors begin at from, and
// returns where they end. Slowdowns of ranks do not concern it.
func (m *member) elsewhere(o *replayOp, from int32, begin unit.Time) (to int32) {
	t, start := &m.timeline, begin
	for _, p := range m.preds[from:o.to] {
		if p >= 0 {
			start = max(start, m.last[p])
		} else {
			start = max(start, m.last[^p]+m.options.P2P)
		}
	}
	option, end := &t.Schedule.Option[o.op], start+m.work[o.op]
	m.last[o.op] = end
	t.Start[o.op], t.Duration[o.op] = start-begin, end-start
	t.Energy[o.op] = stretched(option.Energy, end-start, option.Time)
	t.Elsewhere = t.Elsewhere.Add(t.Energy[o.op].Widen())
	t.Time = max(t.Time, end-begin)
	return o.to
}

// compute returns when an op that starts now ends, and its energy.
func (m *member) compute(o *replayOp, rank *rankState, start unit.Time) (end unit.Time, energy unit.Energy) {
	option := &m.timeline.Schedule.Option[o.op]
	rate, work := m.rates[o.rank], m.work[o.op]
	if m.clocks != nil {
		if now, until := m.clocks.request(m, o, rank, start); until > start {
			return m.switching(o, rank, start, now, until)
		}
	}
	end = rank.end(rate, start, work)
	return end, stretched(option.Energy, end-start, option.Time)
}

// end returns when work that begins now is done at a rank's rate.
func (r *rankState) end(v rate, begin, work unit.Time) unit.Time {
	if v == nil {
		return begin + work
	}
	r.piece = v.piece(r.piece, begin)
	return v.end(r.piece, begin, work)
}

// stretched returns an op's energy where it takes a time in place of the measured
// one, at the same power.
func stretched(e unit.Energy, time, measured unit.Time) unit.Energy {
	if time == measured || measured == 0 {
		return e
	}
	v, ok := unit.Product(unit.Power(e), time).DivInt(int64(measured), unit.Nearest)
	if !ok {
		return 1<<63 - 1
	}
	return unit.Energy(v)
}

// scale returns t·f, rounded up.
func scale(t unit.Time, f plan.Ratio) unit.Time {
	v, _ := unit.Product(unit.Power(f), t).DivInt(int64(plan.One), unit.Up)
	return unit.Time(v)
}

// wait lets a rank wait from the end of its last op.
func (m *member) wait(rank int, until unit.Time) {
	r, u := &m.ranks[rank], &m.timeline.Ranks[rank]
	if until <= r.free {
		return
	}
	u.Blocked += until - r.free
	if m.clocks == nil {
		u.Blocking = u.Blocking.Add(unit.Product(m.timeline.Schedule.Blocking[rank], until-r.free))
	} else {
		u.Blocking = u.Blocking.Add(m.clocks.waiting(&r.clock, rank, r.free, until))
	}
	r.free = until
}

// finish lets all ranks wait until the job's slowest pipeline is done, and runs
// the optimizer.
func (m *member) finish(done unit.Time) {
	t := &m.timeline
	for r := range m.ranks {
		u := &t.Ranks[r]
		m.wait(r, m.begin+t.Time)
		own := u.Blocked
		m.wait(r, m.begin+done)
		u.After = u.Blocked - own
		u.Fixed += m.options.Optimizer
		u.FixedEnergy = u.FixedEnergy.Add(unit.Product(m.fixed[r], m.options.Optimizer))
	}
}
