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
	return &device{b, b.generation}
}

// call runs f on the advanced board unless a fault, a loss or a missing permission prevents it.
func (d *device) call(name string, changes bool, f func() error) error {
	var err error
	d.b.set(func() {
		switch fault := d.b.faults[name]; {
		case d.b.lost || d.generation != d.b.generation:
			err = gpu.ErrLost
		case fault != nil:
			err = fault
		case changes && d.b.readOnly:
			err = gpu.ErrNoPermission
		default:
			err = f()
		}
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", name, d.b.c.Info.ID, err)
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

func (d *device) now() int {
	f, _ := d.b.clock(d.b.inForce)
	return f
}

func (d *device) Clock() (int, error) { return read(d, "Clock", d.now) }

func (d *device) MemoryClock() (int, error) {
	return read(d, "MemoryClock", func() int { return d.b.c.MemoryMHz })
}

func (d *device) PowerLimit() (gpu.PowerLimit, error) {
	return read(d, "PowerLimit", func() gpu.PowerLimit { return d.b.limit })
}

func (d *device) SetPowerLimit(p unit.Power) error {
	return d.call("SetPowerLimit", true, func() error {
		if l := d.b.limit; p <= 0 || p < l.Min || l.Max != 0 && p > l.Max {
			return gpu.ErrInvalid
		}
		d.b.limit.Requested, d.b.limit.Enforced = p, p
		return nil
	})
}

func (d *device) Energy() (gpu.EnergySample, error) {
	return read(d, "Energy", func() gpu.EnergySample {
		e, _ := d.b.shown.Picojoules(unit.Down)
		return gpu.EnergySample{Energy: e, At: d.b.at, Scope: gpu.ScopeGPU}
	})
}

func (d *device) Power() (unit.Power, error) {
	return read(d, "Power", func() unit.Power { return d.b.power(d.now()) })
}

// Temperature is 30 °C and a degree for every 8 W, without inertia.
func (d *device) Temperature() (int, error) {
	return read(d, "Temperature", func() int { return 30 + int(d.b.power(d.now())/(8*unit.Watt)) })
}

func (d *device) Throttle() (gpu.Throttle, error) {
	return read(d, "Throttle", func() gpu.Throttle {
		_, capped := d.b.clock(d.b.inForce)
		return gpu.Throttle{
			PowerCap: capped, Thermal: d.b.ceiling < d.b.inForce.Max, Idle: d.b.load == 0, Capped: d.b.capped,
		}
	})
}

func (d *device) MIG() (bool, error) { return read(d, "MIG", func() bool { return d.b.mig }) }
