// Package emulated is a GPU in software: clocks, power, counters and faults follow a simple, stated model.
//
// A loaded or idle GPU runs at the highest clock that the lock, the power limit and the thermal ceiling allow. Its power
// is Idle + load·(Static + Dynamic·(clock/highest)³). A lock takes effect after Latency; limits and load at once. An op
// takes cycles/clock plus a memory part that no clock changes.
package emulated

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// Config says what GPU to emulate.
type Config struct {
	Info gpu.Info
	// MinMHz, MaxMHz and StepMHz span the grid of clocks.
	MinMHz, MaxMHz, StepMHz int
	MemoryMHz               int
	Idle, Static, Dynamic   unit.Power
	Limit                   gpu.PowerLimit
	// Latency is from a request to the clock; CounterStep is how often the energy counter moves, 0 for always.
	Latency, CounterStep time.Duration
	// Seed sets where the energy counter starts.
	Seed uint64
	// Now is a monotonic clock.
	Now func() time.Time
}

// Board is the hardware and its driver. It outlives the handles opened on it, and so do locks. All methods are safe for
// concurrent use.
type Board struct {
	c      Config
	clocks []int // descending

	mu         sync.Mutex
	at         time.Time // all below holds from then on
	inForce    gpu.Range
	pending    *change
	load       float64
	ceiling    int
	limit      gpu.PowerLimit
	energy     unit.Energy128
	shown      unit.Energy128
	nextShown  time.Time
	capped     time.Duration
	mig        bool
	readOnly   bool
	generation int // of handles; a lost GPU invalidates those before
	lost       bool
	faults     map[string]error
}

type change struct {
	at time.Time
	to gpu.Range
}

// New returns an idle, unlocked board, or an error about c.
func New(c Config) (*Board, error) {
	switch {
	case c.Now == nil:
		return nil, errors.New("emulated GPU: Now is missing")
	case c.MinMHz <= 0 || c.StepMHz <= 0 || c.MaxMHz < c.MinMHz || (c.MaxMHz-c.MinMHz)%c.StepMHz != 0:
		return nil, errors.New("emulated GPU: the clocks are not a grid from MinMHz to MaxMHz in steps of StepMHz")
	case c.Idle < 0 || c.Static < 0 || c.Dynamic < 0 || c.Latency < 0 || c.CounterStep < 0:
		return nil, errors.New("emulated GPU: powers and times must not be negative")
	}
	b := &Board{c: c, limit: c.Limit, ceiling: c.MaxMHz, at: c.Now(), faults: map[string]error{}}
	for f := c.MaxMHz; f >= c.MinMHz; f -= c.StepMHz {
		b.clocks = append(b.clocks, f)
	}
	b.inForce = b.whole()
	start := unit.Energy(rand.New(rand.NewPCG(c.Seed, 0)).Int64N(int64(1000 * unit.Joule)))
	b.energy, b.shown = start.Widen(), start.Widen()
	b.nextShown = b.at.Add(c.CounterStep)
	return b, nil
}

func (b *Board) whole() gpu.Range { return gpu.Range{Min: b.c.MinMHz, Max: b.c.MaxMHz} }

// set advances to now and then changes the board.
func (b *Board) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	f()
}

// advance integrates up to now, piece by piece of constant power.
func (b *Board) advance() {
	now := b.c.Now()
	if b.pending != nil && !b.pending.at.After(now) {
		b.integrate(b.pending.at)
		b.inForce, b.pending = b.pending.to, nil
	}
	b.integrate(now)
}

