package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// Config says what to show.
type Config struct {
	// Stages, Pipelines and Microbatches are the size of the job; each stage of each pipeline has a GPU.
	Stages, Pipelines, Microbatches int
	// Profile, if not nil, has what ops take on the GPUs, instead of a formula, and as many stages as Stages.
	Profile *profile.Profile
	// Blocking is what a GPU draws while it waits.
	Blocking unit.Power
	// Latency is how long a switch of clocks takes, in the GPUs' time.
	Latency time.Duration
	// CounterStep is how often the energy counters move, in the GPUs' time.
	CounterStep time.Duration
	// Speed is by how much their time is faster than real; 0: so that an iteration takes a tenth of a second.
	Speed float64
	// Listen is the server's address, host and port.
	Listen string
	// Keep has it run on after the summary, until ctx ends.
	Keep bool
	// Limit is the real time in which the summary must be there.
	Limit time.Duration
	// Version is what the server calls itself.
	Version string
	Logger  *slog.Logger // nil: nothing is logged
}

// jobID is the job's id on the server.
const jobID = "demo"

// Result is what was found. All numbers but Simulated and Frontier are what the GPUs really took.
type Result struct {
	Saving      float64 `json:"saving_percent"`
	Slowdown    float64 `json:"slowdown_percent"`
	Straggler   float64 `json:"straggler_saving_percent"`
	Restored    bool    `json:"clocks_restored"`
	Simulated   float64 `json:"simulated_saving_percent"`
	Frontier    float64 `json:"frontier_saving_percent,omitempty"`
	MaxTimeS    float64 `json:"max_clock_time_s"`
	MaxEnergyJ  float64 `json:"max_clock_energy_j"`
	TimeS       float64 `json:"time_s"`
	EnergyJ     float64 `json:"energy_j"`
	SlowTimeS   float64 `json:"straggler_time_s"`
	SlowEnergyJ float64 `json:"straggler_energy_j"`
	Profiling   int64   `json:"profiling_iterations"`
	Iterations  int     `json:"iterations"`
	Checks      []Check `json:"checks"`
}

// Check is a statement about the result and whether it holds.
type Check struct {
	Text string `json:"text"`
	OK   bool   `json:"ok"`
}

// Err returns an error that names what does not hold, or nil.
func (r *Result) Err() error {
	var failed []error
	for _, c := range r.Checks {
		if !c.OK {
			failed = append(failed, errors.New("does not hold: "+c.Text))
		}
	}
	return errors.Join(failed...)
}

// View shows what happens. Methods are called by one goroutine at a time.
type View interface {
	// Line is something that happened, Status what is under way and will be replaced.
	Line(text string)
	Status(text string)
}

// threads is how many of them the demo needs at least: server and agents compute, and what is due on the clock must not
// wait for that.
const threads = 6

// Run shows the demo and returns what was found, once everything that it started has ended; done, which may be nil, is
// called with the result as soon as it is known. With Keep it goes on between the two until ctx ends, and Restored is
// only known then. It fails where something cannot be started, where a step takes too long, and with ctx's error where
// that ends before the result is there; it does not fail on a result whose checks do not hold. While it runs the process
// uses six threads at least.
func Run(ctx context.Context, c Config, v View, done func(*Result)) (result *Result, err error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if done == nil {
		done = func(*Result) {}
	}
	if before := runtime.GOMAXPROCS(0); before < threads {
		runtime.GOMAXPROCS(threads)
		defer runtime.GOMAXPROCS(before)
	}
	dir, err := os.MkdirTemp("", "perseus-demo-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the database: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := newCluster(c)
	if err != nil {
		return nil, err
	}
	found := cluster.settings()
	w, err := startWorld(ctx, c, filepath.Join(dir, "perseus.db"), cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	s := &story{Config: c, View: v, cluster: cluster, world: w, begun: time.Now()}
	if result, err = s.tell(ctx, done); err != nil {
		return nil, err
	}
	w.leave()
	w.endAgents()
	result.Restored = slices.Equal(cluster.settings(), found)
	result.Checks = append(result.Checks, Check{fmt.Sprintf("all %d GPUs have the clocks and limits that they had before", len(found)), result.Restored})
	if c.Keep {
		s.line("the agents have ended; clocks restored: %t", result.Restored)
	} else {
		done(result)
	}
	return result, nil
}
