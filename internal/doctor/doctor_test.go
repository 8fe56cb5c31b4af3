package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/doctor"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
	"github.com/perseus-energy/perseus/unit"
)

// bench is emulated boards on a clock that moves only when the doctor waits.
type bench struct {
	now    time.Time
	boards []*emulated.Board
	waits  int
	onWait func(waits int) error
}

func newBench(t *testing.T, n int) *bench {
	t.Helper()
	b := &bench{now: time.Unix(0, 0)}
	for i := range n {
		board, err := emulated.New(emulated.Config{
			Info:   gpu.Info{ID: fmt.Sprintf("emulated:%d", i), Name: "emulated", Driver: "1.0", Index: i},
			MinMHz: 210, MaxMHz: 1410, StepMHz: 15, MemoryMHz: 1593,
			Idle: 50 * unit.Watt, Static: 50 * unit.Watt, Dynamic: 300 * unit.Watt,
			Limit:   gpu.PowerLimit{Requested: 400 * unit.Watt, Enforced: 400 * unit.Watt, Default: 400 * unit.Watt, Min: 100 * unit.Watt, Max: 400 * unit.Watt},
			Latency: 10 * time.Millisecond, CounterStep: 100 * time.Millisecond, Now: func() time.Time { return b.now },
		})
		if err != nil {
			t.Fatal(err)
		}
		b.boards = append(b.boards, board)
	}
	return b
}

func (b *bench) config() doctor.Config {
	c := doctor.Config{Now: func() time.Time { return b.now }, Wait: func(ctx context.Context, d time.Duration) error {
		b.now = b.now.Add(d)
		if b.waits++; b.onWait != nil {
			return b.onWait(b.waits)
		}
		return ctx.Err()
	}}
	for _, board := range b.boards {
		c.Devices = append(c.Devices, board.Open())
	}
	return c
}

func examine(t *testing.T, c doctor.Config) doctor.Report {
	t.Helper()
	r, err := doctor.Examine(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all(r) {
		if (f.WayOut == "") != (f.Level == doctor.OK) || f.Found == "" || f.Check == "" {
			t.Errorf("not OK without a way out, or a way out of what is OK: %+v", f)
		}
	}
	return r
}

func all(r doctor.Report) []doctor.Finding {
	f := slices.Clone(r.Findings)
	for _, g := range r.GPUs {
		f = append(f, g.Findings...)
	}
	return f
}

// levels returns the checks that are not OK, with their levels, and whether one of them contains text.
func levels(r doctor.Report) map[string]doctor.Level {
	l := map[string]doctor.Level{}
	for _, f := range all(r) {
		if f.Level != doctor.OK {
			l[f.Check] = f.Level
		}
	}
	return l
}

func TestFindings(t *testing.T) {
	type want = map[string]doctor.Level
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		prepare func(*emulated.Board)
		change  func(*doctor.Config)
		want    want
	}{
		"all well": {},
		"partitioned": {
			prepare: func(b *emulated.Board) { b.SetMIG(true) },
			want:    want{"MIG": doctor.Missing},
		},
		"lost": {
			prepare: func(b *emulated.Board) { b.Lose() },
			want: want{
				"list of clocks": doctor.Missing, "clock": doctor.Missing, "energy": doctor.Missing, "throttle reasons": doctor.Note, "power": doctor.Note,
				"power limit": doctor.Note, "temperature": doctor.Note, "memory clock": doctor.Note, "MIG mode": doctor.Note,
			},
		},
		"no energy counter": {
			prepare: func(b *emulated.Board) { b.Fail("Energy", gpu.ErrNotSupported) },
			want:    want{"energy": doctor.Missing},
		},
		"no temperature": {
			prepare: func(b *emulated.Board) { b.Fail("Temperature", gpu.ErrNotSupported) },
			want:    want{"temperature": doctor.Note},
		},
		"capped by power": {
			prepare: func(b *emulated.Board) {
				b.SetLoad(1)
				if err := b.Open().SetPowerLimit(200 * unit.Watt); err != nil {
					panic(err)
				}
			},
			want: want{"power limit": doctor.Note, "throttle reasons": doctor.Note},
		},
		"hot": {
			prepare: func(b *emulated.Board) { b.SetLoad(1); b.SetCeiling(900) },
			want:    want{"throttle reasons": doctor.Note},
		},
		"foreign lock": {
			prepare: func(b *emulated.Board) { b.SetLoad(1); foreign(b, 705) },
			want:    want{"foreign lock": doctor.Note},
		},
		"no GPU": {
			change: func(c *doctor.Config) { c.Devices = nil },
			want:   want{"gpus": doctor.Missing},
		},
		"one skipped": {
			change: func(c *doctor.Config) { c.Skipped = map[int]error{3: broken} },
			want:   want{"gpus": doctor.Missing},
		},
		"no driver": {
			change: func(c *doctor.Config) { c.Devices, c.OpenError = nil, nvml.ErrNoLibrary },
			want:   want{"driver": doctor.Missing},
		},
		"no privilege": {
			change: func(c *doctor.Config) { c.Privilege = func() (bool, string) { return false, "told so" } },
			want:   want{"permission": doctor.Missing},
		},
		"privilege": {
			change: func(c *doctor.Config) { c.Privilege = func() (bool, string) { return true, "told so" } },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			config := b.config()
			if c.prepare != nil {
				c.prepare(b.boards[0])
				b.now = b.now.Add(time.Second)
			}
			if c.change != nil {
				c.change(&config)
			}
			r := examine(t, config)
			if got := levels(r); len(got) != len(c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			} else {
				for check, level := range c.want {
					if got[check] != level {
						t.Errorf("%s: %q, want %q", check, got[check], level)
					}
				}
			}
			missing := 0
			for _, l := range c.want {
				if l == doctor.Missing {
					missing++
				}
			}
			if r.Missing() != missing || r.OK != (missing == 0) {
				t.Errorf("%d missing, OK %v; want %d", r.Missing(), r.OK, missing)
			}
		})
	}
}

