//go:build linux && (amd64 || arm64) && !nonvml

package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

type device struct {
	driver *driver
	handle uintptr
	info   gpu.Info
	scope  gpu.Scope

	// lost stays: the handle of a GPU that was lost is of no more use, even if the GPU comes back.
	lost atomic.Pointer[Error]

	offer   sync.Mutex
	offered map[int]bool // by LockClocks: all listed clocks; nil until it is known
}

var _ gpu.Device = (*device)(nil)

const milliwatt = unit.Watt / 1000

// call calls a function of the library on this GPU, for the method of that name. See library.call for the directive.
//
//go:uintptrescapes
func (d *device) call(method string, s symbol, args ...uintptr) error {
	err := d.try(s, args...)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of %s: %w", method, d.info.ID, err)
}

// try is call without the method's name.
//
//go:uintptrescapes
func (d *device) try(s symbol, args ...uintptr) error {
	d.driver.closing.RLock()
	defer d.driver.closing.RUnlock()
	if d.driver.closed {
		return &Error{symbolNames[s], Uninitialized}
	}
	if lost := d.lost.Load(); lost != nil {
		return lost
	}
	c := d.driver.lib.call(s, append([]uintptr{d.handle}, args...)...)
	if c == Success {
		return nil
	}
	e := &Error{symbolNames[s], c}
	if e.Unwrap() == gpu.ErrLost {
		d.lost.CompareAndSwap(nil, e)
	}
	return e
}

// number calls a function that writes one unsigned int.
func (d *device) number(method string, s symbol) (uint32, error) {
	var v uint32
	err := d.call(method, s, uintptr(unsafe.Pointer(&v)))
	return v, err
}

func (d *device) Info() gpu.Info { return d.info }

// LockClocks asks only for clocks that the driver lists, because drivers round others without a word.
func (d *device) LockClocks(r gpu.Range) error {
	offered, err := d.listed()
	if err != nil {
		return fmt.Errorf("LockClocks of %s: %w", d.info.ID, err)
	}
	// Without a list only the numbers are refused that have another meaning in NVML, 0 and all ones.
	fits := func(mhz int) bool { return mhz > 0 && mhz < math.MaxUint32 && (offered == nil || offered[mhz]) }
	if r.Min > r.Max || !fits(r.Min) || !fits(r.Max) {
		return fmt.Errorf("LockClocks of %s: %d to %d MHz: %w; Clocks lists those that it does", d.info.ID, r.Min, r.Max, gpu.ErrInvalid)
	}
	return d.call("LockClocks", setLockedClocks, uintptr(uint32(r.Min)), uintptr(uint32(r.Max)))
}

func (d *device) UnlockClocks() error { return d.call("UnlockClocks", resetLockedClocks) }

func (d *device) Clock() (int, error) { return d.clock("Clock", clockSM) }

func (d *device) MemoryClock() (int, error) { return d.clock("MemoryClock", clockMemory) }

func (d *device) clock(method string, kind uint32) (int, error) {
	var mhz uint32
	err := d.call(method, clockInfo, uintptr(kind), uintptr(unsafe.Pointer(&mhz)))
	return int(mhz), err
}

// Energy is the counter since the driver was loaded, in steps of 1 mJ at least. At is the middle of the call.
func (d *device) Energy() (gpu.EnergySample, error) {
	var millijoules uint64
	start := time.Now()
	err := d.call("Energy", totalEnergy, uintptr(unsafe.Pointer(&millijoules)))
	if err != nil {
		return gpu.EnergySample{}, err
	}
	return gpu.EnergySample{
		// The product wraps, as EnergySample says.
		Energy: unit.Energy(millijoules * uint64(unit.Joule/1000)),
		At:     start.Add(time.Since(start) / 2), Scope: d.scope,
	}, nil
}

