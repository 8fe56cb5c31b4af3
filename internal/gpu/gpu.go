// Package gpu is what the node agent sees of a GPU. Its sub-package emulated is a model in software; every
// implementation passes the same contract suite, package gputest.
//
// A clock has three values that are kept apart: the range that was requested, which drivers may not tell, the range
// in force, and the clock that the GPU really has. Devices are known by their id; indices change between boots.
package gpu

import (
	"errors"
	"time"

	"github.com/perseus-energy/perseus/unit"
)

// Errors that a Device returns, possibly wrapped. A call that fails with ErrNotSupported says nothing of other calls.
var (
	// ErrNotSupported: this GPU or driver has no such call.
	ErrNotSupported = errors.New("not supported by this GPU or driver")
	// ErrNoPermission: reading is allowed, changing is not.
	ErrNoPermission = errors.New("no permission")
	// ErrLost: the GPU fell off the bus, was reset or unbound; the handle is of no more use.
	ErrLost = errors.New("the GPU is lost")
	// ErrInvalid: a value that the GPU does not offer.
	ErrInvalid = errors.New("not a value that the GPU offers")
	// ErrDriver: the driver failed in another way; the same call may work later.
	ErrDriver = errors.New("the driver failed")
)

// Scope is what an energy counter or a power limit covers.
type Scope string

// The scopes.
const (
	ScopeDie    Scope = "die"
	ScopeGPU    Scope = "gpu"
	ScopeModule Scope = "module" // CPU and memory too
)

// Info is what does not change while a handle is good.
type Info struct {
	// ID has the vendor's prefix, as in nvidia:GPU-5a0f….
	ID     string
	Name   string
	Driver string
	// PCI is the bus address, Index the number of today.
	PCI   string
	Index int
}

// Range is an interval of clocks in MHz, both ends included.
type Range struct{ Min, Max int }

// EnergySample is a reading of an energy counter.
type EnergySample struct {
	// Energy counts from an unknown start, in steps, and wraps at 64 bits: only the difference of two samples means
	// something. Subtracted as they are, b.Energy − a.Energy, it is right for up to 9.2 MJ, hours at full power.
	Energy unit.Energy
	// At is when the counter was read, on the monotonic clock.
	At    time.Time
	Scope Scope
}

// Throttle says why a GPU is slower than asked.
type Throttle struct {
	PowerCap, Thermal, HardwareSlowdown, Idle bool
	// Capped is the time since driver start spent below the request because of power; it grows only.
	Capped time.Duration
}

// PowerLimit holds the limits of a GPU; a zero is unknown.
type PowerLimit struct {
	Requested, Enforced, Default, Min, Max unit.Power
}

// Device is one GPU. All methods are safe for concurrent use and may take milliseconds; none retries. Errors name the
// call.
type Device interface {
	Info() Info
	// Clocks lists the graphics clocks on offer, from the highest down.
	Clocks() ([]int, error)
	// LockClocks asks for a graphics clock within r. Success means accepted, not reached. Needs permission.
	LockClocks(r Range) error
	// UnlockClocks takes the request back; without one it does nothing.
	UnlockClocks() error
	// Clock and MemoryClock are what the GPU has now, in MHz.
	Clock() (int, error)
	MemoryClock() (int, error)
	PowerLimit() (PowerLimit, error)
	// SetPowerLimit needs permission.
	SetPowerLimit(unit.Power) error
	Energy() (EnergySample, error)
	Power() (unit.Power, error)
	// Temperature in °C.
	Temperature() (int, error)
	Throttle() (Throttle, error)
	// MIG tells whether the GPU is partitioned.
	MIG() (bool, error)
}
