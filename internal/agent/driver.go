package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/record"
	"github.com/perseus-energy/perseus/internal/gpu"
)

// driver owns one GPU. Its goroutine makes all calls to it; everything else only changes what it finds to do.
type driver struct {
	a     *Agent
	id    string
	info  gpu.Info
	index int
	wake  chan struct{} // of capacity 1

	// Of the goroutine alone.
	dev    gpu.Device
	clocks []int     // from the highest down
	target gpu.Range // last asked for; zero: the GPU's own clock

	mu    sync.Mutex
	lease *Session
	// recorded: what was found is on disk. changed: a call that sets a clock was made, or may have been.
	recorded, changed bool
	restoring         bool
	retryAt           time.Duration // nothing is changed before
	retries           int
	lost              bool
	readOnly          string // why clocks cannot be set; empty: they can
	drained, stopped  bool
	overridden        bool
	idle              chan struct{} // closed when the GPU is free; nil while it is
	settling          settling
	// awake: the goroutine is about to look for what to do; else it sleeps until armed, or for good without a timer.
	awake, gone bool
	armed       time.Duration
	asleep      sync.Cond // awake is no more, or gone is
}

// never is later than any time.
const never = time.Duration(math.MaxInt64)

// settling is a clock that was asked for and is being watched.
type settling struct {
	on      bool
	mhz     int
	since   time.Duration
	next    time.Duration
	measure bool // the time it takes, not only whether it comes
}

func newDriver(a *Agent, dev gpu.Device) *driver {
	i := dev.Info()
	d := &driver{a: a, id: i.ID, info: i, index: i.Index, dev: dev, wake: make(chan struct{}, 1)}
	d.asleep.L = &d.mu
	return d
}

// stir makes the goroutine look for what to do. Called with the lock.
func (d *driver) stir() {
	d.awake = true
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// now is the time of events.
func (a *Agent) now() time.Duration { return time.Duration(a.c.Clock.Now().UnixNano()) }

// run does what there is to do until ctx ends.
func (d *driver) run(ctx context.Context) {
	var timer <-chan time.Time
	stop := func() bool { return true }
	defer func() { stop() }()
	defer d.leave()
	for ctx.Err() == nil {
		wait, some := d.step()
		if some && wait <= 0 {
			continue
		}
		stop() // only now: what the timer was for has been done
		timer, stop = nil, func() bool { return true }
		if some {
			timer, stop = d.a.c.Clock.NewTimer(wait)
		}
		select {
		case <-timer:
		case <-d.wake:
		case <-ctx.Done():
		}
	}
}

// leave tells those who wait for the goroutine that it is gone.
func (d *driver) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	d.asleep.Broadcast()
}

// probe finds out what the GPU offers.
func (d *driver) probe() {
	clocks, err := d.dev.Clocks()
	mig, migErr := d.dev.MIG()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err != nil:
		d.readOnly = fmt.Sprintf("the clocks on offer cannot be read: %v", err)
	case len(clocks) == 0:
		d.readOnly = "the GPU offers no clocks"
	case migErr == nil && mig:
		d.readOnly = "MIG is on: a clock would be that of all its instances"
	}
	d.clocks = clocks
}

// task is what the goroutine does next.
type task func()

// step does one thing and returns how long to wait for the next one; some is false where only an event can bring one.
func (d *driver) step() (wait time.Duration, some bool) {
	d.mu.Lock()
	now := d.a.now()
	t, at, some := d.choose(now)
	d.awake, d.armed = t != nil || some && at <= now, never
	if some {
		d.armed = at
	}
	if !d.awake {
		d.asleep.Broadcast()
	}
	d.mu.Unlock()
	if t != nil {
		t()
		return 0, true
	}
	return at - now, some
}

// choose returns what to do now, or else when to look again. Called with the lock.
func (d *driver) choose(now time.Duration) (t task, at time.Duration, some bool) {
	later := func(when time.Duration) {
		if !some || when < at {
			at, some = when, true
		}
	}
	if d.lost || d.restoring {
		switch {
		case now < d.retryAt:
			return nil, d.retryAt, true
		case d.lost:
			return d.reopen, 0, false
		}
		return d.restore, 0, false
	}
	l := d.lease
	if l == nil {
		return nil, 0, false
	}
	if r, ok := l.follower.Next(); ok {
		switch when := max(r.At, d.retryAt); {
		case when > now:
			later(when)
		case r.MHz == own && !d.changed || d.readOnly != "":
			l.follower.Asked(r) // there is nothing to take back
			return nil, now, true
		default:
			return func() { d.set(l, r) }, 0, false
		}
	}
	if l.repeat {
		l.repeat = false
		if d.changed && d.readOnly == "" {
			l.trial.Called()
			return d.again, 0, false
		}
	}
	if s := d.settling; s.on {
		if s.next <= now {
			return func() { d.watchClock(l) }, 0, false
		}
		later(s.next)
	}
	if when, ok := l.meter.NextRead(now); ok {
		if when <= now {
			return func() { d.readEnergy(l) }, 0, false
		}
		later(when)
	}
	if l.checkCapped {
		l.checkCapped = false
		return func() { d.readThrottle(l) }, 0, false
	}
	l.flush(now)
	if when, ok := l.unfinished(now); ok {
		later(when)
	}
	return nil, at, some
}

