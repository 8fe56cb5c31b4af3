package simulate

import (
	"iter"

	"github.com/perseus-energy/perseus/unit"
)

// Iteration is one iteration of a job.
type Iteration struct {
	// Number counts from 0. Begin is when it began and Time how long it took, until
	// all pipelines and the optimizer were done.
	Number      int
	Begin, Time unit.Time
	// Optimizer is how much of it the optimizer took.
	Optimizer unit.Time
	// Timelines has one for each member of the job.
	Timelines []*Timeline
}

// Timeline is what one pipeline did in one iteration.
type Timeline struct {
	Schedule *Schedule
	Copies   int
	// Time is how long the pipeline took by itself; the iteration is as long as
	// the slowest one's.
	Time unit.Time
	// Start is when each op began, counted from the beginning of the iteration,
	// Duration how long it took and Energy what its GPUs used. Data loading comes
	// before Start.
	Start, Duration []unit.Time
	Energy          []unit.Energy
	// Ranks has what each rank did.
	Ranks []Usage
	// Elsewhere is the energy of ops that occupy no GPU, such as transfers.
	Elsewhere unit.Energy128
}

// Usage is what one rank did in an iteration. Busy + Fixed + Blocked is the
// iteration's time.
type Usage struct {
	// Busy is the time in ops, Fixed that in data loading and the optimizer.
	Busy, Fixed unit.Time
	// Blocked is the time waiting, of which After came after the pipeline was done:
	// for slower pipelines.
	Blocked, After unit.Time
	// Compute, FixedEnergy and Blocking are what its GPUs used in these times.
	Compute, FixedEnergy, Blocking unit.Energy128
	// Switches is how many clock switches were asked for.
	Switches int
}

// Energy returns all that the rank's GPUs used.
func (u *Usage) Energy() unit.Energy128 { return u.Compute.Add(u.FixedEnergy).Add(u.Blocking) }

// Sum returns the sums over the pipeline's ranks: times of N ranks add up to N
// times the iteration. Compute includes Elsewhere.
func (t *Timeline) Sum() (sum Usage) {
	for i := range t.Ranks {
		u := &t.Ranks[i]
		sum.Busy += u.Busy
		sum.Fixed += u.Fixed
		sum.Blocked += u.Blocked
		sum.After += u.After
		sum.Compute = sum.Compute.Add(u.Compute)
		sum.FixedEnergy = sum.FixedEnergy.Add(u.FixedEnergy)
		sum.Blocking = sum.Blocking.Add(u.Blocking)
		sum.Switches += u.Switches
	}
	sum.Compute = sum.Compute.Add(t.Elsewhere)
	return sum
}

// Span is a time that a rank spends in one op, or not computing: waiting or
// loading data.
type Span struct {
	// Op is the op, −1 where the rank does not compute.
	Op int32
	// Start counts from the beginning of the iteration.
	Start, Duration unit.Time
}

// Spans yields what a rank does from the beginning of the iteration until a time,
// without gaps, for pictures and traces.
func (t *Timeline) Spans(rank int, until unit.Time) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		at := unit.Time(0)
		from, to := t.Schedule.Rank(rank)
		for op := from; op < to; op++ {
			if s := t.Start[op]; s > at && !yield(Span{-1, at, s - at}) {
				return
			}
			if !yield(Span{op, t.Start[op], t.Duration[op]}) {
				return
			}
			at = t.Start[op] + t.Duration[op]
		}
		if until > at {
			yield(Span{-1, at, until - at})
		}
	}
}

// Energy returns what all GPUs of all pipelines used.
func (n *Iteration) Energy() (total unit.Energy128) {
	for _, t := range n.Timelines {
		sum := t.Sum()
		total = total.Add(times(sum.Energy(), t.Copies))
	}
	return total
}

// times returns e·n by doubling.
func times(e unit.Energy128, n int) (product unit.Energy128) {
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			product = product.Add(e)
		}
		e = e.Add(e)
	}
	return product
}
