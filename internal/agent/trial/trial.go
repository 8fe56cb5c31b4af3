// Package trial finds out what a call that sets a clock costs the training: on some drivers calls delay communication,
// whatever the clock. It has needless calls made in some iterations and none in others, and compares their times.
//
// It is pure: iterations go in with their times, and what to do comes out. The iterations of the trial come right after
// the first ones of a plan by op, so that all nodes of a job that begin with it make the calls in the same ones.
package trial

import (
	"math"
	"time"
)

// The trial: so many iterations are let pass, then groups of four are run, the middle two of each with needless calls, so
// that what changes steadily cancels.
const (
	skipped = 4
	groups  = 10
	length  = 4 * groups
)

// quantile is that of Student's distribution for 95 % to both sides with groups−1 degrees of freedom.
const quantile = 2.262

// least is the share of an iteration under which a difference is not acted on.
const least = 0.001

// Trial is one trial. The zero value is one that has not begun.
type Trial struct {
	begun  bool
	over   bool
	first  int64
	calls  int
	n      int // iterations that count
	sum    time.Duration
	with   [groups]time.Duration
	pairs  [groups]int // iterations that count of each group
	active bool
}

// Begin takes the begin of an iteration, counted from 0, that follows a plan by op or not, and tells whether needless calls
// are to be made in it.
func (t *Trial) Begin(iteration int64, planned bool) (needless bool) {
	if t.active = false; t.over || !planned {
		return false
	}
	if !t.begun {
		t.begun, t.first = true, iteration+skipped
	}
	i := iteration - t.first
	t.active = i >= 0 && i < length
	return t.active && (i%4 == 1 || i%4 == 2)
}

// Called counts a needless call.
func (t *Trial) Called() { t.calls++ }

// End takes the time of the iteration that Begin was last told of, up to the begin of the next one. One that went
// otherwise than planned makes its group count for nothing.
func (t *Trial) End(iteration int64, took time.Duration, asPlanned bool) {
	i := iteration - t.first
	if t.over || !t.begun {
		return
	}
	if i >= length {
		t.over = true
		return
	}
	if i < 0 || !t.active || !asPlanned {
		return
	}
	g := i / 4
	t.pairs[g]++
	t.n++
	t.sum += took
	if i%4 == 1 || i%4 == 2 {
		t.with[g] += took
	} else {
		t.with[g] -= took
	}
	t.over = i == length-1
}

// Over tells whether the trial has ended.
func (t *Trial) Over() bool { return t.over }

// Cost returns by how much a call makes an iteration longer; 0 before the trial is over, where fewer than all its
// iterations count, where no call was made, and where the difference is not sure with 95 % or less than a thousandth of an
// iteration.
func (t *Trial) Cost() time.Duration {
	if !t.over || t.n < length || t.calls == 0 {
		return 0
	}
	mean, square := 0.0, 0.0 // of a group: two iterations with calls less two without
	for _, d := range t.with {
		mean += float64(d) / groups
	}
	for _, d := range t.with {
		square += (float64(d) - mean) * (float64(d) - mean)
	}
	deviation := math.Sqrt(square / (groups - 1) / groups)
	if mean-quantile*deviation <= 0 || mean/2 < least*float64(t.sum)/length {
		return 0
	}
	return time.Duration(mean * groups / float64(t.calls))
}

// affordable is the share of the time that calls may cost.
const affordable = 0.002

// Hold returns for how long a clock is to be kept where a switch takes up to latency and a call costs so much: 1.3
// latencies, so that a request is never followed by another before it is in effect, and long enough for calls to cost no
// more than 0.2 % of the time.
func Hold(latency, cost time.Duration) time.Duration {
	return max(latency+3*latency/10, time.Duration(float64(cost)/affordable))
}
