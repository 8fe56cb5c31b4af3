package emulated_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/unit"
)

const ms = time.Millisecond

// measured is a board of three clocks with an op measured at two of them.
func measured(t interface{ Fatal(...any) }, now func() time.Time, late time.Duration) (*emulated.Board, *emulated.Op) {
	b, err := emulated.New(emulated.Config{
		Info: gpu.Info{ID: "emulated:0"}, Clocks: []int{1000, 1410, 1200}, Latency: 10 * ms, Late: late, Now: now,
		Idle: 40 * unit.Watt, Blocking: []emulated.ClockPower{{MHz: 1000, Power: 60 * unit.Watt}, {MHz: 1410, Power: 101 * unit.Watt}},
	})
	if err != nil {
		t.Fatal(err)
	}
	op, err := b.Measured("forward", []emulated.Point{{1200, 120 * ms, 36 * unit.Joule}, {1410, 100 * ms, 40 * unit.Joule}})
	if err != nil {
		t.Fatal(err)
	}
	return b, op
}

func at(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }

// TestMeasuredOp follows an op through two changes of clock, and the waiting after it.
func TestMeasuredOp(t *testing.T) {
	now := at(0)
	b, op := measured(t, func() time.Time { return now }, 0)
	d := b.Open()
	from := b.Total(now)
	if end, err := b.Start(now, op); err != nil || !end.Equal(at(100*ms)) {
		t.Fatal(end, err)
	}
	lock := func(after time.Duration, mhz int) {
		now = at(after)
		if err := d.LockClocks(gpu.Range{Min: mhz, Max: mhz}); err != nil {
			t.Fatal(err)
		}
	}
	lock(40*ms, 1200) // half is left at 50 ms
	if end, running := b.End(); !running || !end.Equal(at(110*ms)) {
		t.Error(end, running)
	}
	lock(100*ms, 1410) // too late for this op: in effect as it ends
	lock(100*ms, 1000) // replaces that
	now = at(150 * ms)
	if end, running := b.End(); running || !end.Equal(at(110*ms)) {
		t.Error(end, running)
	}
	// 50 ms at 400 W, 60 ms at 300 W, 40 ms waiting at 1000 MHz.
	if got, want := b.Total(now).Sub(from), (20*unit.Joule + 18*unit.Joule + 24*unit.Joule/10).Widen(); got != want {
		t.Errorf("energy %v J, want %v J", got.Joules(), want.Joules())
	}
	// At 1000 MHz there is no measurement: the op takes what it does at 1200 MHz.
	if end, err := b.Start(now, op); err != nil || !end.Equal(at(270*ms)) {
		t.Error(end, err)
	}
	if _, err := b.Start(now, op); err == nil || !strings.Contains(err.Error(), "before forward ends") {
		t.Error(err)
	}
	if _, err := b.Start(at(140*ms), op); err == nil || !strings.Contains(err.Error(), "10ms too early") {
		t.Error(err)
	}
	if _, err := b.Start(at(time.Second), op); err == nil || !strings.Contains(err.Error(), "ahead of time") {
		t.Error(err)
	}
	if p, err := d.Power(); p != 300*unit.Watt || err != nil {
		t.Error(p, err)
	}
	b.Leave()
	if p, err := d.Power(); p != 40*unit.Watt || err != nil {
		t.Error(p, err)
	}
}

func TestMeasuredRefuses(t *testing.T) {
	b, _ := measured(t, func() time.Time { return at(0) }, 0)
	for _, p := range [][]emulated.Point{nil, {{1410, 0, unit.Joule}}, {{1410, ms, 0}}} {
		if _, err := b.Measured("forward", p); err == nil {
			t.Errorf("%v accepted", p)
		}
	}
}

