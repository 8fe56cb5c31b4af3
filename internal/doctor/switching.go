package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// Switching is how long the GPU took to a clock, from the request to the first reading of it: an upper bound, as fine as
// the readings. The clock that it comes from matters less.
type Switching struct {
	Target int `json:"target_mhz"`
	// Median and Longest are of Tries that reached it; Call is the median time of the call that asks.
	Tries   int       `json:"tries"`
	Reached int       `json:"reached"`
	Median  unit.Time `json:"median_s"`
	Longest unit.Time `json:"longest_s"`
	Call    unit.Time `json:"call_s"`
	// Instead is what was read last where the clock was not reached.
	Instead int `json:"instead_mhz,omitempty"`
}

const (
	targets   = 4
	tries     = 5
	patience  = time.Second
	pollEvery = time.Millisecond
)

// switching measures some targets, or says why not. It returns an error only if ctx ends, and takes its lock back first.
func (g *GPU) switching(ctx context.Context, c *Config, d gpu.Device, partitioned bool) error {
	switch {
	case len(g.ClocksMHz) < 2:
		g.add("switching", Note, "not measured: there is no list of clocks to switch between", "see the finding on the list of clocks")
		return nil
	case partitioned:
		g.add("switching", Note, "not measured: the GPU is partitioned", "see the finding on MIG")
		return nil
	case g.SuspectedLock != nil:
		g.add("switching", Note, "not measured: it would end the lock that somebody else seems to hold, and a lock cannot be read to restore it",
			"take that lock back first: nvidia-smi -i "+g.PCI+" -rgc")
		return nil
	}
	m := meter{c: c, d: d, clocks: g.ClocksMHz}
	err := m.all(ctx, &g.Switching)
	// Also if the context has ended, and if the call that locks failed: it may have worked all the same.
	restore := d.UnlockClocks()
	if !m.locked && (errors.Is(restore, gpu.ErrNoPermission) || errors.Is(restore, gpu.ErrNotSupported)) {
		restore = nil // as was the lock
	}
	const back = "take the lock back: nvidia-smi -i "
	switch {
	case ctx.Err() != nil && restore != nil:
		return fmt.Errorf("interrupted, and the clocks may still be locked: %w; %s%s -rgc", restore, back, g.PCI)
	case ctx.Err() != nil:
		return ctx.Err()
	case restore != nil:
		g.add("switching", Missing, "the clocks may still be locked: "+restore.Error(), back+g.PCI+" -rgc")
	}
	if err != nil {
		g.add("switching", Missing, err.Error(), wayOut(err))
	}
	for _, s := range g.Switching {
		switch {
		case s.Reached == s.Tries:
			g.add("switching", OK, fmt.Sprintf("%d MHz is read %v after the request, at most %v; the call takes %v", s.Target, ms(s.Median), ms(s.Longest), ms(s.Call)), "")
		default:
			g.add("switching", Note, fmt.Sprintf("%d MHz was read %d times of %d within %v, else %d MHz", s.Target, s.Reached, s.Tries, patience, s.Instead),
				"an idle GPU may not follow a lock: measure while something runs on it; a power limit or heat may hold it too, see the throttle reasons")
		}
	}
	return nil
}

// ms returns a time as people read it.
func ms(t unit.Time) time.Duration { return time.Duration(t).Round(10 * time.Microsecond) }

// meter switches the clocks of one GPU.
type meter struct {
	c      *Config
	d      gpu.Device
	clocks []int
	locked bool // once at least
}

// all measures targets spread over the list. What it has is in to, also if it fails.
func (m *meter) all(ctx context.Context, to *[]Switching) error {
	last := len(m.clocks) - 1
	var chosen []int
	for i := range targets {
		chosen = append(chosen, m.clocks[last*i/(targets-1)])
	}
	for _, target := range slices.Compact(chosen) {
		from := m.clocks[0]
		if target == from {
			from = m.clocks[last]
		}
		s, err := m.target(ctx, from, target)
		if err != nil {
			return err
		}
		*to = append(*to, s)
	}
	return nil
}

// target measures how long target takes, from the clock from.
func (m *meter) target(ctx context.Context, from, target int) (Switching, error) {
	s := Switching{Target: target}
	var took, calls []unit.Time
	for s.Tries < tries {
		if _, _, _, err := m.ask(ctx, from); err != nil {
			return s, err
		}
		s.Tries++
		call, t, read, err := m.ask(ctx, target)
		if err != nil {
			return s, err
		}
		calls = append(calls, call)
		if read != target {
			s.Instead = read
			break // the next tries would only cost time
		}
		s.Reached++
		took = append(took, t)
	}
	s.Call = median(calls)
	if len(took) > 0 {
		s.Median, s.Longest = median(took), slices.Max(took)
	}
	return s, nil
}

// ask asks for a clock and waits until it is read, or patience is at its end. It returns how long the call and the
// change took, and the listed clock next to the last reading.
func (m *meter) ask(ctx context.Context, mhz int) (call, took unit.Time, read int, err error) {
	start := m.c.Now()
	if err := m.d.LockClocks(gpu.Range{Min: mhz, Max: mhz}); err != nil {
		return 0, 0, 0, err
	}
	m.locked = true
	call = unit.Time(m.c.Now().Sub(start))
	for {
		now, err := m.d.Clock()
		if err != nil {
			return 0, 0, 0, err
		}
		passed := m.c.Now().Sub(start)
		if read = nearest(m.clocks, now); read == mhz || passed >= patience {
			return call, unit.Time(passed), read, nil
		}
		if err := m.c.Wait(ctx, pollEvery); err != nil {
			return 0, 0, 0, err
		}
	}
}