// Power is that of this instant where the driver tells it, else the driver's average.
func (d *device) Power() (unit.Power, error) {
	if mw, err := d.field("Power", fieldInstantPower); err == nil {
		return unit.Power(mw) * milliwatt, nil
	}
	mw, err := d.number("Power", powerUsage)
	return unit.Power(mw) * milliwatt, err
}

// field returns a field that is an unsigned number.
func (d *device) field(method string, id uint32) (uint64, error) {
	v := fieldValue{fieldID: id}
	if err := d.call(method, fieldValues, 1, uintptr(unsafe.Pointer(&v))); err != nil {
		return 0, err
	}
	if v.code != Success {
		return 0, fmt.Errorf("%s of %s: field %d: %w", method, d.info.ID, id, &Error{symbolNames[fieldValues], v.code})
	}
	const unsignedInt, unsignedLong, unsignedLongLong = 1, 2, 3
	switch v.valueType {
	case unsignedInt:
		return uint64(binary.NativeEndian.Uint32(v.value[:])), nil
	case unsignedLong, unsignedLongLong:
		return binary.NativeEndian.Uint64(v.value[:]), nil
	}
	return 0, fmt.Errorf("%s of %s: field %d is of type %d: %w", method, d.info.ID, id, v.valueType, gpu.ErrDriver)
}

func (d *device) Temperature() (int, error) {
	v := temperatureInfo{version: versioned(unsafe.Sizeof(temperatureInfo{}))}
	err := d.call("Temperature", temperatureV, uintptr(unsafe.Pointer(&v)))
	if !notThere(err) {
		return int(v.celsius), err
	}
	var celsius uint32
	err = d.call("Temperature", temperature, 0, uintptr(unsafe.Pointer(&celsius)))
	return int(celsius), err
}

// Throttle's Capped is 0 where the driver does not count it.
func (d *device) Throttle() (gpu.Throttle, error) {
	var mask uint64
	err := d.call("Throttle", eventReasons, uintptr(unsafe.Pointer(&mask)))
	if notThere(err) {
		err = d.call("Throttle", throttleReasons, uintptr(unsafe.Pointer(&mask)))
	}
	if err != nil {
		return gpu.Throttle{}, err
	}
	const idle, powerCap, hardware, thermal, hardwareThermal, powerBrake = 0x1, 0x4, 0x8, 0x20, 0x40, 0x80
	t := gpu.Throttle{
		PowerCap: mask&(powerCap|powerBrake) != 0, Thermal: mask&(thermal|hardwareThermal) != 0,
		HardwareSlowdown: mask&hardware != 0, Idle: mask&idle != 0,
	}
	if ns, err := d.field("Throttle", fieldPowerCapped); err == nil {
		t.Capped = time.Duration(min(ns, math.MaxInt64))
	}
	return t, nil
}

// MIG is false on GPUs that cannot be partitioned.
func (d *device) MIG() (bool, error) {
	var current, pending uint32
	err := d.call("MIG", migMode, uintptr(unsafe.Pointer(&current)), uintptr(unsafe.Pointer(&pending)))
	if notThere(err) {
		return false, nil
	}
	return current != 0, err
}

// Persistence tells whether persistence mode is on: without it a lock goes when the last client lets go of the GPU.
func (d *device) Persistence() (bool, error) {
	mode, err := d.number("Persistence", persistenceMode)
	return mode != 0, err
}

// PowerProfiles returns the numbers of the workload power profiles that somebody asked for, and of those in force. They
// move clocks and power beside a lock.
func (d *device) PowerProfiles() (requested, enforced []int, err error) {
	v := profileMasks{version: versioned(unsafe.Sizeof(profileMasks{}))}
	if err := d.call("PowerProfiles", powerProfiles, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, nil, err
	}
	return bits(v.requested), bits(v.enforced), nil
}

func bits(mask [8]uint32) []int {
	var set []int
	for i := range 32 * len(mask) {
		if mask[i/32]>>(i%32)&1 != 0 {
			set = append(set, i)
		}
	}
	return set
}
