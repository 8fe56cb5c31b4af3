package emulated

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock runs at a multiple of real time, and waits for those who are late: while somebody holds it at an instant, it
// goes up to that instant and no further. A training loop holds it at the end of the next op until it has told of it, and
// AfterFunc until its function has returned, so that what a busy machine makes late in real time is on time by this
// clock, whatever its speed. All methods are safe for concurrent use.
type Clock struct {
	speed float64
	nap   func(time.Duration)

	mu         sync.Mutex
	real, here time.Time // the same instant
	holds      []*Hold
}

// Hold keeps a clock from passing an instant.
type Hold struct {
	c  *Clock
	at time.Time // zero: nowhere
}

// NewClock returns a clock that starts at an instant and passes speed seconds, more than 0, in a second.
func NewClock(start time.Time, speed float64) *Clock {
	return &Clock{speed: speed, real: time.Now(), here: start}
}

// Naps has short waits, up to two milliseconds of real time, pass by calls of nap, which may return early: where timers
// are coarser than the clock is fast. It must be called before the clock is used.
func (c *Clock) Naps(nap func(time.Duration)) { c.nap = nap }

// coarse is how late timers may be, and from where on naps take over.
const coarse = 2 * time.Millisecond

// Now returns what the clock shows. It never goes back.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now returns the time and takes it as passed. What real time there was beyond the earliest hold is gone. c.mu is held.
func (c *Clock) now() time.Time {
	real := time.Now()
	here := c.here.Add(time.Duration(float64(real.Sub(c.real)) * c.speed))
	for _, h := range c.holds {
		if !h.at.IsZero() && here.After(h.at) {
			here = h.at
		}
	}
	if here.Before(c.here) {
		here = c.here
	}
	c.real, c.here = real, here
	return here
}

// NewHold returns a hold that holds nothing yet.
func (c *Clock) NewHold() *Hold {
	h := &Hold{c: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, h)
	return h
}

// Set holds the clock at an instant instead of where it did, or at the present one if that has passed; the zero time lets
// it go.
func (h *Hold) Set(at time.Time) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if now := h.c.now(); !at.IsZero() && at.Before(now) {
		at = now
	}
	h.at = at
}

// Release lets the clock go for good.
func (h *Hold) Release() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	h.c.now()
	h.c.holds = slices.DeleteFunc(h.c.holds, func(o *Hold) bool { return o == h })
}

// AfterFunc calls f in a goroutine of its own when so much time has passed on the clock, which waits until f has
// returned: a long f makes all others wait. stop prevents the call, if it has not begun.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	h := c.NewHold()
	c.mu.Lock()
	at := c.now().Add(max(0, d))
	h.at = at
	c.mu.Unlock()
	var mu sync.Mutex
	var timer *time.Timer
	over := false
	var fire func()
	wait := func(left time.Duration) { // with mu
		switch {
		case c.nap == nil:
			timer = time.AfterFunc(left, fire)
		case left > coarse:
			timer = time.AfterFunc(left-coarse, fire)
		default:
			go fire()
		}
	}
	fire = func() {
		for {
			left := c.realUntil(at)
			mu.Lock()
			if over {
				mu.Unlock()
				return
			}
			if left == 0 {
				over = true
				mu.Unlock()
				defer h.Release()
				f()
				return
			}
			if c.nap == nil || left > coarse { // another hold made the clock late
				wait(left)
				mu.Unlock()
				return
			}
			mu.Unlock()
			c.nap(left)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	wait(c.realUntil(at))
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return false
		}
		over = true
		if timer != nil {
			timer.Stop()
		}
		h.Release()
		return true
	}
}

// NewTimer returns a channel that gets the time after d, and what ends the timer. From then on the clock waits until the
// timer is ended, so that whoever took the value acts at the time that it was for; a second of real time at most.
func (c *Clock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	tick := make(chan time.Time, 1)
	ended := make(chan struct{})
	var once sync.Once
	stop := c.AfterFunc(d, func() {
		patience := time.NewTimer(time.Second)
		defer patience.Stop()
		tick <- c.Now()
		select {
		case <-ended:
		case <-patience.C:
		}
	})
	return tick, func() bool {
		once.Do(func() { close(ended) })
		return stop()
	}
}

// realUntil returns in how much real time the clock will get to an instant if nothing holds it before, 0 if it is there.
func (c *Clock) realUntil(at time.Time) time.Duration {
	left := at.Sub(c.Now())
	if left <= 0 {
		return 0
	}
	return max(time.Microsecond, time.Duration(float64(left)/c.speed))
}

// Until waits until the clock has come to an instant, woken is closed or has a value, or ctx ends, and tells whether it
// is the first.
func (c *Clock) Until(ctx context.Context, at time.Time, woken <-chan struct{}) bool {
	for {
		left := c.realUntil(at)
		if left == 0 {
			return true
		}
		if c.nap != nil && left <= coarse {
			select {
			case <-woken:
				return false
			case <-ctx.Done():
				return false
			default:
				c.nap(left)
			}
			continue
		}
		if c.nap != nil {
			left -= coarse
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-woken:
			timer.Stop()
			return false
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
