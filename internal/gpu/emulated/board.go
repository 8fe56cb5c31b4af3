package emulated

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// Config says what GPU to emulate.
type Config struct {
	Info gpu.Info
	// MinMHz, MaxMHz and StepMHz span the grid of clocks; Clocks lists them instead, in any order.
	MinMHz, MaxMHz, StepMHz int
	Clocks                  []int
	// MemoryMHz is the memory clock, MemoryClocks those it can be locked to, itself if empty.
	MemoryMHz             int
	MemoryClocks          []int
	Idle, Static, Dynamic unit.Power
	// Blocking is what the GPU draws between ops, by clock; see ClockPower. Empty means Idle.
	Blocking []ClockPower
	Limit    gpu.PowerLimit
	// Latency is from a request to the clock; CounterStep is how often the energy counter moves, 0 for always.
	Latency, CounterStep time.Duration
	// CallCost is by how much a call that sets a clock makes the op that runs longer, whether the clock changes or not.
	CallCost time.Duration
	// Late is how long after the fact an op can be told. Reading the counter shows what was known then.
	Late time.Duration
	// File, if not empty, keeps the settings from one process to the next, however that one ends, as the driver of a real
	// GPU does.
	File string
	// Seed sets where the energy counter starts.
	Seed uint64
	// Now is a monotonic clock.
	Now func() time.Time
}

// ClockPower is a power at a clock. Between two of them power is linear, outside it is that of the nearest.
type ClockPower struct {
	MHz   int
	Power unit.Power
}

// Board is the hardware and its driver. It outlives the handles opened on it, and so do locks. All methods are safe for
// concurrent use.
type Board struct {
	c        Config
	clocks   []int // descending
	blocking []unit.Power

	mu sync.Mutex
	// settled holds for good; known follows from it and from the journal up to now.
	settled, known state
	journal        []entry // by time; those after now are scripted
	shown          unit.Energy128
	faults         map[string]error
	watch          func()
	kept           kept
}

// New returns an idle, unlocked board, or an error about c.
func New(c Config) (*Board, error) {
	b := &Board{c: c, faults: map[string]error{}}
	switch {
	case c.Now == nil:
		return nil, errors.New("emulated GPU: Now is missing")
	case c.Idle < 0 || c.Static < 0 || c.Dynamic < 0 || c.Latency < 0 || c.CounterStep < 0 || c.Late < 0:
		return nil, errors.New("emulated GPU: powers and times must not be negative")
	case len(c.Clocks) > 0:
		b.clocks = slices.Compact(slices.Sorted(slices.Values(c.Clocks)))
		slices.Reverse(b.clocks)
	case c.MinMHz <= 0 || c.StepMHz <= 0 || c.MaxMHz < c.MinMHz || (c.MaxMHz-c.MinMHz)%c.StepMHz != 0:
		return nil, errors.New("emulated GPU: the clocks are not a grid from MinMHz to MaxMHz in steps of StepMHz")
	default:
		for f := c.MaxMHz; f >= c.MinMHz; f -= c.StepMHz {
			b.clocks = append(b.clocks, f)
		}
	}
	if b.lowest() <= 0 {
		return nil, fmt.Errorf("emulated GPU: clock %d MHz: expected more than 0", b.lowest())
	}
	if len(b.c.MemoryClocks) == 0 {
		b.c.MemoryClocks = []int{c.MemoryMHz}
	}
	b.blocking = make([]unit.Power, len(b.clocks))
	for i, f := range b.clocks {
		b.blocking[i] = at(c.Blocking, f, c.Idle)
	}
	start := unit.Energy(rand.New(rand.NewPCG(c.Seed, 0)).Int64N(int64(1000 * unit.Joule))).Widen()
	now := c.Now()
	b.settled = state{
		at: now, inForce: b.whole(), memory: b.wholeMemory(), ceiling: b.highest(), limit: c.Limit,
		energy: start, shown: start, nextShown: now.Add(c.CounterStep),
	}
	if c.File != "" {
		if err := b.load(&b.settled); err != nil {
			return nil, err
		}
	}
	b.known, b.shown = b.settled, start
	b.kept = b.keeps(&b.known)
	return b, nil
}

// at returns the power at a clock, or otherwise where the table is empty.
func at(table []ClockPower, mhz int, otherwise unit.Power) unit.Power {
	if len(table) == 0 {
		return otherwise
	}
	t := slices.SortedFunc(slices.Values(table), func(a, b ClockPower) int { return a.MHz - b.MHz })
	i := slices.IndexFunc(t, func(p ClockPower) bool { return p.MHz >= mhz })
	switch {
	case i < 0:
		return t[len(t)-1].Power
	case i == 0 || t[i].MHz == mhz:
		return t[i].Power
	}
	lo, hi := t[i-1], t[i]
	return lo.Power + (hi.Power-lo.Power)*unit.Power(mhz-lo.MHz)/unit.Power(hi.MHz-lo.MHz)
}

func (b *Board) highest() int { return b.clocks[0] }
func (b *Board) lowest() int  { return b.clocks[len(b.clocks)-1] }

func (b *Board) whole() gpu.Range { return gpu.Range{Min: b.lowest(), Max: b.highest()} }

func (b *Board) wholeMemory() gpu.Range {
	return gpu.Range{Min: slices.Min(b.c.MemoryClocks), Max: slices.Max(b.c.MemoryClocks)}
}

// settle brings the board up to now. What lies further back than Late cannot be told otherwise any more. b.mu is held.
func (b *Board) settle() {
	now := b.c.Now()
	if until := now.Add(-b.c.Late); until.After(b.settled.at) {
		b.journal = b.settled.run(b, until, b.journal)
	}
	b.known = b.settled
	b.known.run(b, now, b.journal)
	if b.known.shown.Cmp(b.shown) > 0 {
		b.shown = b.known.shown // what was told since may be less than what was read before
	}
}

// change makes a change now. b.mu is held.
func (b *Board) change(f Change) { b.enter(entry{b.known.at, f}) }

func (b *Board) enter(e entry) {
	i := len(b.journal)
	for i > 0 && b.journal[i-1].at.After(e.at) {
		i--
	}
	b.journal = slices.Insert(b.journal, i, e)
	b.settle()
	b.save()
}

// set settles and then makes a change.
func (b *Board) set(f Change) {
	b.mu.Lock()
	b.settle()
	b.change(f)
	b.mu.Unlock()
	b.changed()
}

// Watch has f called after each change that can move the end of the op that runs, by the goroutine that made it and
// without a lock held; nil ends that. There is one f at a time.
func (b *Board) Watch(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch = f
}

func (b *Board) changed() {
	b.mu.Lock()
	f := b.watch
	b.mu.Unlock()
	if f != nil {
		f()
	}
}

// Clocks lists the graphics clocks in MHz, from the highest down.
func (b *Board) Clocks() []int { return slices.Clone(b.clocks) }

// Settings is what an owner of a GPU can change on it, as it will be when all that was asked for is in effect. It is
// comparable.
type Settings struct {
	Clocks, Memory gpu.Range
	Limit          unit.Power
}

// Settings returns the settings in force, by a way that needs no handle and no driver.
func (b *Board) Settings() Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return Settings{b.known.requested(), b.known.memory, b.known.limit.Enforced}
}

// Total returns all the energy used until an instant that is not settled yet: from Late ago to any time to come, if
// nothing is changed until then. It is exact, and counts from where the counter started.
func (b *Board) Total(at time.Time) unit.Energy128 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	s := b.settled
	s.run(b, at, b.journal)
	return s.energy
}
