package emulated_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/gpu/gputest"
	"github.com/perseus-energy/perseus/unit"
)

func board(t *testing.T) (*emulated.Board, func(time.Duration)) {
	t.Helper()
	now := time.Unix(0, 0)
	b, err := emulated.New(emulated.Config{
		Info: gpu.Info{ID: "emulated:0"}, MinMHz: 210, MaxMHz: 1410, StepMHz: 15, MemoryMHz: 1593,
		Idle: 50 * unit.Watt, Static: 50 * unit.Watt, Dynamic: 300 * unit.Watt,
		Latency: 10 * time.Millisecond, CounterStep: 100 * time.Millisecond, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, func(d time.Duration) { now = now.Add(d) }
}

func TestContract(t *testing.T) {
	for name, prepare := range map[string]func(*emulated.Board){
		"plain":     func(*emulated.Board) {},
		"read only": func(b *emulated.Board) { b.SetReadOnly(true) },
		"no energy": func(b *emulated.Board) { b.Fail("Energy", gpu.ErrNotSupported) },
	} {
		t.Run(name, func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gpu.Device {
				b, _ := board(t)
				prepare(b)
				return b.Open()
			})
		})
	}
}

func wantClock(t *testing.T, d gpu.Device, want int) {
	t.Helper()
	if got, err := d.Clock(); got != want || err != nil {
		t.Errorf("clock %d, %v; want %d", got, err, want)
	}
}

func TestLatencyAndLockOutlivesHandle(t *testing.T) {
	b, pass := board(t)
	if err := b.Open().LockClocks(gpu.Range{Min: 705, Max: 705}); err != nil {
		t.Fatal(err)
	}
	// It takes 21 ms at 1410 MHz, 10 of which it has, and 11/21 of 41 ms at 705 MHz.
	if got := b.Work(28.2e6, time.Millisecond); got != 31476190*time.Nanosecond {
		t.Errorf("work takes %v", got)
	}
	pass(9 * time.Millisecond)
	wantClock(t, b.Open(), 1410)
	pass(time.Millisecond)
	wantClock(t, b.Open(), 705)
}

func TestEnergyInSteps(t *testing.T) {
	b, pass := board(t)
	d := b.Open()
	start, _ := d.Energy()
	b.SetLoad(1) // 400 W
	for _, c := range []struct {
		pass time.Duration
		want unit.Energy
	}{{99 * time.Millisecond, 0}, {time.Millisecond, 40 * unit.Joule}, {150 * time.Millisecond, 80 * unit.Joule}} {
		pass(c.pass)
		if s, err := d.Energy(); err != nil || s.Energy-start.Energy != c.want {
			t.Errorf("energy %v, %v; want %v", s.Energy-start.Energy, err, c.want)
		}
	}
	// At 250 ms: 10 ms more at 400 W, then 137.5 W; the counter moves at 300 ms.
	if err := d.LockClocks(gpu.Range{Min: 705, Max: 705}); err != nil {
		t.Fatal(err)
	}
	pass(90 * time.Millisecond)
	if s, err := d.Energy(); err != nil || s.Energy-start.Energy != 1095*unit.Joule/10 {
		t.Errorf("energy %v, %v; want 109.5J", s.Energy-start.Energy, err)
	}
}

func TestThrottle(t *testing.T) {
	b, pass := board(t)
	d := b.Open()
	b.SetLoad(1)
	if err := d.SetPowerLimit(200 * unit.Watt); err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	if th, _ := d.Throttle(); !th.PowerCap || th.Thermal || th.Capped != time.Second {
		t.Errorf("%+v", th)
	}
	if p, _ := d.Power(); p > 200*unit.Watt {
		t.Errorf("power %v", p)
	}
	b.SetCeiling(300)
	wantClock(t, d, 300)
	if th, _ := d.Throttle(); th.PowerCap || !th.Thermal {
		t.Errorf("%+v", th)
	}
}

func TestFaults(t *testing.T) {
	b, pass := board(t)
	d := b.Open()
	if err := d.LockClocks(gpu.Range{Min: 705, Max: 706}); !errors.Is(err, gpu.ErrInvalid) {
		t.Error(err)
	}
	pass(time.Second)
	wantClock(t, d, 1410)
	if err := b.ForeignLock(gpu.Range{Min: 210, Max: 900}); err != nil {
		t.Error(err)
	}
	pass(time.Second)
	wantClock(t, d, 900)
	b.SetReadOnly(true)
	if err := d.UnlockClocks(); !errors.Is(err, gpu.ErrNoPermission) {
		t.Error(err)
	}
	b.Lose()
	b.Recover()
	if _, err := d.Clock(); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	wantClock(t, b.Open(), 1410)
}
