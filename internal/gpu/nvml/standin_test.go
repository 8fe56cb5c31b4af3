//go:build linux && (amd64 || arm64) && !nonvml

package nvml_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/gputest"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
	"github.com/perseus-energy/perseus/internal/gpu/nvml/nvmltest"
	"github.com/perseus-energy/perseus/unit"
)

// open returns the devices of a library, and closes them after the test.
func open(t *testing.T, library string) []gpu.Device {
	t.Helper()
	devices, closeAll, err := nvml.Open(t.Context(), nvml.Config{Library: library})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	return devices
}

// fail makes a call on the first GPU return code.
func fail(t *testing.T, d *nvmltest.Driver, f nvmltest.Fault, code nvml.Code) {
	t.Helper()
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Fail[f] = int64(code) })
}

func TestContract(t *testing.T) {
	for name, c := range map[string]struct {
		edition nvmltest.Edition
		prepare func(*nvmltest.State)
	}{
		"plain":     {nvmltest.Current, func(*nvmltest.State) {}},
		"older":     {nvmltest.Older, func(*nvmltest.State) {}},
		"newer":     {nvmltest.Newer, func(*nvmltest.State) {}},
		"read only": {nvmltest.Current, func(s *nvmltest.State) { s.ReadOnly = 1 }},
		"idle":      {nvmltest.Current, func(s *nvmltest.State) { s.GPUs[0].Reasons, s.GPUs[0].IdleClock, s.GPUs[0].Memory = 1, 210, 810 }},
		"no energy": {nvmltest.Current, func(s *nvmltest.State) {
			s.GPUs[0].Fail[nvmltest.DeviceGetTotalEnergyConsumption] = int64(nvml.NotSupported)
		}},
		"driver fails": {nvmltest.Current, func(s *nvmltest.State) { s.GPUs[0].Fail[nvmltest.DeviceSetGpuLockedClocks] = int64(nvml.Unknown) }},
		"counter wraps": {nvmltest.Current, func(s *nvmltest.State) {
			// 2^63 pJ are 9,223,372,036.85 mJ.
			s.GPUs[0].EnergyMillijoules, s.GPUs[0].CounterStep, s.GPUs[0].Power = 9_223_372_036, 0, 400e6
		}},
	} {
		t.Run(name, func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gpu.Device {
				d := nvmltest.New(t, 1, c.edition)
				d.Change(t, c.prepare)
				return open(t, d.Library)[0]
			})
		})
	}
}

