package agent_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perseus-energy/perseus/internal/agent"
)

// TestMonotonic compares the agents' clock with the one that the events of other processes carry.
func TestMonotonic(t *testing.T) {
	for range 100 {
		var a, b unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &a); err != nil {
			t.Fatal(err)
		}
		now := agent.Monotonic.Now().UnixNano()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &b); err != nil {
			t.Fatal(err)
		}
		if slack := (100 * time.Microsecond).Nanoseconds(); now < a.Nano()-slack || now > b.Nano()+slack {
			t.Fatalf("it is between %d and %d, but shows %d", a.Nano(), b.Nano(), now)
		}
	}
}
