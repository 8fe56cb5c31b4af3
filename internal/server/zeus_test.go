package server

import (
	"context"
	"net"
	"testing"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/zeus/zeustest"
)

// TestZeus trains with Zeus's own client under a running server: at maximum clock where nothing is known of the model,
// by a plan where an earlier job was profiled.
func TestZeus(t *testing.T) {
	zeustest.Python(t)
	s, err := New(t.Context(), Config{Database: file(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, nil) }()
	training := zeustest.Training{
		URL: "http://" + l.Addr().String(), PP: 2, DP: 2, TP: 1, Microbatches: 3, Steps: 2,
		Metadata: "schedule=1f1b;microbatches=3;model_key=tiny;gpu=Test", Clocks: testClocks,
	}
	for _, r := range zeustest.Run(t, training) {
		if r.Error != "" || len(r.Schedule) != 6 {
			t.Fatalf("rank %d: %+v", r.Rank, r)
		}
		for _, op := range r.Schedule {
			if op.MHz != testClocks[0] {
				t.Errorf("rank %d without a profile: %v", r.Rank, r.Schedule)
			}
		}
	}
	tr := newTrainer(t, s, "before", api.JobSpec{PP: 2, DP: 2, Microbatches: 3, ModelKey: "tiny", GPU: "Test"})
	tr.register()
	tr.until(300, running)
	slower := false
	for _, r := range zeustest.Run(t, training) {
		if r.Error != "" || len(r.Schedule) != 6 {
			t.Fatalf("rank %d: %+v", r.Rank, r)
		}
		for _, op := range r.Schedule {
			slower = slower || op.MHz < testClocks[0]
		}
	}
	if !slower {
		t.Error("with a profile all ops run at maximum clock")
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