// TestContractOnGPU runs on the first GPU of this node. It locks and unlocks its clocks.
func TestContractOnGPU(t *testing.T) {
	devices, closeAll, err := nvml.Open(t.Context(), nvml.Config{Skipped: func(i int, err error) { t.Logf("GPU %d: %v", i, err) }})
	if err != nil {
		t.Skipf("no NVIDIA GPU here, so the contract ran against the stand-in library only: %v", err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	if len(devices) == 0 {
		t.Skip("the NVIDIA driver shows no GPU, so the contract ran against the stand-in library only")
	}
	t.Logf("%+v", devices[0].Info())
	gputest.Run(t, func(*testing.T) gpu.Device { return devices[0] })
}

func TestInfoAndReads(t *testing.T) {
	d := nvmltest.New(t, 2, nvmltest.Current)
	devices := open(t, d.Library)
	if len(devices) != 2 {
		t.Fatalf("%d devices", len(devices))
	}
	dev := devices[1]
	want := gpu.Info{
		ID: "nvidia:GPU-00000000-0000-0000-0000-000000000001", Name: "Stand-in A100", Driver: "599.10.01",
		PCI: "00000000:02:00.0", Index: 1,
	}
	if got := dev.Info(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	d.Change(t, func(s *nvmltest.State) {
		g := &s.GPUs[1]
		g.Reasons, g.Capped, g.MIG, g.Temperature, g.LimitOutside = 0x4|0x40, 5e9, 1, 61, 300e3
		g.EnergyMillijoules, g.Power, g.CounterStep, g.Since = 7_000, 80_500, 3600e9, 0
		g.Persistence, g.AskedProfiles, g.EnforcedProfiles = 1, 1<<40|2, 2
	})
	before := time.Now()
	e, err := dev.Energy()
	// The counter's step is an hour: it stands at a multiple of 80.5 W for an hour.
	if past := e.Energy - 7*unit.Joule; err != nil || past%(289_800*unit.Joule) != 0 || e.Scope != gpu.ScopeGPU || e.At.Before(before) || time.Now().Before(e.At) {
		t.Errorf("energy %+v, %v", e, err)
	}
	th, err := dev.Throttle()
	if want := (gpu.Throttle{PowerCap: true, Thermal: true, Capped: 5 * time.Second}); err != nil || th != want {
		t.Errorf("throttle %+v, %v; want %+v", th, err, want)
	}
	l, err := dev.PowerLimit()
	if want := (gpu.PowerLimit{Requested: 400e6, Enforced: 300e6, Default: 400e6, Min: 100e6, Max: 400e6}); err != nil || l != want {
		t.Errorf("limits %+v, %v; want %+v", l, err, want)
	}
	for name, c := range map[string]struct {
		read func() (int, error)
		want int
	}{
		"clock": {dev.Clock, 1410}, "memory clock": {dev.MemoryClock, 1590}, "temperature": {dev.Temperature, 61},
		"power": {func() (int, error) { p, err := dev.Power(); return int(p), err }, 80_500_000},
		"MIG":   {func() (int, error) { on, err := dev.MIG(); return map[bool]int{true: 1}[on], err }, 1},
	} {
		if got, err := c.read(); got != c.want || err != nil {
			t.Errorf("%s %d, %v; want %d", name, got, err, c.want)
		}
	}
	more := dev.(interface {
		Persistence() (bool, error)
		PowerProfiles() (requested, enforced []int, err error)
	})
	if on, err := more.Persistence(); !on || err != nil {
		t.Error(on, err)
	}
	if asked, enforced, err := more.PowerProfiles(); !slices.Equal(asked, []int{1, 40}) || !slices.Equal(enforced, []int{1}) || err != nil {
		t.Error(asked, enforced, err)
	}
	// Without the instant power the average serves, 1 W more in the stand-in.
	d.Change(t, func(s *nvmltest.State) { s.GPUs[1].Fail[nvmltest.DeviceGetFieldValues] = int64(nvml.NotSupported) })
	if p, err := dev.Power(); p != 81_500_000 || err != nil {
		t.Error(p, err)
	}
	d.Change(t, func(s *nvmltest.State) { s.GPUs[1].MIG = -1 })
	if on, err := dev.MIG(); on || err != nil {
		t.Errorf("a GPU that cannot be partitioned: %v, %v", on, err)
	}
}

// TestEditions reads what has another name in older libraries, and what newer ones have dropped.
func TestEditions(t *testing.T) {
	for _, e := range []nvmltest.Edition{nvmltest.Older, nvmltest.Current, nvmltest.Newer} {
		d := nvmltest.New(t, 1, e)
		d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Temperature, s.GPUs[0].Reasons = 61, 0x20 })
		dev := open(t, d.Library)[0]
		if c, err := dev.Temperature(); c != 61 || err != nil {
			t.Errorf("%s: temperature %d, %v", e, c, err)
		}
		if th, err := dev.Throttle(); !th.Thermal || err != nil {
			t.Errorf("%s: throttle %+v, %v", e, th, err)
		}
	}
}

func TestClocks(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	dev := open(t, d.Library)[0]
	want := func(n, top int) {
		t.Helper()
		if c, err := dev.Clocks(); err != nil || len(c) != n || c[0] != top || c[n-1] != 210 {
			t.Errorf("clocks %v, %v; want %d from %d", c, err, n, top)
		}
	}
	want(81, 1410) // the memory reads 1590 MHz where 1593 are listed
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Memory = 809 })
	want(15, 420)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Reasons = 1 }) // idle: parked memory
	want(81, 1410)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Step = 1 }) // more than the first buffer holds
	want(1201, 1410)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].High = 210 + 5000 })
	if c, err := dev.Clocks(); !errors.Is(err, gpu.ErrDriver) {
		t.Errorf("%d clocks, %v", len(c), err)
	}
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].High = 209 }) // an empty list
	if c, err := dev.Clocks(); !errors.Is(err, gpu.ErrNotSupported) {
		t.Errorf("clocks %v, %v", c, err)
	}
}

func TestLock(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	dev := open(t, d.Library)[0]
	for _, r := range []gpu.Range{{Min: 705, Max: 706}, {Min: 210, Max: 0xffffffff}, {Min: 0, Max: 0}, {Min: 1<<32 + 705, Max: 1<<32 + 705}} {
		if err := dev.LockClocks(r); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("lock %v: %v", r, err)
		}
	}
	if n := d.GPU(t, 0).Changes; n != 0 {
		t.Errorf("%d changes by locks that were refused", n)
	}
	if err := dev.LockClocks(gpu.Range{Min: 705, Max: 900}); err != nil {
		t.Fatal(err)
	}
	if g := d.GPU(t, 0); g.LockMin != 705 || g.LockMax != 900 {
		t.Errorf("locked to %d, %d", g.LockMin, g.LockMax)
	}
	if c, err := dev.Clock(); c != 900 || err != nil {
		t.Error(c, err)
	}
	if err := dev.UnlockClocks(); err != nil {
		t.Fatal(err)
	}
	if g := d.GPU(t, 0); g.LockMin != 0 || g.LockMax != 0 {
		t.Errorf("unlocked to %d, %d", g.LockMin, g.LockMax)
	}
	if err := dev.SetPowerLimit(250 * unit.Watt); err != nil || d.GPU(t, 0).Limit != 250e3 {
		t.Error(err)
	}
	for _, p := range []unit.Power{0, -1, 99 * unit.Watt, 401 * unit.Watt, 1 << 62} {
		if err := dev.SetPowerLimit(p); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("limit %v: %v", p, err)
		}
	}
}

