package emulated_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/unit"
)

// TestKept has settings outlive the process, that is the board, which is left without a word.
func TestKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gpu")
	open := func() (*emulated.Board, error) {
		return emulated.New(emulated.Config{
			Clocks: []int{1000, 1200}, MemoryMHz: 1593, MemoryClocks: []int{810, 1593}, Latency: 20 * ms, File: file,
			Limit: gpu.PowerLimit{Requested: 400 * unit.Watt, Enforced: 400 * unit.Watt}, Now: func() time.Time { return at(0) },
		})
	}
	b, err := open()
	if err != nil {
		t.Fatal(err)
	}
	found := b.Settings()
	d := b.Open()
	for _, err := range []error{
		d.LockClocks(gpu.Range{Min: 1000, Max: 1000}), d.SetPowerLimit(300 * unit.Watt), b.ForeignMemoryLock(gpu.Range{Min: 810, Max: 810}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	left := b.Settings()
	if left == found {
		t.Fatal("nothing was changed")
	}
	if b, err = open(); err != nil || b.Settings() != left {
		t.Fatalf("%+v, %v; want %+v", b.Settings(), err, left)
	}
	if err := b.Open().UnlockClocks(); err != nil {
		t.Fatal(err)
	}
	if b, err = open(); err != nil || b.Settings().Clocks != found.Clocks {
		t.Fatalf("%+v, %v", b.Settings(), err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil {
		t.Error("took a broken file")
	}
}