// TestLate tells a board of ops late, in the midst of readings and locks, and another one on time: both end alike.
func TestLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := at(0)
		clock := func() time.Time { return now }
		prompt, op := measured(t, clock, 0)
		late, _ := measured(t, clock, time.Second)
		told := at(0) // the late board knows of ops that started before
		var untold time.Time
		var shown unit.Energy
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * ms)
			if !untold.IsZero() && (now.Sub(untold) > 90*ms || rapid.Bool().Draw(t, "tell")) {
				if _, err := late.Start(untold, op); err != nil {
					t.Fatal(err)
				}
				untold, told = time.Time{}, now
			}
			_, running := prompt.End()
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if !running && untold.IsZero() && !now.Before(told) {
					if _, err := prompt.Start(now, op); err != nil {
						t.Fatal(err)
					}
					untold = now
				}
			case 1:
				f := rapid.SampledFrom(prompt.Clocks()).Draw(t, "MHz")
				for _, b := range []*emulated.Board{prompt, late} {
					if err := b.Open().LockClocks(gpu.Range{Min: 1000, Max: f}); err != nil {
						t.Fatal(err)
					}
				}
			case 2:
				f := rapid.SampledFrom([]int{0, 1200}).Draw(t, "ceiling")
				prompt.SetCeiling(f)
				late.SetCeiling(f)
			case 3:
				s, err := late.Open().Energy()
				if err != nil || s.Energy < shown {
					t.Fatal(s, err, shown)
				}
				shown = s.Energy
			}
		}
		if !untold.IsZero() {
			if _, err := late.Start(untold, op); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Minute)
		a, _ := prompt.End()
		b, _ := late.End()
		if d := a.Sub(b).Abs(); d > time.Duration(2) { // left is a float: the way there may differ by its last bit
			t.Fatalf("ends %v and %v", a, b)
		}
		if x, y := prompt.Total(now).Joules(), late.Total(now).Joules(); math.Abs(x-y) > 1e-6 {
			t.Fatalf("energies %v and %v", x, y)
		}
	})
}

// TestScript has faults happen by themselves.
func TestScript(t *testing.T) {
	now := at(0)
	b, op := measured(t, func() time.Time { return now }, 0)
	d := b.Open()
	found := b.Settings()
	b.After(50*ms, emulated.Ceiling(1200))
	b.After(300*ms, emulated.HardwareSlowdown(true))
	b.After(400*ms, emulated.Fail("Power", gpu.ErrNotSupported))
	b.After(500*ms, emulated.Foreign(gpu.Range{Min: 1000, Max: 1200}))
	b.After(600*ms, emulated.Lose())
	b.After(700*ms, emulated.Recover())
	if end, err := b.Start(now, op); err != nil || !end.Equal(at(110*ms)) { // 60 ms for its second half
		t.Error(end, err)
	}
	now = at(200 * ms)
	wantClock(t, d, 1200)
	if th, err := d.Throttle(); !th.Thermal || th.HardwareSlowdown || err != nil {
		t.Errorf("%+v, %v", th, err)
	}
	now = at(350 * ms)
	wantClock(t, d, 1000) // half of 1410 is below the lowest
	if th, err := d.Throttle(); !th.HardwareSlowdown || err != nil {
		t.Errorf("%+v, %v", th, err)
	}
	now = at(550 * ms)
	if _, err := d.Power(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Error(err)
	}
	if s := b.Settings(); s == found || s.Clocks != (gpu.Range{Min: 1000, Max: 1200}) {
		t.Error(s)
	}
	now = at(650 * ms)
	if _, err := d.Clock(); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	now = at(750 * ms)
	if s := b.Settings(); s != found {
		t.Error(s)
	}
}

func TestMemoryClock(t *testing.T) {
	b, err := emulated.New(emulated.Config{
		Clocks: []int{1000}, MemoryMHz: 3199, MemoryClocks: []int{810, 3199}, Now: func() time.Time { return at(0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	d, found := b.Open(), b.Settings()
	for _, c := range []struct {
		r    gpu.Range
		want int
	}{{gpu.Range{Min: 810, Max: 810}, 810}, {gpu.Range{}, 3199}} {
		if err := b.ForeignMemoryLock(c.r); err != nil {
			t.Fatal(err)
		}
		if f, err := d.MemoryClock(); f != c.want || err != nil {
			t.Errorf("memory clock %d, %v; want %d", f, err, c.want)
		}
	}
	if b.Settings() != found {
		t.Error("unlocked, but not as before")
	}
	if err := b.ForeignMemoryLock(gpu.Range{Min: 800, Max: 3199}); !errors.Is(err, gpu.ErrInvalid) {
		t.Error(err)
	}
}
