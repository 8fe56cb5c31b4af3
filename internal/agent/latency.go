package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/record"
	"github.com/perseus-energy/perseus/internal/gpu"
)

// enough is how many times a switch to a clock is measured.
const enough = 8

// latencyFile is where measured latencies are kept in the state folder, by GPU model, driver and target.
const latencyFile = "latency.cache"

// latencies are the measured times from a request to the clock, by model and driver, then target. Safe for concurrent
// use.
type latencies struct {
	guess time.Duration
	mu    sync.Mutex
	seen  map[string]map[int][]time.Duration
}

func newLatencies(guess time.Duration) *latencies {
	return &latencies{guess: guess, seen: map[string]map[int][]time.Duration{}}
}

func modelOf(i gpu.Info) string { return i.Name + "|" + i.Driver }

// of returns the least and the usual largest latency of a target; where it was not measured, none and that of the
// model's, or the guess.
func (l *latencies) of(model string, mhz int) (earliest, latest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.seen[model][mhz]; len(v) > 0 {
		return slices.Min(v), usual(v)
	}
	for _, v := range l.seen[model] {
		latest = max(latest, usual(v))
	}
	if latest == 0 {
		latest = l.guess
	}
	return 0, latest
}

// longest returns the usual largest latency that was measured of a model; 0: none was.
func (l *latencies) longest(model string) (d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.seen[model] {
		d = max(d, usual(v))
	}
	return d
}

// usual returns the largest of measured latencies. Of four or more the largest is left out, as a switch that a busy
// machine came late to see says nothing of the GPU.
func usual(v []time.Duration) time.Duration {
	if len(v) < 4 {
		return slices.Max(v)
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)-2]
}

// wanted tells whether a switch to a target should be measured.
func (l *latencies) wanted(model string, mhz int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen[model][mhz]) < enough
}

// add takes a measured latency and returns how many there are of the target now.
func (l *latencies) add(model string, mhz int, d time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[model] == nil {
		l.seen[model] = map[int][]time.Duration{}
	}
	v := append(l.seen[model][mhz], d)
	l.seen[model][mhz] = v
	return len(v)
}

// load reads what an earlier agent measured; a file that is missing or wrong is as none.
func (l *latencies) load(f *record.Folder) {
	text, err := f.Read(latencyFile)
	if err != nil {
		return
	}
	seen := map[string]map[int][]time.Duration{}
	if json.Unmarshal(text, &seen) != nil {
		return
	}
	for model, targets := range seen {
		for mhz, v := range targets {
			for _, d := range v[:min(len(v), enough)] {
				if d >= 0 && d < time.Minute {
					l.add(model, mhz, d)
				}
			}
		}
	}
}

// save writes what is known; it is only lost time if that fails.
func (l *latencies) save(f *record.Folder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text, err := json.Marshal(l.seen); err == nil && len(text) < 1<<16 {
		_ = f.Write(latencyFile, text)
	}
}

// String is for logs.
func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.seen)
}
