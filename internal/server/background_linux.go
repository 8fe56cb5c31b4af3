package server

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// politeness is how far work in the background stands back, as a nice value: it gets a tenth of a core that others want.
const politeness = 10

// background keeps the calling goroutine on a thread of its own, which stands back where others want the processor, and
// ends with it. It only helps that others are answered sooner, so that a refusal is no error.
func background() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), politeness)
}