func TestLost(t *testing.T) {
	d := nvmltest.New(t, 2, nvmltest.Current)
	devices := open(t, d.Library)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Lost = 1 })
	if _, err := devices[0].Clock(); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	if _, err := devices[0].PowerLimit(); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	if _, err := devices[1].Clock(); err != nil {
		t.Error(err)
	}
	// It comes back, for new handles only.
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Lost = 0 })
	if _, err := devices[0].Clock(); !errors.Is(err, gpu.ErrLost) {
		t.Error(err)
	}
	if _, err := open(t, d.Library)[0].Clock(); err != nil {
		t.Error(err)
	}
}

func TestOpenErrors(t *testing.T) {
	ctx := t.Context()
	if _, _, err := nvml.Open(ctx, nvml.Config{Library: "/does/not/exist.so"}); !errors.Is(err, nvml.ErrNoLibrary) {
		t.Error(err)
	}
	if _, _, err := nvml.Open(ctx, nvml.Config{Library: "libc.so.6"}); !errors.Is(err, nvml.ErrNoLibrary) || !strings.Contains(err.Error(), "nvmlInit_v2") {
		t.Error(err)
	}
	d := nvmltest.New(t, 2, nvmltest.Current)
	var code *nvml.Error
	fail(t, d, nvmltest.Init, nvml.VersionMismatch)
	if _, _, err := nvml.Open(ctx, nvml.Config{Library: d.Library}); !errors.As(err, &code) || code.Code != nvml.VersionMismatch {
		t.Error(err)
	}
	fail(t, d, nvmltest.Init, nvml.Success)
	fail(t, d, nvmltest.DeviceGetHandleByIndex, nvml.OperatingSystem)
	if _, _, err := nvml.Open(ctx, nvml.Config{Library: d.Library}); !errors.Is(err, gpu.ErrNoPermission) || !strings.Contains(err.Error(), "GPU 0") {
		t.Error(err)
	}
	skipped := map[int]error{}
	devices, closeAll, err := nvml.Open(ctx, nvml.Config{Library: d.Library, Skipped: func(i int, err error) { skipped[i] = err }})
	if err != nil || len(devices) != 1 || len(skipped) != 1 || !errors.Is(skipped[0], gpu.ErrNoPermission) {
		t.Fatalf("%v, %v, %v", devices, skipped, err)
	}
	for range 2 {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}
	d.Change(t, func(s *nvmltest.State) {
		if s.Clients != 0 {
			t.Errorf("%d clients are left", s.Clients)
		}
	})
	if _, err := devices[0].Clock(); !errors.Is(err, gpu.ErrLost) {
		t.Errorf("after close: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := nvml.Open(ended, nvml.Config{Library: d.Library}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCloseUnderCalls closes while calls are under way: none of them runs into a library that is gone.
func TestCloseUnderCalls(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	for range 20 {
		devices, closeAll, err := nvml.Open(t.Context(), nvml.Config{Library: d.Library})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					_, err := devices[0].Power()
					if i == 0 {
						started <- struct{}{}
					}
					if errors.Is(err, gpu.ErrLost) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 4 {
			<-started
		}
		if err := closeAll(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// TestTwoLibraries has two drivers in one process.
func TestTwoLibraries(t *testing.T) {
	one, two := nvmltest.New(t, 1, nvmltest.Current), nvmltest.New(t, 1, nvmltest.Older)
	a, b := open(t, one.Library)[0], open(t, two.Library)[0]
	if err := a.LockClocks(gpu.Range{Min: 705, Max: 705}); err != nil {
		t.Fatal(err)
	}
	if c, err := a.Clock(); c != 705 || err != nil {
		t.Error(c, err)
	}
	if c, err := b.Clock(); c != 1410 || err != nil {
		t.Error(c, err)
	}
}

const lockAndWait = "NVMLTEST_LOCK"

// TestMain is also the process that TestKilled kills.
func TestMain(m *testing.M) {
	if library := os.Getenv(lockAndWait); library != "" {
		devices, _, err := nvml.Open(context.Background(), nvml.Config{Library: library})
		if err == nil {
			err = devices[0].LockClocks(gpu.Range{Min: 705, Max: 705})
		}
		fmt.Println(err)
		_, _ = io.ReadAll(os.Stdin) // until the kill
		return
	}
	os.Exit(m.Run())
}

// TestKilled kills a process that holds a lock: the lock stays until somebody takes it back.
func TestKilled(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), lockAndWait+"="+d.Library)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "<nil>\n" {
		t.Errorf("the process says %q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()

	dev := open(t, d.Library)[0]
	if c, err := dev.Clock(); c != 705 || err != nil {
		t.Errorf("clock %d, %v after the process was killed", c, err)
	}
	if err := dev.UnlockClocks(); err != nil {
		t.Error(err)
	}
	if c, err := dev.Clock(); c != 1410 || err != nil {
		t.Errorf("clock %d, %v after the lock was taken back", c, err)
	}
}