// foreign locks a board for somebody else.
func foreign(b *emulated.Board, mhz int) {
	if err := b.ForeignLock(gpu.Range{Min: mhz, Max: mhz}); err != nil {
		panic(err)
	}
}

func TestCounter(t *testing.T) {
	r := examine(t, newBench(t, 1).config())
	c := r.GPUs[0].Counter
	if c == nil || c.Period != 100*unit.Millisecond || c.Step != 5*unit.Joule || c.Scope != gpu.ScopeGPU {
		t.Errorf("%+v", c) // 50 W idle
	}
}

// still is a GPU whose counter does not move.
type still struct{ gpu.Device }

func (still) Energy() (gpu.EnergySample, error) { return gpu.EnergySample{Energy: 1}, nil }

// module is one whose counter covers the processor too, with what only NVML tells.
type module struct{ gpu.Device }

func (m module) Energy() (gpu.EnergySample, error) {
	s, err := m.Device.Energy()
	s.Scope = gpu.ScopeModule
	return s, err
}
func (module) Persistence() (bool, error)             { return false, nil }
func (module) PowerProfiles() (_, _ []int, err error) { return []int{1}, []int{1}, nil }

func TestBackends(t *testing.T) {
	b := newBench(t, 2)
	c := b.config()
	c.Devices = []gpu.Device{still{c.Devices[0]}, module{c.Devices[1]}}
	got := levels(examine(t, c))
	for check, want := range map[string]doctor.Level{
		"energy counter": doctor.Missing, "energy scope": doctor.Note, "persistence": doctor.Note, "power profiles": doctor.Note,
	} {
		if got[check] != want {
			t.Errorf("%s: %q, want %q", check, got[check], want)
		}
	}
}

// watched counts what changes a GPU.
type watched struct {
	gpu.Device
	changes *int
}

func (w watched) LockClocks(r gpu.Range) error { *w.changes++; return w.Device.LockClocks(r) }
func (w watched) UnlockClocks() error          { *w.changes++; return w.Device.UnlockClocks() }

func (w watched) SetPowerLimit(p unit.Power) error { *w.changes++; return w.Device.SetPowerLimit(p) }

func watch(c *doctor.Config, changes *int) { c.Devices[0] = watched{c.Devices[0], changes} }

