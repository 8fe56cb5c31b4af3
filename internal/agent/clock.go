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

func (monotonic) Now() time.Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has it
	}
	return time.Unix(0, t.Nano())
}

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
