package meter

import (
	"slices"
	"time"

	"github.com/perseus-energy/perseus/unit"
)

const (
	// slow and quick are the pauses between readings while a step of the counter is looked for.
	slow, quick = 2 * time.Millisecond, time.Millisecond / 2
	// longestPeriod bounds how long a step is looked for.
	longestPeriod = 300 * time.Millisecond
	// guard is how long before an expected step reading begins.
	guard = 3 * time.Millisecond
)

// counter finds the moments at which an energy counter moves.
type counter struct {
	missing bool
	has     bool
	last    unit.Energy
	lastAt  time.Duration // end of the last reading
	base    unit.Energy   // joules are counted from
	edge    time.Duration // last step seen
	hasEdge bool
	// periods are times between steps that were seen one after the other; free is set once the counter proves to move
	// at each reading.
	periods []time.Duration
	usual   time.Duration // their median, 0 before there are three
	moved   int           // readings in a row, close together, that all moved
	free    bool

	wanted  time.Duration // a step is looked for since then; 0: not
	wants   bool
	dirty   bool // an event came since the last reading
	eventAt time.Duration
}

// want asks for one step of the counter.
func (c *counter) want() { c.wants, c.wanted = true, c.eventAt }

// event says that the state changed, which for a counter without steps is worth a reading.
func (c *counter) event(at time.Duration) { c.dirty, c.eventAt = true, at }

// period returns the time between steps; 0: not known yet.
func (c *counter) period() time.Duration { return c.usual }

// seen takes a time between two steps.
func (c *counter) seen(d time.Duration) {
	if c.periods = append(c.periods, d); len(c.periods) > 15 {
		c.periods = c.periods[1:]
	}
	if len(c.periods) >= 3 {
		s := slices.Sorted(slices.Values(c.periods))
		c.usual = s[len(s)/2]
	}
}

func (c *counter) next(now time.Duration, fine bool) (time.Duration, bool) {
	switch {
	case c.missing:
		return 0, false
	case !c.has:
		return now, true
	case c.free:
		return now, c.dirty
	case !fine && !c.wants && c.period() > 0:
		return 0, false
	}
	if p := c.period(); p > 0 && c.hasEdge {
		expected := c.edge + p
		for k := 0; expected+p/2 < now && k < 1000; k++ {
			expected += p
		}
		expected = max(expected, c.edge+p+(now-c.edge-p)/p*p)
		if at := expected - guard; at > now {
			return at, true
		}
		return max(now, c.lastAt+quick), true
	}
	return max(now, c.lastAt+slow), true
}

// reading returns the point that a reading shows, if it shows one. broken says that the counter went back.
func (c *counter) reading(begin, end time.Duration, e unit.Energy) (p point, ok, broken bool) {
	first := !c.has
	before, beforeAt := c.last, c.lastAt
	c.has, c.last, c.lastAt, c.dirty = true, e, end, false
	at := begin + (end-begin)/2
	switch {
	case first || e < before:
		c.base, c.hasEdge, c.free, c.moved = e, false, false, 0
		return point{}, false, e < before
	case e == before:
		c.moved, c.free = 0, false
		return point{}, false, false
	}
	gap := at - beforeAt
	if c.moved++; gap > slow+quick {
		c.moved = min(c.moved, 5)
	} else if c.moved > 5 {
		c.free = true
	}
	if c.free {
		c.wants = false
		return point{at, (end - begin) / 2, float64(e-c.base) / 1e12}, true, false
	}
	if gap > 2*slow+guard {
		// The step was somewhere in a long pause: of no use, but it is known where to look next.
		c.hasEdge = false
		return point{}, false, false
	}
	at = beforeAt + max(0, gap)/2
	if c.hasEdge {
		d := at - c.edge
		if p := c.period(); p > 0 {
			if n := (d + p/2) / p; n >= 1 {
				d /= n
			}
		}
		if d <= longestPeriod {
			c.seen(d)
		}
	}
	c.edge, c.hasEdge, c.wants = at, true, false
	return point{at, max(0, gap) / 2, float64(e-c.base) / 1e12}, true, false
}
