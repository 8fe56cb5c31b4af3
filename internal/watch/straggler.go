package watch

import (
	"math"
	"slices"
)

const (
	maxHoldFactor = 16  // a hold time doubles up to this many times its configured length
	maxRatio      = 1e6 // a ratio above this is a broken measurement, not a slow rank
)

// Config is the rule of a [Detector]. A field that is zero, negative or no number gets its default.
type Config struct {
	Window int     `json:"window"` // ratios the median is taken of; default 5
	Enter  float64 `json:"enter"`  // median above which a rank becomes a straggler; default 1.05
	Leave  float64 `json:"leave"`  // median under which a straggler may cease to be one, at most Enter; default 1.02
	Hold   int     `json:"hold"`   // observations a lower slowdown must last to be believed; default 20
	Change float64 `json:"change"` // a slowdown changes only by more than this; default 0.03
}

// Change says that a rank is slow, slow by another factor, or no longer slow.
type Change struct {
	Rank     int     `json:"rank"`
	Slowdown float64 `json:"slowdown"` // how many times the planned time operations take; 1 = no longer a straggler
}

// Detector tells which ranks are stragglers. Synchronised ranks all report the same iteration time, so that it looks
// at the time of a rank's own operations: measured by planned.
//
// A rank becomes a straggler when the median of its last Window ratios is above Enter, and ceases to be one when that
// median has been under Leave for Hold further observations in a row, the one that brought it there not counted. Its
// slowdown is the median rounded up to a step of 0.01. It rises at once, when by more than Change; it falls to the
// highest value of the last Hold observations once all of them were lower by more than Change. A rank that rises
// again within the hold time after it fell doubles its hold time, up to 16 times Hold, until it has been steady for a
// whole hold time. So new schedules become rare for a rank that comes and goes.
//
// Memory is Window numbers a rank, and a few more for a rank that is or lately was a straggler.
type Detector struct {
	Config   Config        `json:"config"`
	Ranks    map[int]*Rank `json:"ranks"`
	Ignored  int64         `json:"ignored"`  // observations that were no measurement
	Repeated int64         `json:"repeated"` // observations of the iteration a rank reported last
}

// Rank is what a [Detector] remembers of one rank.
type Rank struct {
	Last    int64     `json:"last"`   // iteration of the newest ratio
	Ratios  []float64 `json:"ratios"` // the last Window, oldest first
	Episode *Episode  `json:"episode,omitempty"`
}

// Episode is what a [Detector] remembers of a rank that is or lately was a straggler.
type Episode struct {
	Slowdown float64 `json:"slowdown"` // as last returned; 1 = gone
	Hold     int     `json:"hold"`     // observations a fall takes now
	Calm     int     `json:"calm"`     // medians under Leave in a row
	Low      int     `json:"low"`      // slowdowns lower by more than Change in a row
	Peak     float64 `json:"peak"`     // highest of those
	Fell     bool    `json:"fell"`     // whether it fell within the last hold time
	Since    int     `json:"since"`    // observations since it fell
}

// New returns a detector that knows no rank.
func New(c Config) *Detector {
	if c.Window <= 0 {
		c.Window = 5
	}
	c.Enter = positiveOr(c.Enter, 1.05)
	c.Leave = min(positiveOr(c.Leave, 1.02), c.Enter)
	if c.Hold <= 0 {
		c.Hold = 20
	}
	c.Change = positiveOr(c.Change, 0.03)
	return &Detector{Config: c, Ranks: map[int]*Rank{}}
}

// Observe takes the ratio measured by planned operation time of one report of a rank, which ended with iteration, and
// returns what that changes: at most one change. A ratio that is NaN, infinite, not above zero or beyond a million,
// and a negative rank, are counted in Ignored and change nothing. A report of the same iteration as the rank's last
// one is that report sent again and counts in Repeated; an earlier iteration is a job that went back to a checkpoint
// and counts as any other.
func (d *Detector) Observe(rank int, iteration int64, ratio float64) []Change {
	if rank < 0 || !(ratio > 0 && ratio <= maxRatio) {
		d.Ignored++
		return nil
	}
	r := d.Ranks[rank]
	switch {
	case r == nil:
		r = &Rank{}
		d.Ranks[rank] = r
	case r.Last == iteration:
		d.Repeated++
		return nil
	}
	r.Last = iteration
	if len(r.Ratios) >= d.Config.Window {
		r.Ratios = slices.Delete(r.Ratios, 0, len(r.Ratios)-d.Config.Window+1)
	}
	r.Ratios = append(r.Ratios, ratio)
	if len(r.Ratios) < d.Config.Window {
		return nil
	}
	if s, changed := r.step(d.Config, median(r.Ratios)); changed {
		return []Change{{Rank: rank, Slowdown: s}}
	}
	return nil
}

// step moves the rank on by one median and returns its new slowdown, if it has one.
func (r *Rank) step(c Config, m float64) (float64, bool) {
	e := r.Episode
	if e == nil {
		if m <= c.Enter {
			return 0, false
		}
		r.Episode = &Episode{Slowdown: roundUp(m), Hold: c.Hold}
		return r.Episode.Slowdown, true
	}
	if e.Fell {
		e.Since++
		if e.Since > e.Hold {
			if e.Slowdown == 1 {
				r.Episode = nil
				return r.step(c, m)
			}
			e.Fell, e.Since, e.Hold = false, 0, c.Hold
		}
	}
	s := roundUp(m)
	if e.Slowdown == 1 {
		if m <= c.Enter {
			return 0, false
		}
		return e.rise(c, s), true
	}
	if s > e.Slowdown+c.Change {
		return e.rise(c, s), true
	}
	if m < c.Leave {
		e.Calm++
	} else {
		e.Calm = 0
	}
	if s < e.Slowdown-c.Change {
		e.Low++
		e.Peak = max(e.Peak, s)
	} else {
		e.Low, e.Peak = 0, 0
	}
	switch {
	case e.Calm > e.Hold:
		return e.fall(1), true
	case e.Calm == 0 && e.Low > e.Hold:
		return e.fall(e.Peak), true
	}
	return 0, false
}

// rise sets a higher slowdown and returns it.
func (e *Episode) rise(c Config, s float64) float64 {
	if e.Fell {
		e.Hold = min(2*e.Hold, maxHoldFactor*c.Hold)
	}
	*e = Episode{Slowdown: s, Hold: e.Hold}
	return s
}

// fall sets a lower slowdown and returns it.
func (e *Episode) fall(s float64) float64 {
	*e = Episode{Slowdown: s, Hold: e.Hold, Fell: true}
	return s
}

// roundUp returns the next step of 0.01 at or above v, and above 1: a slowdown of 1 says that there is none.
// The small allowance keeps 1.1 from becoming 1.11 by the last bit of a product.
func roundUp(v float64) float64 {
	return max(math.Ceil(v*100-1e-6), 101) / 100
}

// median returns the middle value, of an even number the mean of the two.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// positiveOr returns v, or otherwise if v is no positive finite number.
func positiveOr(v, otherwise float64) float64 {
	if v > 0 && !math.IsInf(v, 1) {
		return v
	}
	return otherwise
}
