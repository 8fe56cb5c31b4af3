//go:build linux && (amd64 || arm64) && !nonvml

package nvml

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// maxClocks bounds a list of clocks; the longest known has about 250.
const maxClocks = 4096

// Clocks are those of the memory clock in use. An idle GPU may have parked its memory at a clock that allows few
// graphics clocks, so they are those of the highest memory clock then.
func (d *device) Clocks() ([]int, error) {
	memory, err := d.list(anyMemory)
	if err != nil {
		return nil, err
	}
	if len(memory) == 0 {
		return nil, fmt.Errorf("Clocks of %s: it lists no memory clock: %w", d.info.ID, gpu.ErrNotSupported)
	}
	in := memory[0]
	if t, err := d.Throttle(); err == nil && !t.Idle {
		if now, err := d.MemoryClock(); err == nil {
			in = nearest(memory, now)
		}
	}
	clocks, err := d.list(in)
	if err == nil && len(clocks) == 0 {
		err = fmt.Errorf("Clocks of %s: it lists no graphics clock at the memory clock %d MHz: %w", d.info.ID, in, gpu.ErrNotSupported)
	}
	return clocks, err
}

// nearest returns the listed clock next to mhz, the higher one of two: drivers read a few MHz less than they list.
func nearest(descending []int, mhz int) int {
	best := descending[0]
	for _, c := range descending[1:] {
		if distance(c, mhz) < distance(best, mhz) {
			best = c
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// listed returns the graphics clocks of all memory clocks, or nil where the driver lists none. It asks once.
func (d *device) listed() (map[int]bool, error) {
	d.offer.Lock()
	defer d.offer.Unlock()
	if d.offered != nil {
		return d.offered, nil
	}
	all := map[int]bool{}
	memory, err := d.list(anyMemory)
	for _, m := range memory {
		var clocks []int
		if clocks, err = d.list(m); err != nil {
			break
		}
		for _, c := range clocks {
			all[c] = true
		}
	}
	switch {
	case notThere(err) || err == nil && len(all) == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	d.offered = all
	return all, nil
}

// anyMemory asks list for the memory clocks.
const anyMemory = 0

// list returns the graphics clocks on offer at a memory clock, or the memory clocks, from the highest down, each once.
func (d *device) list(memory int) ([]int, error) {
	n := uint32(512)
	for {
		clocks := make([]uint32, n)
		var err error
		if memory == anyMemory {
			err = d.call("Clocks", memoryClocks, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&clocks[0])))
		} else {
			err = d.call("Clocks", graphicsClocks, uintptr(uint32(memory)), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&clocks[0])))
		}
		var refused *Error
		if errors.As(err, &refused) && refused.Code == InsufficientSize && int(n) > len(clocks) && n <= maxClocks {
			continue // n is what it takes now
		}
		if err != nil {
			return nil, err
		}
		clocks = clocks[:min(int(n), len(clocks))]
		slices.Sort(clocks)
		list := make([]int, 0, len(clocks))
		for _, c := range slices.Backward(slices.Compact(clocks)) {
			list = append(list, int(c))
		}
		return list, nil
	}
}

// notThere tells whether err says that the call is not supported.
func notThere(err error) bool { return errors.Is(err, gpu.ErrNotSupported) }

// PowerLimit leaves what the driver does not tell at 0, and fails where it tells nothing. Enforced includes limits that
// are set beside the driver.
func (d *device) PowerLimit() (gpu.PowerLimit, error) {
	var l gpu.PowerLimit
	var failed error
	told := false
	note := func(err error) {
		told = told || err == nil
		if err != nil && !errors.Is(failed, gpu.ErrLost) {
			failed = err
		}
	}
	for _, one := range []struct {
		s  symbol
		to *unit.Power
	}{{powerLimit, &l.Requested}, {enforcedPowerLimit, &l.Enforced}, {defaultPowerLimit, &l.Default}} {
		mw, err := d.number("PowerLimit", one.s)
		if note(err); err == nil {
			*one.to = unit.Power(mw) * milliwatt
		}
	}
	var low, high uint32
	err := d.call("PowerLimit", powerLimitConstraints, uintptr(unsafe.Pointer(&low)), uintptr(unsafe.Pointer(&high)))
	if note(err); err == nil {
		l.Min, l.Max = unit.Power(low)*milliwatt, unit.Power(high)*milliwatt
	}
	if !told || errors.Is(failed, gpu.ErrLost) {
		return gpu.PowerLimit{}, failed
	}
	return l, nil
}

// SetPowerLimit rounds down to a milliwatt. The limit is the GPU's until the driver is unloaded.
func (d *device) SetPowerLimit(p unit.Power) error {
	mw := p / milliwatt
	if mw <= 0 || mw > math.MaxUint32 {
		return fmt.Errorf("SetPowerLimit of %s: %v: %w", d.info.ID, p, gpu.ErrInvalid)
	}
	return d.call("SetPowerLimit", setPowerLimit, uintptr(uint32(mw)))
}