// missed tells whether there is something to do before the goroutine would wake up. It is cheap, as it is asked at each
// event: most change nothing. Called with the lock.
func (d *driver) missed(now time.Duration) bool {
	l := d.lease
	if d.awake || l == nil || d.lost || d.restoring {
		return false // it has been stirred for these
	}
	if l.checkCapped || l.repeat {
		return true
	}
	if r, ok := l.follower.Next(); ok && max(r.At, d.retryAt) < d.armed {
		return true
	}
	at, ok := l.meter.NextRead(now)
	return ok && at < d.armed
}

// own is the clock that the GPU chooses.
const own = 0

// listed returns the lowest clock on offer that is not below mhz, or the highest.
func (d *driver) listed(mhz int) int {
	if len(d.clocks) == 0 {
		return mhz
	}
	i, _ := slices.BinarySearchFunc(d.clocks, mhz, func(c, mhz int) int { return mhz - c })
	if i < len(d.clocks) && d.clocks[i] == mhz {
		return mhz
	}
	return d.clocks[max(i-1, 0)]
}

// set asks the GPU for a clock. Before the first one, what there is goes to disk.
func (d *driver) set(l *Session, r request) {
	if !d.recorded {
		if err := d.writeRecord(l); err != nil {
			d.mu.Lock()
			d.readOnly = fmt.Sprintf("what was found cannot be written to disk: %v", err)
			d.mu.Unlock()
			l.notify("clocks are not changed: " + d.readOnly)
			return
		}
	}
	d.mu.Lock()
	first := !d.changed
	d.recorded, d.changed = true, true
	d.mu.Unlock()
	target, measure := r.MHz, false
	if r.MHz != own {
		target = d.listed(r.MHz)
		measure = d.telling(target)
	}
	begin := d.a.now()
	var err error
	if r.MHz == own {
		err = d.dev.UnlockClocks()
	} else {
		err = d.dev.LockClocks(gpu.Range{Min: target, Max: target})
	}
	d.target = gpu.Range{}
	if r.MHz != own {
		d.target = gpu.Range{Min: target, Max: target}
	}
	d.a.count(func(s *Stats) {
		s.Requests++
		if err != nil {
			s.Failures++
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.retries = 0
		l.asked(r, begin, measure)
		d.settling = settling{}
		if r.MHz != own {
			_, latest := d.a.latency.of(modelOf(d.info), target)
			d.settling = settling{on: true, mhz: target, since: begin, next: begin + latest + latest/4, measure: measure}
			if measure {
				d.settling.next = begin
			}
		}
		return
	}
	d.failed(l, err)
	if d.readOnly != "" && first {
		d.changed = false // it was refused
	}
}

// again makes the last call once more, to find out what calls cost. An error says nothing new.
func (d *driver) again() {
	if d.target == (gpu.Range{}) {
		_ = d.dev.UnlockClocks()
	} else {
		_ = d.dev.LockClocks(d.target)
	}
	d.a.count(func(s *Stats) { s.Requests++ })
}

// telling tells whether a switch to a clock will show how long one takes: that is wanted, the GPU has another clock, and
// no request is on its way that this one would take back.
func (d *driver) telling(target int) bool {
	if !d.a.latency.wanted(modelOf(d.info), target) {
		return false
	}
	d.mu.Lock()
	pending := d.settling.on
	d.mu.Unlock()
	mhz, err := d.dev.Clock()
	return err == nil && !pending && max(mhz, target)-min(mhz, target) > d.tolerance()
}

// failed acts on the error of a call that changes something. Called with the lock.
func (d *driver) failed(l *Session, err error) {
	switch {
	case errors.Is(err, gpu.ErrLost):
		d.lost, d.retryAt, d.settling = true, d.a.now(), settling{}
		if l != nil {
			l.follower.Forget()
			l.notifyLocked("the GPU is lost; its clock is set again once it is back")
		}
	case errors.Is(err, gpu.ErrNoPermission), errors.Is(err, gpu.ErrNotSupported):
		d.readOnly = err.Error()
		if l != nil {
			l.notifyLocked("clocks cannot be changed, only measured: " + err.Error())
		}
	default:
		d.backOff()
		if l != nil {
			l.notifyLocked("a clock could not be set; trying again: " + err.Error())
		}
	}
}

// backOff waits before the next change: from 0.1 s on, twice as long each time, up to 10 s.
func (d *driver) backOff() {
	d.retryAt = d.a.now() + min(100*time.Millisecond<<min(d.retries, 10), 10*time.Second)
	d.retries++
}

// writeRecord brings what the GPU is like to disk.
func (d *driver) writeRecord(l *Session) error {
	r := record.Record{
		GPU: d.id, Name: d.info.Name, PCI: d.info.PCI, Driver: d.info.Driver, Boot: d.a.boot, At: time.Now().UTC(),
		Lock: record.None, Job: l.hello.Job, Rank: l.hello.Rank,
	}
	// What cannot be read is left out: it is never changed either.
	r.ClockMHz, _ = d.dev.Clock()
	r.MemoryMHz, _ = d.dev.MemoryClock()
	r.Power, _ = d.dev.PowerLimit()
	why, err := d.dev.Throttle()
	switch c := d.a.c.Restore; {
	case c != nil:
		r.Lock, r.Range = record.Declared, c
	case err == nil && why == (gpu.Throttle{Capped: why.Capped}) && r.ClockMHz > 0 && len(d.clocks) > 2 && r.ClockMHz < d.clocks[2]:
		r.Lock = record.Suspected
		d.a.log.Warn("the GPU runs below its highest clock for no stated reason: somebody may have locked it; it will be unlocked in the end unless --restore says otherwise",
			"gpu", d.id, "clock_mhz", r.ClockMHz)
	}
	if d.a.folder == nil {
		return nil
	}
	return d.a.folder.Save(r)
}

// watchClock reads the clock back until it is the one asked for, or for a second.
func (d *driver) watchClock(l *Session) {
	mhz, err := d.dev.Clock()
	now := d.a.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.settling
	if !s.on {
		return
	}
	off := max(mhz, s.mhz) - min(mhz, s.mhz)
	model := modelOf(d.info)
	switch {
	case err != nil:
		s.on = false
	case off <= d.tolerance():
		l.achieved[s.mhz] = mhz
		if s.measure {
			l.meter.Clock(now, s.mhz)
			if n := d.a.latency.add(model, s.mhz, now-s.since); n == 1 || n == enough {
				l.follower.Retime()
			}
		}
		s.on = false
	case now-s.since < time.Second && s.measure:
		s.next = now + time.Millisecond
	default:
		// Held back, or set by somebody else: reported, never fought.
		l.achieved[s.mhz] = mhz
		if s.measure {
			l.meter.Clock(now, s.mhz)
		}
		l.checkCapped = true
		if !l.told {
			l.told = true
			d.a.log.Warn("the GPU has another clock than asked for: held back, or set by somebody else",
				"gpu", d.id, "asked_mhz", s.mhz, "clock_mhz", mhz)
			l.notifyLocked(fmt.Sprintf("the GPU runs at %d MHz although %d were asked for", mhz, s.mhz))
		}
		s.on = false
	}
}

// tolerance is by how much a clock may differ from the one asked for, in MHz: one step, or 8 where steps are finer.
func (d *driver) tolerance() int {
	if len(d.clocks) < 2 {
		return 8
	}
	return max(8, d.clocks[0]-d.clocks[1]) - 1
}

func (d *driver) readEnergy(l *Session) {
	begin := d.a.now()
	e, err := d.dev.Energy()
	end := d.a.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		l.meter.Reading(begin, end, e.Energy)
	case errors.Is(err, gpu.ErrLost):
		d.failed(l, err)
	default:
		l.meter.NoEnergy()
		d.a.log.Warn("energy is not measured", "gpu", d.id, "error", err)
	}
}

func (d *driver) readThrottle(l *Session) {
	why, err := d.dev.Throttle()
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.hasCapped && why.Capped > l.capped || why.PowerCap || why.Thermal || why.HardwareSlowdown {
		l.meter.Capped()
	}
	l.capped, l.hasCapped = why.Capped, true
}

// restore brings the GPU back to what it was, and then removes the record.
func (d *driver) restore() {
	d.mu.Lock()
	needed := d.recorded
	readOnly := d.readOnly != "" && !d.changed
	d.mu.Unlock()
	var err error
	if needed && !readOnly {
		if r := d.a.c.Restore; r != nil {
			err = d.dev.LockClocks(*r)
		} else {
			err = d.dev.UnlockClocks()
		}
		if errors.Is(err, gpu.ErrNotSupported) {
			err = nil // then nothing can have been changed
		}
	}
	if err == nil && d.a.folder != nil && needed {
		err = d.a.folder.Remove(d.id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		if errors.Is(err, gpu.ErrLost) {
			d.lost = true
		}
		if d.retries == 0 {
			d.a.log.Error("a GPU could not be restored; trying again", "gpu", d.id, "error", err)
		}
		d.backOff()
		return
	}
	if needed {
		d.a.log.Info("restored", "gpu", d.id)
	}
	d.recorded, d.changed, d.restoring, d.retries = false, false, false, 0
	d.settling = settling{}
	if d.lease != nil {
		close(d.lease.released)
		d.lease = nil
	}
	if d.idle != nil {
		close(d.idle)
		d.idle = nil
	}
}

// reopen gets a new handle of a GPU that was lost.
func (d *driver) reopen() {
	dev, err := d.a.handles.again(d.id, d.dev)
	var clocks []int
	if err == nil {
		clocks, err = dev.Clocks()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.backOff()
		return
	}
	d.a.log.Info("the GPU is back", "gpu", d.id)
	d.dev, d.clocks, d.lost, d.retries = dev, clocks, false, 0
	if d.lease != nil {
		d.lease.follower.Forget()
	}
}
