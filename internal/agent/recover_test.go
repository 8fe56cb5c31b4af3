package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/unit"
)

// openOf gives new handles of boards, as a driver does.
func openOf(boards ...*emulated.Board) agent.Open {
	return func() ([]gpu.Device, func() error, error) {
		var devices []gpu.Device
		for _, b := range boards {
			devices = append(devices, b.Open())
		}
		return devices, nil, nil
	}
}

// dying is a device of an agent that may be killed: from then on no call reaches the GPU.
type dying struct {
	gpu.Device
	left *atomic.Int64 // calls until death
}

var errKilled = errors.New("killed")

func (d dying) alive() error {
	if d.left.Add(-1) <= 0 {
		return errKilled
	}
	return nil
}

func (d dying) LockClocks(r gpu.Range) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.Device.LockClocks(r)
}

func (d dying) UnlockClocks() error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.Device.UnlockClocks()
}

// crashed returns a copy of a state folder as it would be found after a crash: what is on disk, and no lock on it.
func crashed(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestKilled drops an agent at a random moment, with a random foreign owner before it and a random number of further
// calls that still reach the GPU, and starts another one on what it left.
func TestKilled(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			synctest.Test(t, func(t *testing.T) {
				b := board(t, 7, time.Duration(random.IntN(40))*ms, 20*ms, time.Now)
				limit := unit.Power(200+random.IntN(200)) * unit.Watt
				if err := b.Open().SetPowerLimit(limit); err != nil {
					t.Fatal(err)
				}
				var restore *gpu.Range
				want := top
				if random.IntN(2) == 0 {
					restore = &gpu.Range{Min: 210, Max: 900}
					want = 900
					if err := b.Open().LockClocks(*restore); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(100 * ms)
				var left atomic.Int64
				left.Store(1 + random.Int64N(60))
				up := newServer()
				state := filepath.Join(t.TempDir(), "state")
				first, stop := start(t, agent.Config{
					Open: func() ([]gpu.Device, func() error, error) {
						return []gpu.Device{dying{b.Open(), &left}}, nil, nil
					},
					Uplink: up, StateDir: state, Restore: restore, Switching: follow.Fine,
				})
				s, err := first.Attach(t.Context(), hello(7))
				if err != nil {
					t.Fatal(err)
				}
				ops, plan := alternating(3, 40*ms, 1200, 1305, 990, 1110)
				up.publish(0, 5, plan)
				tr := &trainer{b: b, dev: b.Open(), s: s, ops: ops, length: time.Duration(plan.IterationNs), wait: 0.2}
				for range 1 + random.IntN(4) {
					tr.iterate()
					if random.IntN(4) == 0 {
						go s.Close() // at the very moment
					}
				}
				left.Store(0)
				found := crashed(t, state)

				second, stop2 := start(t, agent.Config{Open: openOf(b), StateDir: found, Restore: restore})
				<-second.Ready()
				time.Sleep(time.Second)
				d := b.Open()
				if got := clockOf(b); got != want {
					t.Errorf("left at %d MHz, was at %d", got, want)
				}
				memory, _ := d.MemoryClock()
				if p, _ := d.PowerLimit(); p.Requested != limit || memory != 1593 {
					t.Errorf("power limit %v, memory clock %d", p.Requested, memory)
				}
				if left, err := filepath.Glob(filepath.Join(found, "*.json")); err != nil || len(left) > 0 {
					t.Errorf("records left: %v, %v", left, err)
				}
				if err := errors.Join(stop2(), stop()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// drive attaches rank 7 and runs iterations of a plan.
func drive(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) *trainer {
	t.Helper()
	s, err := a.Attach(t.Context(), hello(7))
	if err != nil {
		t.Fatal(err)
	}
	ops, plan := alternating(2, 40*ms, 1200, 990)
	up.publish(0, 1, plan)
	time.Sleep(ms)
	return &trainer{b: b, dev: b.Open(), s: s, ops: ops, length: time.Duration(plan.IterationNs), wait: 0.2}
}

// each runs a test with an agent on one board in virtual time.
func each(t *testing.T, change func(c *agent.Config, b *emulated.Board), test func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := board(t, 7, 10*ms, 20*ms, time.Now)
		up := newServer()
		c := agent.Config{Open: openOf(b), Uplink: up, StateDir: filepath.Join(t.TempDir(), "state"), Switching: follow.Fine}
		change(&c, b)
		a, stop := start(t, c)
		<-a.Ready()
		test(t, a, up, b)
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if got := clockOf(b); got != top {
			t.Errorf("left at %d MHz", got)
		}
	})
}

func same(*agent.Config, *emulated.Board) {}

// TestStop: an agent that is stopped gives back what it took.
func TestStop(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		drive(t, a, up, b).iterate()
		if clockOf(b) == top {
			t.Error("no clock was set")
		}
	})
}

// TestSilent: a process that shows no sign of life loses its lease after three heartbeats.
func TestSilent(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		time.Sleep(10 * time.Second)
		tr.event(wire.Heartbeat, "", 0)
		time.Sleep(10 * time.Second)
		select {
		case <-tr.s.Ended():
			t.Error("ended in spite of a heartbeat")
		default:
		}
		time.Sleep(6 * time.Second)
		<-tr.s.Ended()
		if got := clockOf(b); got != top {
			t.Errorf("left at %d MHz", got)
		}
		tr.iterate() // goes on without an agent
	})
}