func (b *Board) integrate(to time.Time) {
	d := to.Sub(b.at)
	if d <= 0 {
		return
	}
	clock, capped := b.clock(b.inForce)
	p := b.power(clock)
	if step := b.c.CounterStep; step == 0 {
		b.shown = b.energy.Add(unit.Product(p, unit.Time(d)))
	} else if !b.nextShown.After(to) {
		// The last step within the piece; those before cannot be seen any more.
		last := b.nextShown.Add(to.Sub(b.nextShown) / step * step)
		b.shown = b.energy.Add(unit.Product(p, unit.Time(last.Sub(b.at))))
		b.nextShown = last.Add(step)
	}
	b.energy = b.energy.Add(unit.Product(p, unit.Time(d)))
	if capped {
		b.capped += d
	}
	b.at = to
}

// clock returns the clock that r leads to and whether the power limit lowers it.
func (b *Board) clock(r gpu.Range) (mhz int, capped bool) {
	for _, f := range b.clocks {
		if f > min(r.Max, b.ceiling) {
			continue
		}
		if b.limit.Enforced == 0 || b.power(f) <= b.limit.Enforced {
			return f, capped
		}
		capped = true
	}
	return b.c.MinMHz, capped
}

func (b *Board) power(mhz int) unit.Power {
	x := float64(mhz) / float64(b.c.MaxMHz)
	return b.c.Idle + unit.Power(b.load*(float64(b.c.Static)+float64(b.c.Dynamic)*x*x*x))
}

// SetLoad says how busy the GPU is from now on, 0 to 1.
func (b *Board) SetLoad(fraction float64) { b.set(func() { b.load = max(0, min(1, fraction)) }) }

// SetCeiling lowers clocks above mhz for heat; 0 takes that back.
func (b *Board) SetCeiling(mhz int) {
	b.set(func() {
		if b.ceiling = max(mhz, b.c.MinMHz); mhz == 0 {
			b.ceiling = b.c.MaxMHz
		}
	})
}

// SetMIG partitions the GPU or not.
func (b *Board) SetMIG(on bool) { b.set(func() { b.mig = on }) }

// SetReadOnly takes the permission to change things away, or gives it.
func (b *Board) SetReadOnly(on bool) { b.set(func() { b.readOnly = on }) }

// Fail makes the Device method called call fail with err until it is told nil.
func (b *Board) Fail(call string, err error) { b.set(func() { b.faults[call] = err }) }

// ForeignLock is a lock that somebody else asks for.
func (b *Board) ForeignLock(r gpu.Range) error {
	var err error
	b.set(func() { err = b.lock(r) })
	return err
}

// Lose makes the GPU fall off the bus. Handles of before stay lost after Recover.
func (b *Board) Lose() { b.set(func() { b.lost = true; b.generation++ }) }

// Recover brings a lost GPU back, reset: without locks.
func (b *Board) Recover() { b.set(func() { b.lost, b.pending, b.inForce = false, nil, b.whole() }) }

func (b *Board) lock(r gpu.Range) error {
	if r.Min > r.Max || !b.offers(r.Min) || !b.offers(r.Max) {
		return gpu.ErrInvalid
	}
	if b.pending == nil && b.inForce == r || b.pending != nil && b.pending.to == r {
		return nil // asking again does not start the latency anew
	}
	b.pending = &change{b.at.Add(b.c.Latency), r}
	b.advance()
	return nil
}

func (b *Board) offers(mhz int) bool {
	return mhz >= b.c.MinMHz && mhz <= b.c.MaxMHz && (mhz-b.c.MinMHz)%b.c.StepMHz == 0
}

// Work returns how long an op of so many cycles and so much memory time takes if it starts now and nothing but a
// pending clock change happens on the way. Its memory part comes last.
func (b *Board) Work(cycles float64, memory time.Duration) time.Duration {
	var t time.Duration
	b.set(func() {
		clock, _ := b.clock(b.inForce)
		if p := b.pending; p != nil {
			until := p.at.Sub(b.at)
			done := until.Seconds() * float64(clock) * 1e6
			if done < cycles {
				t, cycles = until, cycles-done
				clock, _ = b.clock(p.to)
			}
		}
		t += time.Duration(math.Round(cycles/float64(clock)*1e3)) + memory
	})
	return t
}
