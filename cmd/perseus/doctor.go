package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/doctor"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
	"github.com/perseus-energy/perseus/unit"
)

type doctorCommand struct {
	JSON             bool   `name:"json" help:"Write one JSON object."`
	MeasureSwitching bool   `help:"Measure how long clocks take to change. Locks clocks for some seconds a GPU and takes that back; stop perseus agent first."`
	Emulated         int    `placeholder:"N" help:"Look at N emulated GPUs instead of those of this node."`
	Library          string `placeholder:"FILE" help:"The NVIDIA management library, where the loader does not find libnvidia-ml.so.1."`
}

// Help is the text of perseus doctor --help.
func (doctorCommand) Help() string {
	return `Looks at driver, permission, calls, MIG, locks of others, power limits and energy counters, and names the way out of what is missing. It only reads, unless --measure-switching is given. docs/doctor.md explains the findings.

The exit status is 0 if all that Perseus needs is there, 1 if something is missing, 2 if the flags are wrong.

Examples:

    perseus doctor
    sudo perseus doctor --measure-switching --json
    perseus doctor --emulated 2`
}

// mostEmulated is how many GPUs are emulated at most.
const mostEmulated = 64

// Validate checks the flags.
func (c *doctorCommand) Validate() error {
	switch {
	case c.Emulated < 0 || c.Emulated > mostEmulated:
		return fmt.Errorf("--emulated %d: expected 1 to %d", c.Emulated, mostEmulated)
	case c.Emulated > 0 && c.Library != "":
		return errors.New("--emulated and --library exclude each other")
	}
	return nil
}

// grace is what an interrupt leaves to take a lock back.
func (*doctorCommand) grace() time.Duration { return 5 * time.Second }

// Run examines this node with package doctor.
func (c *doctorCommand) Run(w *world) error {
	config, closeAll, err := c.open(w)
	if err != nil {
		return err
	}
	report, err := doctor.Examine(w.ctx, config)
	if err := errors.Join(err, closeAll()); err != nil {
		return err
	}
	write := report.WriteText
	if c.JSON {
		write = report.WriteJSON
	}
	if err := write(w.stdout); err != nil {
		return err
	}
	if n := report.Missing(); n > 0 {
		return fmt.Errorf("something is missing here that Perseus needs (findings of level missing: %d); each says the way out", n)
	}
	return nil
}

// open returns what to examine, and what lets go of it. That a driver cannot be opened is for the doctor to say.
func (c *doctorCommand) open(w *world) (doctor.Config, func() error, error) {
	config := doctor.Config{MeasureSwitching: c.MeasureSwitching, Now: time.Now, Wait: wait, Skipped: map[int]error{}}
	nothing := func() error { return nil }
	if c.Emulated > 0 {
		devices, err := emulatedGPUs(c.Emulated)
		config.Devices = devices
		return config, nothing, err
	}
	config.Privilege = doctor.SysAdmin
	devices, closeAll, err := nvml.Open(w.ctx, nvml.Config{
		Library: c.Library, Skipped: func(i int, err error) { config.Skipped[i] = err },
	})
	switch {
	case w.ctx.Err() != nil && err != nil:
		return config, nothing, w.ctx.Err()
	case err != nil:
		config.OpenError = err
		return config, nothing, nil
	}
	config.Devices = devices
	return config, closeAll, nil
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// emulatedGPUs returns n GPUs much like an A100, in real time.
func emulatedGPUs(n int) ([]gpu.Device, error) {
	var devices []gpu.Device
	for i := range n {
		limit := 400 * unit.Watt
		b, err := emulated.New(emulated.Config{
			Info:   gpu.Info{ID: fmt.Sprintf("emulated:%d", i), Name: "emulated GPU", Index: i},
			MinMHz: 210, MaxMHz: 1410, StepMHz: 15, MemoryMHz: 1593,
			Idle: 60 * unit.Watt, Static: 60 * unit.Watt, Dynamic: 270 * unit.Watt,
			Limit:   gpu.PowerLimit{Requested: limit, Enforced: limit, Default: limit, Min: limit / 4, Max: limit},
			Latency: 10 * time.Millisecond, CounterStep: 20 * time.Millisecond, Seed: uint64(i), Now: time.Now,
		})
		if err != nil {
			return nil, err
		}
		devices = append(devices, b.Open())
	}
	return devices, nil
}
