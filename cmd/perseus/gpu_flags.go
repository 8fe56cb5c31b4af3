package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/unit"
)

// gpuFlags say which GPUs are meant.
type gpuFlags struct {
	Emulated int    `placeholder:"N" help:"N emulated GPUs instead of those of this node."`
	Library  string `placeholder:"FILE" help:"The NVIDIA management library, where the loader does not find libnvidia-ml.so.1."`
}

// mostEmulated is how many GPUs are emulated at most.
const mostEmulated = 64

// Validate checks the flags.
func (f *gpuFlags) Validate() error {
	switch {
	case f.Emulated < 0 || f.Emulated > mostEmulated:
		return fmt.Errorf("--emulated %d: expected 1 to %d", f.Emulated, mostEmulated)
	case f.Emulated > 0 && f.Library != "":
		return errors.New("--emulated and --library exclude each other")
	}
	return nil
}

// emulate returns the emulated GPUs, much like A100s, in the time of now. What they are set to is kept in files of the
// folder, unless that is empty.
func (f *gpuFlags) emulate(now func() time.Time, folder string) ([]*emulated.Board, error) {
	boards := make([]*emulated.Board, f.Emulated)
	for i := range boards {
		const limit = 400 * unit.Watt
		file := ""
		if folder != "" {
			file = filepath.Join(folder, fmt.Sprintf("gpu%d.json", i))
		}
		var err error
		boards[i], err = emulated.New(emulated.Config{
			Info:   gpu.Info{ID: fmt.Sprintf("emulated:%d", i), Name: "emulated GPU", Index: i},
			MinMHz: 210, MaxMHz: 1410, StepMHz: 15, MemoryMHz: 1593,
			Idle: 60 * unit.Watt, Static: 60 * unit.Watt, Dynamic: 270 * unit.Watt,
			Limit:   gpu.PowerLimit{Requested: limit, Enforced: limit, Default: limit, Min: limit / 4, Max: limit},
			Latency: 10 * time.Millisecond, CounterStep: 20 * time.Millisecond, Seed: uint64(i), Now: now, File: file,
		})
		if err != nil {
			return nil, err
		}
	}
	return boards, nil
}

// opened returns new handles of boards.
func opened(boards []*emulated.Board) []gpu.Device {
	devices := make([]gpu.Device, len(boards))
	for i, b := range boards {
		devices[i] = b.Open()
	}
	return devices
}