// unlocked checks that clocks were changed, and nothing is left of that.
func unlocked(t *testing.T, b *bench, changes int) {
	t.Helper()
	b.now = b.now.Add(time.Second)
	if got, err := b.boards[0].Open().Clock(); got != 1410 || err != nil || changes == 0 {
		t.Errorf("clock %d, %v after %d changes; want 1410", got, err, changes)
	}
}

func TestReadsOnly(t *testing.T) {
	b, changes := newBench(t, 1), 0
	c := b.config()
	watch(&c, &changes)
	examine(t, c)
	if changes != 0 {
		t.Errorf("%d changes without being asked to measure", changes)
	}
}

func TestSwitching(t *testing.T) {
	b, changes := newBench(t, 1), 0
	c := b.config()
	watch(&c, &changes)
	c.MeasureSwitching = true
	r := examine(t, c)
	got := r.GPUs[0].Switching
	if len(got) != 4 || !r.OK {
		t.Fatalf("%+v", r)
	}
	for i, target := range []int{1410, 1020, 615, 210} {
		s := got[i]
		if s.Target != target || s.Reached != 5 || s.Tries != 5 || s.Median != 10*unit.Millisecond || s.Longest != s.Median || s.Call != 0 {
			t.Errorf("%+v, want 10 ms to %d MHz", s, target)
		}
	}
	unlocked(t, b, changes)
}

func TestSwitchingUnderHeat(t *testing.T) {
	b, changes := newBench(t, 1), 0
	b.boards[0].SetCeiling(1005)
	c := b.config()
	watch(&c, &changes)
	c.MeasureSwitching = true
	got := examine(t, c).GPUs[0].Switching
	if len(got) != 4 || got[0].Reached != 0 || got[0].Instead != 1005 || got[1].Reached != 0 || got[2].Reached != 5 {
		t.Errorf("%+v", got)
	}
	b.boards[0].SetCeiling(0)
	unlocked(t, b, changes)
}

func TestSwitchingRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*emulated.Board)
		clock   int // after
		missing int
		changes bool
	}{
		"foreign lock": {func(b *emulated.Board) { b.SetLoad(1); foreign(b, 705) }, 705, 0, false},
		"partitioned":  {func(b *emulated.Board) { b.SetMIG(true) }, 1410, 1, false},
		"read only":    {func(b *emulated.Board) { b.SetReadOnly(true) }, 1410, 1, true},
		"lock fails":   {func(b *emulated.Board) { b.Fail("LockClocks", gpu.ErrDriver) }, 1410, 1, true},
		"clock fails":  {func(b *emulated.Board) { b.Fail("Clock", gpu.ErrDriver) }, 0, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, changes := newBench(t, 1), 0
			c.prepare(b.boards[0])
			b.now = b.now.Add(time.Second)
			config := b.config()
			watch(&config, &changes)
			config.MeasureSwitching = true
			r := examine(t, config)
			if r.Missing() != c.missing || changes > 0 != c.changes {
				t.Errorf("%d changes, %v", changes, all(r))
			}
			b.boards[0].Fail("Clock", nil)
			if c.clock == 0 {
				c.clock = 1410
			}
			b.now = b.now.Add(time.Second)
			if got, err := b.boards[0].Open().Clock(); got != c.clock || err != nil {
				t.Errorf("clock %d, %v, want %d", got, err, c.clock)
			}
		})
	}
}

// TestSwitchingInterrupted ends the context at any moment of a measurement: the lock is taken back each time.
func TestSwitchingInterrupted(t *testing.T) {
	interrupted := 0
	for at := 300; at < 900; at += 7 {
		b, changes := newBench(t, 1), 0
		c := b.config()
		watch(&c, &changes)
		c.MeasureSwitching = true
		ctx, cancel := context.WithCancel(t.Context())
		b.onWait = func(waits int) error {
			if waits == at {
				cancel()
			}
			return ctx.Err()
		}
		_, err := doctor.Examine(ctx, c)
		cancel()
		if errors.Is(err, context.Canceled) {
			interrupted++
		} else if err != nil {
			t.Error(err)
		}
		b.now = b.now.Add(time.Second)
		if got, err := b.boards[0].Open().Clock(); got != 1410 || err != nil {
			t.Errorf("interrupted at wait %d: clock %d, %v", at, got, err)
		}
	}
	if interrupted < 20 {
		t.Errorf("only %d were interrupted", interrupted)
	}
}