func TestKillSwitch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "max-clock")
	each(t, func(c *agent.Config, _ *emulated.Board) { c.KillSwitch = file }, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tr.iterate()
		if got := clockOf(b); got != top {
			t.Errorf("%d MHz in spite of the kill switch", got)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		tr.iterate()
		if clockOf(b) == top {
			t.Error("not steered any more after the kill switch is gone")
		}
	})
}

// TestReadOnly: without permission clocks stay, ops are measured, and the process is told.
func TestReadOnly(t *testing.T) {
	each(t, func(_ *agent.Config, b *emulated.Board) { b.SetReadOnly(true) }, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		for range 3 {
			tr.iterate()
		}
		if text := <-tr.s.Notices(); !strings.Contains(text, "permission") {
			t.Errorf("notice %q", text)
		}
		if steering, note := tr.s.Steering(); steering || note == "" {
			t.Errorf("steering %v, %q", steering, note)
		}
		time.Sleep(time.Second)
		if len(up.taken()) == 0 {
			t.Error("nothing was measured")
		}
		tr.s.Close()
	})
}

// TestFullDisk: what was found cannot be written down, so nothing is changed.
func TestFullDisk(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	each(t, func(c *agent.Config, _ *emulated.Board) {
		c.StateDir = state
		// A folder in the record's place stands for a disk that takes nothing.
		if err := os.MkdirAll(filepath.Join(state, "emulated:7.json"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(state, 0o700); err != nil {
			t.Fatal(err)
		}
		c.Restore = nil
	}, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		time.Sleep(time.Second)
		if err := os.MkdirAll(filepath.Join(state, "emulated:7.json", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		tr := drive(t, a, up, b)
		tr.iterate()
		if got := clockOf(b); got != top {
			t.Errorf("%d MHz without a record", got)
		}
		if steering, note := tr.s.Steering(); steering || !strings.Contains(note, "disk") {
			t.Errorf("steering %v, %q", steering, note)
		}
	})
}

// TestLost: the GPU falls off the bus while it is steered; when it is back it is steered again, and given back.
func TestLost(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		b.Lose()
		time.Sleep(3 * time.Second)
		tr.event(wire.Heartbeat, "", 0)
		b.Recover()
		tr.dev = b.Open()
		time.Sleep(8 * time.Second)
		for range 3 {
			tr.iterate()
		}
		if clockOf(b) == top {
			t.Error("not steered after the GPU is back")
		}
		tr.s.Close()
	})
}

// TestOneDriver: never two leases of one GPU.
func TestOneDriver(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		for name, c := range map[string]struct {
			change func(h *wire.Hello)
			code   wire.Code
		}{
			"another rank": {func(h *wire.Hello) { h.Rank, h.PP = 6, 6 }, wire.Busy},
			"another job":  {func(h *wire.Hello) { h.Job = "other" }, wire.Busy},
			"no such GPU":  {func(h *wire.Hello) { h.Device = "3" }, wire.Invalid},
			"no name":      {func(h *wire.Hello) { h.Job = "" }, wire.Invalid},
		} {
			h := hello(7)
			c.change(&h)
			var refusal *wire.Refusal
			if _, err := a.Attach(t.Context(), h); !errors.As(err, &refusal) || refusal.Code != c.code {
				t.Errorf("%s: got %v", name, err)
			}
		}
		again, err := a.Attach(t.Context(), hello(7))
		if err != nil {
			t.Fatal(err)
		}
		<-tr.s.Ended()
		if a.Stats().Leases != 1 {
			t.Errorf("%d leases", a.Stats().Leases)
		}
		again.Close()
	})
}

