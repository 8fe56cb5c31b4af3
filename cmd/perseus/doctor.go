package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/doctor"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
)

type doctorCommand struct {
	JSON             bool `name:"json" help:"Write one JSON object."`
	MeasureSwitching bool `help:"Measure how long clocks take to change. Locks clocks for some seconds a GPU and takes that back; stop perseus agent first."`
	gpuFlags
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
		boards, err := c.emulate(time.Now, "")
		config.Devices = opened(boards)
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
