// Package gputest is the contract that every gpu.Device keeps.
package gputest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// Run checks the devices that open returns, one a subtest. Locks are taken back at the end.
func Run(t *testing.T, open func(t *testing.T) gpu.Device) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, gpu.Device){
		"clocks": func(t *testing.T, d gpu.Device) { clocks(t, d) }, "lock": lock, "invalid": invalid, "unlock": unlock,
		"energy": energy, "reads": reads, "concurrent": concurrent,
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			t.Cleanup(func() { allowed(t, d.UnlockClocks()) })
			check(t, d)
		})
	}
}

// allowed fails the test on an error outside the closed list, and tells whether the call worked.
func allowed(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	for _, e := range []error{gpu.ErrNotSupported, gpu.ErrNoPermission, gpu.ErrLost, gpu.ErrInvalid, gpu.ErrDriver} {
		if errors.Is(err, e) {
			return false
		}
	}
	t.Errorf("error of no known kind: %v", err)
	return false
}

func clocks(t *testing.T, d gpu.Device) []int {
	t.Helper()
	c, err := d.Clocks()
	if err != nil || len(c) == 0 {
		t.Fatalf("clocks %v, %v", c, err)
	}
	for i := range c[1:] {
		if c[i] <= c[i+1] {
			t.Fatalf("clocks not strictly descending: %d, %d", c[i], c[i+1])
		}
	}
	return c
}

func lock(t *testing.T, d gpu.Device) {
	c := clocks(t, d)
	lo, hi := c[len(c)-1], c[0]
	for _, r := range []gpu.Range{{Min: lo, Max: lo}, {Min: hi, Max: hi}, {Min: lo, Max: hi}} {
		err := d.LockClocks(r)
		if allowed(t, err); errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("lock %v: %v", r, err)
		}
	}
}

func invalid(t *testing.T, d gpu.Device) {
	c := clocks(t, d)
	before, _ := d.Clock()
	for _, r := range []gpu.Range{{}, {Min: -1, Max: c[0]}, {Min: c[0] + 1, Max: c[0]}} {
		err := d.LockClocks(r)
		if !errors.Is(err, gpu.ErrInvalid) && !errors.Is(err, gpu.ErrNoPermission) && !errors.Is(err, gpu.ErrNotSupported) {
			t.Errorf("lock %v: %v", r, err)
		}
	}
	if after, _ := d.Clock(); after != before {
		t.Errorf("clock %d after refused locks, was %d", after, before)
	}
	if again := clocks(t, d); !slices.Equal(c, again) {
		t.Error("the list of clocks changed")
	}
}

func unlock(t *testing.T, d gpu.Device) {
	first, second := d.UnlockClocks(), d.UnlockClocks()
	if allowed(t, first) && second != nil {
		t.Errorf("second unlock: %v", second)
	}
}

func energy(t *testing.T, d gpu.Device) {
	var last gpu.EnergySample
	for i := range 100 {
		s, err := d.Energy()
		if !allowed(t, err) {
			return
		}
		// The difference, not the order: the counter may wrap.
		if i > 0 && (s.Energy-last.Energy < 0 || s.At.Before(last.At)) {
			t.Fatalf("%v after %v", s, last)
		}
		last = s
	}
}

// reads makes every reading call, so that one which is not supported does not hide the others; one at least works.
func reads(t *testing.T, d gpu.Device) {
	t.Helper()
	worked := 0
	for _, call := range []func() error{
		func() error { _, err := d.Clocks(); return err },
		func() error { _, err := d.Clock(); return err },
		func() error { _, err := d.MemoryClock(); return err },
		func() error { _, err := d.PowerLimit(); return err },
		func() error { _, err := d.Energy(); return err },
		func() error { _, err := d.Power(); return err },
		func() error { _, err := d.Temperature(); return err },
		func() error { _, err := d.Throttle(); return err },
		func() error { _, err := d.MIG(); return err },
	} {
		if allowed(t, call()) {
			worked++
		}
	}
	if worked == 0 {
		t.Error("no reading call works")
	}
}

func concurrent(t *testing.T, d gpu.Device) {
	c := clocks(t, d)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			f := c[i%len(c)]
			allowed(t, d.LockClocks(gpu.Range{Min: f, Max: f}))
			reads(t, d)
			allowed(t, d.UnlockClocks())
		})
	}
	wg.Wait()
}
