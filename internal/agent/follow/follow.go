package follow

import (
	"slices"
	"time"
)

// Latency returns within which times after a request the clock changes, by target.
type Latency func(mhz int) (earliest, latest time.Duration)

// Follower follows the ops of one rank. It is not safe for concurrent use.
type Follower struct {
	latency   Latency
	switching Switching

	plans []prepared // by From, the one in force first
	now   prepared   // of this iteration
	// iteration counts the steps that trained, from 0; -1 before the first.
	iteration int64

	inStep, inOp          bool
	evaluation, unplanned bool
	counted               bool // the unplanned iteration was
	override              bool
	pos                   int           // ops begun in this iteration
	start                 time.Duration // of the iteration, as its ops show
	last                  time.Duration // last event

	asked    int
	hasAsked bool
	ahead    int // index of the op that the last request was for, see beyond; -1: of none

	unplannedCount int
}

// New returns a follower of a process that has begun iterations steps so far. It asks for no clock before it has a
// plan.
func New(s Switching, l Latency, iterations int64) *Follower {
	return &Follower{latency: l, switching: s, iteration: iterations - 1, ahead: -1}
}

// Restart begins a new generation: no plans, iterations counted from 0.
func (f *Follower) Restart() {
	f.plans, f.now, f.iteration = nil, prepared{}, -1
	f.inStep, f.inOp, f.evaluation, f.unplanned, f.pos, f.ahead = false, false, false, false, 0, -1
}

// Offer takes a plan. It holds from its first iteration on, at the earliest from the next one; later versions take the
// place of earlier ones from there on, and one that is known already changes nothing.
func (f *Follower) Offer(p Plan) {
	for _, q := range f.plans {
		if q.Version >= p.Version {
			return
		}
	}
	f.plans = slices.DeleteFunc(f.plans, func(q prepared) bool { return q.From >= p.From })
	f.plans = append(f.plans, prepare(p, f.switching, f.latest))
}

// Retime prepares all plans anew, as latencies have become known. The iteration under way keeps its own.
func (f *Follower) Retime() {
	for i, p := range f.plans {
		f.plans[i] = prepare(p.Plan, f.switching, f.latest)
	}
}

func (f *Follower) latest(mhz int) time.Duration {
	_, d := f.latency(mhz)
	return d
}

// planOf returns the plan of an iteration; a plan without a version where there is none.
func (f *Follower) planOf(iteration int64) prepared {
	for i := len(f.plans) - 1; i >= 0; i-- {
		if f.plans[i].From <= iteration {
			return f.plans[i]
		}
	}
	return prepared{}
}

// Override brings the clock to the highest, whatever the plan, or takes that back.
func (f *Follower) Override(on bool) {
	if f.override != on {
		f.override, f.ahead = on, -1
	}
}

// Iteration returns which one is under way or was the last; -1 before the first. An evaluation is none.
func (f *Follower) Iteration() int64 { return f.iteration }

// Version returns that of the plan of the iteration under way, 0 where there is none.
func (f *Follower) Version() int64 { return f.now.Version }

// Mode returns that of the iteration under way.
func (f *Follower) Mode() Mode { return f.now.Mode }

// Changes returns how often the clock changes within the iteration under way by its plan.
func (f *Follower) Changes() int { return f.now.changes }

// AsPlanned tells whether the step that ended last was a training step that went as planned.
func (f *Follower) AsPlanned() bool { return !f.evaluation && !f.unplanned }

// Unplanned returns how many iterations differed from their plan since it was last called.
func (f *Follower) Unplanned() int {
	n := f.unplannedCount
	f.unplannedCount = 0
	return n
}

// Merged returns how many ops of the newest plan run at a higher clock than planned, as they are too short for a switch.
func (f *Follower) Merged() int {
	if len(f.plans) == 0 {
		return 0
	}
	return f.plans[len(f.plans)-1].merged
}

// StepBegin takes the begin of a step.
func (f *Follower) StepBegin(at time.Duration, evaluation bool) {
	f.StepEnd(at)
	f.inStep, f.evaluation, f.unplanned, f.counted = true, evaluation, false, false
	f.pos, f.start = 0, at
	if evaluation {
		f.ahead = -1
		return
	}
	// What was asked for ahead of time was for the first op of now.
	f.iteration++
	f.now = f.planOf(f.iteration)
	if f.ahead = -1; f.hasAsked && f.now.clockOf(f.iteration, 0) == f.asked {
		f.ahead = 0
	}
	f.plans = slices.DeleteFunc(f.plans, func(p prepared) bool { return p.From < f.now.From })
}

// StepEnd takes the end of a step.
func (f *Follower) StepEnd(at time.Duration) {
	f.OpEnd(at)
	if f.inStep && !f.evaluation && f.pos < len(f.now.Ops) {
		f.differ()
	}
	f.inStep, f.last = false, at
}

// differ notes that the iteration is not the planned one.
func (f *Follower) differ() {
	f.unplanned, f.ahead = true, -1
	if !f.counted {
		f.counted = true
		f.unplannedCount++
	}
}

