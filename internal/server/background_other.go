//go:build !linux

package server

import "runtime"

// background keeps the calling goroutine on a thread of its own.
func background() { runtime.LockOSThread() }
