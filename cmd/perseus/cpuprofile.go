package main

import (
	"os"
	"runtime/pprof"
)

// profileCPU writes a CPU profile to path until stop is called; with an empty
// path it does nothing.
func profileCPU(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close() // the profile is for developers, who see it is cut
	}, nil
}
