package demo

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// longest is how long a nap keeps a thread.
const longest = 100 * time.Microsecond

// nap lets others run and then sleeps for up to d. Go's own timers are a millisecond late where no thread is busy, which
// at the demo's speed is more than a switch of clocks takes.
func nap(d time.Duration) {
	runtime.Gosched()
	t := unix.NsecToTimespec(int64(min(d, longest)))
	_ = unix.Nanosleep(&t, nil) // an interruption ends it early, which it may
}
