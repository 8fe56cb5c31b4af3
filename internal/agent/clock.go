package agent

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time that events carry, and the timers that go with it.
type Clock interface {
	// Now is monotonic; its UnixNano is what events carry.
	Now() time.Time
	// NewTimer returns a channel that gets a value after d, and what ends the timer before.
	NewTimer(d time.Duration) (c <-chan time.Time, stop func() bool)
}

// Monotonic is CLOCK_MONOTONIC, which all processes of a machine share and nobody sets.
var Monotonic Clock = monotonic{}

type monotonic struct{}

// started and startedNs are one instant: Go reads the same clock, without a system call, but does not say where it began.
var started, startedNs = bothClocks()

// bothClocks reads both clocks, within a microsecond of each other.
func bothClocks() (start time.Time, ns int64) {
	least := time.Duration(-1)
	for range 8 {
		var t unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
			panic(err) // every Linux has it
		}
		if took := time.Since(before); least < 0 || took < least {
			least, start, ns = took, before.Add(took/2), t.Nano()
		}
	}
	return start, ns
}

func (monotonic) Now() time.Time { return time.Unix(0, startedNs+int64(time.Since(started))) }

func (monotonic) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

// sleep waits for d, or returns the error of a context that ends before.
func sleep(ctx context.Context, c Clock, d time.Duration) error {
	t, stop := c.NewTimer(d)
	defer stop()
	select {
	case <-t:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