// OpBegin takes the begin of an op and returns the planned one that it is; ok is false where there is none. A
// microbatch below 0 is not known and agrees with any.
func (f *Follower) OpBegin(at time.Duration, instruction string, microbatch int) (op Op, ok bool) {
	f.OpEnd(at)
	f.inOp, f.last = true, at
	f.pos++
	switch {
	case !f.inStep || f.evaluation || f.unplanned || len(f.now.Ops) == 0:
		return Op{}, false
	case f.pos > len(f.now.Ops):
		f.differ()
		return Op{}, false
	}
	op = f.now.Ops[f.pos-1]
	if op.Instruction != instruction || microbatch >= 0 && op.Microbatch != microbatch {
		f.differ()
		return Op{}, false
	}
	if begun := at - op.Start; begun < f.start {
		f.start = begun // the pipeline is further than the step's begin made believe
	}
	return op, true
}

// OpEnd takes the end of the op under way, if there is one.
func (f *Follower) OpEnd(at time.Duration) { f.inOp, f.last = false, max(f.last, at) }

// Lost says that n events before the next one are missing, of which it can only be guessed whether steps were among
// them: a whole iteration's worth of events counts as one. The rest of the iteration is not followed.
func (f *Follower) Lost(n uint64) {
	if each := uint64(2*len(f.now.Ops) + 2); len(f.now.Ops) > 0 {
		f.iteration += int64(min(n/each, 1<<20))
	}
	if f.inStep && !f.evaluation {
		f.unplanned, f.counted, f.ahead = true, true, -1
	}
}

// Request is a clock to ask for at a time; a time in the past means at once.
type Request struct {
	MHz   int
	At    time.Duration
	index int
}

// Next returns the next request as things stand; ok is false where there is none. Later events may change it.
func (f *Follower) Next() (r Request, ok bool) {
	if len(f.plans) == 0 && !f.override {
		return Request{}, false
	}
	n := f.beyond()
	if f.override || f.inStep && (f.evaluation || f.unplanned) || len(f.plans) == 0 {
		return f.at(Own, f.last, -1)
	}
	// The op that the GPU is in, or waits for.
	here := max(f.pos-1, 0)
	if !f.inStep || f.now.Mode != Planned && len(f.now.Ops) > 0 && f.pos >= n && !f.inOp {
		here = n
	}
	if f.ahead < here || !f.hasAsked {
		if mhz := f.clockOf(here); !f.hasAsked || mhz != f.asked {
			return f.at(mhz, f.last, here)
		}
		f.ahead = here
	}
	if f.ahead >= n || f.now.Mode != Planned || len(f.now.Ops) == 0 {
		return Request{}, false
	}
	next := f.now.next[f.ahead]
	mhz := f.clockOf(next)
	if mhz == f.asked {
		return Request{}, false
	}
	begin := f.expected(next)
	earliest, latest := f.latency(mhz)
	margin := latest/20 + time.Millisecond/2
	at := begin - earliest + margin
	if higher(mhz, f.asked) == mhz {
		at = begin - latest - margin
	}
	return Request{MHz: mhz, At: at, index: next}, true
}

func (f *Follower) at(mhz int, at time.Duration, index int) (Request, bool) {
	if f.hasAsked && f.asked == mhz {
		return Request{}, false
	}
	return Request{MHz: mhz, At: at, index: index}, true
}

// beyond returns the index that stands for the first op of the next iteration.
func (f *Follower) beyond() int { return max(len(f.now.Ops), 1) }

// clockOf returns the clock of op i of this iteration, or of the first of the next one.
func (f *Follower) clockOf(i int) int {
	if i < f.beyond() {
		return f.now.clockOf(f.iteration, i)
	}
	p := f.planOf(f.iteration + 1)
	return p.clockOf(f.iteration+1, 0)
}

// expected returns when op k of this iteration will begin, where k is beyond the one under way; k = the number of ops
// stands for the first op of the next iteration.
func (f *Follower) expected(k int) time.Duration {
	ops, t := f.now.Ops, f.last
	if f.inOp && f.pos >= 1 && f.pos <= len(ops) {
		t = max(t, f.last+ops[f.pos-1].Time)
	}
	for j := f.pos; j < len(ops); j++ {
		t = max(t, f.start+ops[j].Start)
		if j == k {
			return t
		}
		t += ops[j].Time
	}
	first := time.Duration(0)
	if p := f.planOf(f.iteration + 1); len(p.Ops) > 0 {
		first = p.Ops[0].Start
	}
	return max(t, f.start+f.now.Iteration+first)
}

// Asked says that a request was handed to the driver.
func (f *Follower) Asked(r Request) {
	f.asked, f.hasAsked, f.ahead = r.MHz, true, r.index
}

// Forget says that the clock is no longer what was asked for, so that it is asked for again.
func (f *Follower) Forget() { f.hasAsked, f.ahead = false, -1 }
