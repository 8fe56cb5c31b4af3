package emulated

import (
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

type device struct {
	b          *Board
	generation int
}

var _ gpu.Device = (*device)(nil)

// Open returns a handle. It changes nothing on the board.
func (b *Board) Open() gpu.Device {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settle()
	return &device{b, b.known.handles}
}

// call runs f on the settled board unless a fault, a loss or a missing permission prevents it.
func (d *device) call(name string, changes bool, f func() error) error {
	b := d.b
	b.mu.Lock()
	b.settle()
	var err error
	switch fault := b.faults[name]; {
	case b.known.lost || d.generation != b.known.handles:
		err = gpu.ErrLost
	case fault != nil:
		err = fault
	case changes && b.known.readOnly:
		err = gpu.ErrNoPermission
	default:
		err = f()
	}
	b.mu.Unlock()
	if changes {
		b.changed()
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", name, b.c.Info.ID, err)
	}
	return nil
}

func read[T any](d *device, name string, f func() T) (v T, err error) {
	err = d.call(name, false, func() error { v = f(); return nil })
	return v, err
}

func (d *device) Info() gpu.Info { return d.b.c.Info }

func (d *device) Clocks() ([]int, error) {
	return read(d, "Clocks", func() []int { return slices.Clone(d.b.clocks) })
}

func (d *device) LockClocks(r gpu.Range) error {
	return d.call("LockClocks", true, func() error { return d.b.lock(r) })
}

func (d *device) UnlockClocks() error {
	return d.call("UnlockClocks", true, func() error { return d.b.lock(d.b.whole()) })
}

func (d *device) Clock() (int, error) {
	return read(d, "Clock", func() int {
		i, _ := d.b.known.clock(d.b)
		return d.b.clocks[i]
	})
}

// MemoryClock is the highest that its lock allows.
func (d *device) MemoryClock() (int, error) {
	return read(d, "MemoryClock", func() int { return min(d.b.c.MemoryMHz, d.b.known.memory.Max) })
}

func (d *device) PowerLimit() (gpu.PowerLimit, error) {
	return read(d, "PowerLimit", func() gpu.PowerLimit { return d.b.known.limit })
}

func (d *device) SetPowerLimit(p unit.Power) error {
	return d.call("SetPowerLimit", true, func() error {
		if l := d.b.known.limit; p <= 0 || p < l.Min || l.Max != 0 && p > l.Max {
			return gpu.ErrInvalid
		}
		d.b.change(func(_ *Board, s *state) { s.limit.Requested, s.limit.Enforced = p, p })
		return nil
	})
}

func (d *device) Energy() (gpu.EnergySample, error) {
	return read(d, "Energy", func() gpu.EnergySample {
		e, _ := d.b.shown.Picojoules(unit.Down)
		return gpu.EnergySample{Energy: e, At: d.b.known.at, Scope: gpu.ScopeGPU}
	})
}

func (d *device) power() unit.Power {
	i, _ := d.b.known.clock(d.b)
	return d.b.known.power(d.b, i)
}

func (d *device) Power() (unit.Power, error) { return read(d, "Power", d.power) }

// Temperature is 30 °C and a degree for every 8 W, without inertia.
func (d *device) Temperature() (int, error) {
	return read(d, "Temperature", func() int { return 30 + int(d.power()/(8*unit.Watt)) })
}

func (d *device) Throttle() (gpu.Throttle, error) {
	return read(d, "Throttle", func() gpu.Throttle {
		s := &d.b.known
		_, capped := s.clock(d.b)
		return gpu.Throttle{
			PowerCap: capped, Thermal: s.ceiling < s.inForce.Max, HardwareSlowdown: s.slowdown,
			Idle: s.op == nil && !s.waiting && s.load == 0, Capped: s.capped,
		}
	})
}

func (d *device) MIG() (bool, error) { return read(d, "MIG", func() bool { return d.b.known.mig }) }
