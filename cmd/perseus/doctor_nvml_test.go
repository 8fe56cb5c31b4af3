//go:build linux && (amd64 || arm64) && !nonvml

package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu/nvml/nvmltest"
)

// TestDoctorJSON: the object is whole also where something is missing.
func TestDoctorJSON(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].MIG = 1 })
	r := perseus(t, "", "doctor", "--json", "--library", d.Library)
	var got struct {
		OK   bool `json:"ok"`
		GPUs []struct {
			ID string `json:"id"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	if r.status != statusFailed || got.OK || len(got.GPUs) != 1 || !strings.HasPrefix(got.GPUs[0].ID, "nvidia:GPU-") {
		t.Errorf("status %d, %+v", r.status, got)
	}
	if g := d.GPU(t, 0); g.Changes != 0 {
		t.Errorf("%d changes", g.Changes)
	}
}

// TestDoctorInterrupted interrupts a measurement that holds a lock: it is taken back before the program ends.
func TestDoctorInterrupted(t *testing.T) {
	d := nvmltest.New(t, 1, nvmltest.Current)
	d.Change(t, func(s *nvmltest.State) { s.GPUs[0].Latency = int64(500 * time.Millisecond) })
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	status := make(chan int, 1)
	var stdout, stderr strings.Builder
	go func() {
		status <- run(ctx, []string{"doctor", "--measure-switching", "--library", d.Library}, strings.NewReader(""), &stdout, &stderr)
	}()
	for d.GPU(t, 0).LockMax == 0 {
		select {
		case s := <-status:
			t.Fatalf("status %d without a lock\n%s\n%s", s, &stdout, &stderr)
		case <-time.After(time.Millisecond):
		}
	}
	interrupt()
	if s := <-status; s != statusInterrupted {
		t.Errorf("status %d\n%s", s, &stderr)
	}
	if g := d.GPU(t, 0); g.LockMax != 0 {
		t.Errorf("still locked to %d MHz", g.LockMax)
	}
	d.Change(t, func(s *nvmltest.State) {
		if s.Clients != 0 {
			t.Errorf("%d clients of the driver are left", s.Clients)
		}
	})
}