func TestDrain(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		drained, err := a.Drain(t.Context(), "all")
		if err != nil || fmt.Sprint(drained) != "[emulated:7]" {
			t.Fatalf("drained %v, %v", drained, err)
		}
		<-tr.s.Ended()
		time.Sleep(100 * ms)
		if got := clockOf(b); got != top {
			t.Errorf("left at %d MHz", got)
		}
		b.Lose() // a reset needs it
		b.Recover()
		var refusal *wire.Refusal
		if _, err := a.Attach(t.Context(), hello(7)); !errors.As(err, &refusal) || refusal.Code != wire.Unavailable {
			t.Errorf("got %v", err)
		}
		if drained, err := a.Resume(t.Context(), "7"); err != nil || len(drained) != 0 {
			t.Fatalf("still drained: %v, %v", drained, err)
		}
		time.Sleep(time.Second)
		tr = drive(t, a, up, b)
		for range 3 {
			tr.iterate()
		}
		if clockOf(b) == top {
			t.Error("not steered after the drain")
		}
		tr.s.Close()
	})
}

// TestServerAway: the last schedule stays in force, and reports arrive when the server is back.
func TestServerAway(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		up.fail(errDown)
		for range 20 {
			tr.iterate()
		}
		if clockOf(b) == top {
			t.Error("no longer steered")
		}
		up.taken()
		up.fail(nil)
		time.Sleep(14 * time.Second)
		if n := len(up.taken()); n < 18 {
			t.Errorf("%d reports of 20 iterations", n)
		}
	})
}

// TestGenerations: a process that starts anew begins a new generation, in which iterations count from 0.
func TestGenerations(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		tr.iterate()
		tr.s.Close()
		h := hello(7)
		h.Session = "another process"
		s, err := a.Attach(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if s.Generation() != 2 {
			t.Errorf("generation %d", s.Generation())
		}
		tr.s, tr.sequence = s, 0
		time.Sleep(time.Second)
		up.taken()
		for range 3 {
			tr.iterate()
		}
		time.Sleep(2 * time.Second)
		if r := up.taken(); len(r) != 3 || r[2].Iteration != 2 {
			t.Errorf("reports %+v", r)
		}
		// A rank elsewhere has started anew: ours is refused, and registers again.
		up.mu.Lock()
		up.generation++
		up.mu.Unlock()
		up.publish(0, 1, api.RankSchedule{Rank: 7, Mode: api.MaxClock})
		time.Sleep(time.Second)
		if s.Generation() != 3 {
			t.Errorf("generation %d", s.Generation())
		}
		s.Close()
	})
}

// TestCampaign: in mode uniform each iteration is reported with the clocks and energies of its ops.
func TestCampaign(t *testing.T) {
	each(t, same, func(t *testing.T, a *agent.Agent, up *server, b *emulated.Board) {
		tr := drive(t, a, up, b)
		up.publish(0, 1, api.RankSchedule{Rank: 7, Mode: api.Uniform, Uniform: map[string]int{"forward": 1200, "backward": 900}})
		time.Sleep(10 * ms)
		tr.ops, _ = alternating(4, 60*ms, 1200, 1200)
		for range 24 {
			tr.iterate()
		}
		time.Sleep(2 * time.Second)
		seen := map[string]int{}
		for _, r := range up.taken() {
			for _, o := range r.Ops {
				if o.Capped || len(o.EnergyJ) == 0 || len(o.EnergyJ) != len(o.TimeS) {
					continue
				}
				load := 0.8
				if o.Instruction == "backward" {
					load = 1
				}
				x := float64(o.FrequencyMHz) / top
				watts := 50 + load*(50+300*x*x*x)
				for i, e := range o.EnergyJ {
					if got := e / o.TimeS[i]; got < 0.97*watts || got > 1.03*watts {
						t.Errorf("%s at %d MHz: %.1f W, the GPU draws %.1f", o.Instruction, o.FrequencyMHz, got, watts)
					}
				}
				seen[fmt.Sprint(o.Instruction, o.FrequencyMHz)] += len(o.EnergyJ)
			}
		}
		for _, k := range []string{"forward1200", "backward1200", "forward900", "backward900"} {
			if seen[k] < 6 {
				t.Errorf("%s: %d samples", k, seen[k])
			}
		}
		tr.s.Close()
	})
}

// TestAttachEarly: a session waits for Run, or for its own context.
func TestAttachEarly(t *testing.T) {
	a, err := agent.New(agent.Config{Open: openOf(board(t, 7, 0, 0, time.Now))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Attach(ctx, hello(7)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
