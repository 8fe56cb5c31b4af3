//go:build linux && (amd64 || arm64) && !nonvml

package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/doctor"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
	"github.com/perseus-energy/perseus/internal/gpu/nvml/nvmltest"
)

// TestNVML examines the stand-in for NVIDIA's library in real time.
func TestNVML(t *testing.T) {
	d := nvmltest.New(t, 3, nvmltest.Current)
	d.Change(t, func(s *nvmltest.State) {
		for i := range s.GPUs[:3] {
			s.GPUs[i].Latency = int64(5 * time.Millisecond)
		}
		s.GPUs[0].Persistence = 1
		s.GPUs[1].LockMin, s.GPUs[1].LockMax = 705, 705
		s.GPUs[1].EnforcedProfiles, s.GPUs[1].AskedProfiles, s.GPUs[1].LimitOutside = 1<<5, 1<<5, 300e3
		s.GPUs[2].Fail[nvmltest.DeviceGetHandleByIndex] = int64(nvml.OperatingSystem)
	})
	skipped := map[int]error{}
	devices, closeAll, err := nvml.Open(t.Context(), nvml.Config{Library: d.Library, Skipped: func(i int, err error) { skipped[i] = err }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	r := examine(t, doctor.Config{
		Devices: devices, Skipped: skipped, MeasureSwitching: true, Now: time.Now,
		Wait: func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil },
	})
	if len(r.GPUs) != 2 || r.Missing() != 1 || !strings.Contains(r.Findings[1].WayOut, "DeviceAllow") {
		t.Fatalf("%+v", r)
	}
	first, second := r.GPUs[0], r.GPUs[1]
	if first.SuspectedLock != nil || len(first.Switching) != 4 || first.Switching[3].Reached != 5 || first.Switching[3].Median <= 0 {
		t.Errorf("%+v", first)
	}
	if g := d.GPU(t, 0); g.LockMax != 0 || g.Changes == 0 {
		t.Errorf("locked to %d after %d changes", g.LockMax, g.Changes)
	}
	if second.SuspectedLock == nil || second.SuspectedLock.MHz != 705 || second.Switching != nil || second.Counter == nil {
		t.Errorf("%+v", second)
	}
	if g := d.GPU(t, 1); g.LockMax != 705 || g.Changes != 0 {
		t.Errorf("a foreign lock was changed: %d, %d changes", g.LockMax, g.Changes)
	}
	for _, check := range []string{"power limit", "persistence", "power profiles", "foreign lock"} {
		found := false
		for _, f := range second.Findings {
			found = found || f.Check == check && f.Level == doctor.Note
		}
		if !found {
			t.Errorf("no note on %s: %+v", check, second.Findings)
		}
	}
}