// TestRestoreFails: that is said, also after an interrupt, and not hidden behind it.
func TestRestoreFails(t *testing.T) {
	// The permission goes while a lock is held.
	p := newBench(t, 1)
	p.onWait = func(waits int) error { p.boards[0].SetReadOnly(waits > 400); return nil }
	config := p.config()
	config.MeasureSwitching = true
	if r := examine(t, config); r.Missing() != 2 || !strings.Contains(fmt.Sprint(r), "may still be locked") {
		t.Errorf("%+v", r)
	}
	b := newBench(t, 1)
	c := b.config()
	c.MeasureSwitching = true
	b.boards[0].Fail("UnlockClocks", gpu.ErrDriver)
	if got := levels(examine(t, c)); got["switching"] != doctor.Missing {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b = newBench(t, 1)
	c = b.config()
	c.MeasureSwitching = true
	b.boards[0].Fail("UnlockClocks", gpu.ErrDriver)
	b.onWait = func(waits int) error {
		if waits == 500 {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := doctor.Examine(ctx, c); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nvidia-smi -i") {
		t.Error(err)
	}
}

func TestSuspect(t *testing.T) {
	clocks := []int{1410, 1395, 705, 210}
	same := func(s doctor.Sample) []doctor.Sample { return slices.Repeat([]doctor.Sample{s}, 5) }
	for name, c := range map[string]struct {
		samples []doctor.Sample
		want    int
	}{
		"locked":             {same(doctor.Sample{MHz: 705}), 705},
		"at the top":         {same(doctor.Sample{MHz: 1410}), 0},
		"read off the top":   {same(doctor.Sample{MHz: 1407}), 0},
		"idle":               {same(doctor.Sample{MHz: 210, Throttle: gpu.Throttle{Idle: true}}), 0},
		"capped":             {same(doctor.Sample{MHz: 705, Throttle: gpu.Throttle{PowerCap: true}}), 0},
		"hot":                {same(doctor.Sample{MHz: 705, Throttle: gpu.Throttle{Thermal: true}}), 0},
		"capped before":      {same(doctor.Sample{MHz: 705, Throttle: gpu.Throttle{Capped: time.Hour}}), 705},
		"moving":             {append(same(doctor.Sample{MHz: 705}), doctor.Sample{MHz: 1395}), 0},
		"too few":            {same(doctor.Sample{MHz: 705})[1:], 0},
		"none":               {nil, 0},
		"one capped of many": {append(same(doctor.Sample{MHz: 705}), doctor.Sample{MHz: 705, Throttle: gpu.Throttle{HardwareSlowdown: true}}), 0},
	} {
		got := doctor.Suspect(clocks, c.samples)
		if (got == nil) != (c.want == 0) || got != nil && got.MHz != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
	if doctor.Suspect(nil, same(doctor.Sample{MHz: 705})) != nil {
		t.Error("suspicion without a list of clocks")
	}
}

func TestWritten(t *testing.T) {
	b := newBench(t, 2)
	b.boards[1].SetMIG(true)
	r := examine(t, b.config())
	var text, object strings.Builder
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&object)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"driver 1.0, 2 GPUs", "GPU 1  emulated:1", "missing", "→ ", "1 thing that Perseus needs is missing here."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	var back struct {
		Format string `json:"format"`
		OK     *bool  `json:"ok"`
		GPUs   []struct {
			ID      string `json:"id"`
			Counter struct {
				Period float64 `json:"period_s"`
			} `json:"energy_counter"`
			Findings []doctor.Finding `json:"findings"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal([]byte(object.String()), &back); err != nil {
		t.Fatal(err)
	}
	if back.Format != "perseus-doctor/1" || back.OK == nil || *back.OK || len(back.GPUs) != 2 || back.GPUs[0].Counter.Period != 0.1 {
		t.Errorf("%+v", back)
	}
}
