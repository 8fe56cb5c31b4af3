package emulated

import (
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// Change is something that happens to a board: a load, a fault, another owner. The functions of this file make them.
type Change func(*Board, *state)

// Load is how busy the GPU is without ops, 0 to 1.
func Load(fraction float64) Change {
	return func(_ *Board, s *state) { s.load = max(0, min(1, fraction)) }
}

// Ceiling lowers clocks above mhz for heat; 0 takes that back.
func Ceiling(mhz int) Change {
	return func(b *Board, s *state) {
		if s.ceiling = max(mhz, b.lowest()); mhz == 0 {
			s.ceiling = b.highest()
		}
	}
}

// HardwareSlowdown halves the top clock, as a power brake or a failing supply does, or takes that back.
func HardwareSlowdown(on bool) Change { return func(_ *Board, s *state) { s.slowdown = on } }

// MIG partitions the GPU or not.
func MIG(on bool) Change { return func(_ *Board, s *state) { s.mig = on } }

// ReadOnly takes the permission to change things away, or gives it.
func ReadOnly(on bool) Change { return func(_ *Board, s *state) { s.readOnly = on } }

// Lose makes the GPU fall off the bus. Handles of before stay lost after Recover.
func Lose() Change { return func(_ *Board, s *state) { s.lost = true; s.handles++ } }

// Recover brings a lost GPU back, reset: without locks, at its default power limit.
func Recover() Change {
	return func(b *Board, s *state) {
		s.lost, s.inForce, s.effective = false, b.whole(), time.Time{}
		s.memory, s.limit = b.wholeMemory(), b.c.Limit
	}
}

// lock is a lock of graphics clocks that the GPU offers.
func lock(r gpu.Range) Change {
	return func(b *Board, s *state) { s.pending, s.effective = r, s.at.Add(b.c.Latency) }
}

// Foreign is a lock of the graphics clock that somebody else asks for; one that the GPU does not offer does nothing.
func Foreign(r gpu.Range) Change {
	return func(b *Board, s *state) {
		if r.Min <= r.Max && b.offers(r.Min) && b.offers(r.Max) && s.requested() != r {
			lock(r)(b, s)
		}
	}
}

// Fail makes the Device method called call fail with err, until it is nil.
func Fail(call string, err error) Change { return func(b *Board, _ *state) { b.faults[call] = err } }

// Do makes a change now.
func (b *Board) Do(c Change) { b.set(c) }

// After makes a change when so much time has passed: a line of a script of faults.
func (b *Board) After(d time.Duration, c Change) {
	b.mu.Lock()
	b.settle()
	b.enter(entry{b.known.at.Add(max(0, d)), c})
	b.mu.Unlock()
	b.changed()
}

// SetLoad says how busy the GPU is from now on, 0 to 1, while no op runs.
func (b *Board) SetLoad(fraction float64) { b.Do(Load(fraction)) }

// SetCeiling lowers clocks above mhz for heat; 0 takes that back.
func (b *Board) SetCeiling(mhz int) { b.Do(Ceiling(mhz)) }

// SetMIG partitions the GPU or not.
func (b *Board) SetMIG(on bool) { b.Do(MIG(on)) }

// SetReadOnly takes the permission to change things away, or gives it.
func (b *Board) SetReadOnly(on bool) { b.Do(ReadOnly(on)) }

// Fail makes the Device method called call fail with err until it is told nil.
func (b *Board) Fail(call string, err error) { b.Do(Fail(call, err)) }

// Lose makes the GPU fall off the bus. Handles of before stay lost after Recover.
func (b *Board) Lose() { b.Do(Lose()) }

// Recover brings a lost GPU back, reset: without locks.
func (b *Board) Recover() { b.Do(Recover()) }

// ForeignLock is a lock that somebody else asks for. It fails with gpu.ErrInvalid.
func (b *Board) ForeignLock(r gpu.Range) error {
	b.mu.Lock()
	b.settle()
	err := b.lock(r)
	b.mu.Unlock()
	b.changed()
	return err
}

// ForeignMemoryLock is a lock of the memory clock that somebody else asks for, in effect at once; a range of both zero
// takes it back. It fails with gpu.ErrInvalid.
func (b *Board) ForeignMemoryLock(r gpu.Range) error {
	if r == (gpu.Range{}) {
		r = b.wholeMemory()
	}
	if r.Min > r.Max || !slices.Contains(b.c.MemoryClocks, r.Min) || !slices.Contains(b.c.MemoryClocks, r.Max) {
		return gpu.ErrInvalid
	}
	b.set(func(_ *Board, s *state) { s.memory = r })
	return nil
}
