package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
)

// TestStop ends a server while ranks wait for schedules and a person follows events: all of them are answered, and
// nothing is left running.
func TestStop(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := New(t.Context(), Config{Database: file(t)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, nil) }()
	c, err := client.New(client.Config{Server: "http://" + l.Addr().String(), Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tr := newTrainer(t, remote{c}, "job", api.JobSpec{PP: 2, DP: 2, Microbatches: 4})
	tr.register()
	version := tr.job().Version
	var wg sync.WaitGroup
	for rank := range 4 {
		wg.Go(func() {
			_, changed, err := c.Schedules(t.Context(), "job", api.ScheduleQuery{Ranks: []int{rank}, Generation: 1, Version: version, Wait: time.Minute})
			if err == nil && changed {
				t.Errorf("rank %d was told of a change", rank)
			}
		})
	}
	wg.Go(func() {
		for _, err := range c.Events(t.Context(), "job", 0) {
			if err != nil {
				return
			}
		}
	})
	for n := 0; s.waiters.Load() < 4; n++ {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > ShutdownTime {
		t.Errorf("it took %s, more than the grace of open requests: one of them did not end", d)
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeadline names the ranks that have not registered, and those that have fallen silent; they come back by themselves.
func TestDeadline(t *testing.T) {
	s, _ := start(t, file(t), func(c *Config) { c.RankDeadline = 150 * time.Millisecond })
	if _, err := s.PutJob(t.Context(), "job", api.JobSpec{PP: 2, DP: 1, WorldSize: 2, Microbatches: 4}); err != nil {
		t.Fatal(err)
	}
	reg := func(rank int) {
		t.Helper()
		_, err := s.RegisterRanks(t.Context(), "job", api.RankRegistration{Ranks: []api.Rank{{Rank: rank, PP: rank, Session: "s", FrequencyMHz: testClocks}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	reg(0)
	stale := func() api.Job {
		t.Helper()
		for {
			news := s.hub.waiting("job")
			j, err := s.Job(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			if j.State == api.Stale {
				return j
			}
			select {
			case <-news:
			case <-time.After(20 * time.Second):
				t.Fatalf("still %s", j.State)
			}
		}
	}
	if j := stale(); !strings.Contains(j.Reason, "ranks 1") || strings.Contains(j.Reason, "0,") {
		t.Errorf("reason %q", j.Reason)
	}
	reg(1)
	if j := stale(); j.Version == 0 {
		t.Errorf("%+v", j)
	}
	tr := newTrainer(t, s, "job", api.JobSpec{PP: 2, Microbatches: 4})
	tr.generation = 1
	tr.run()
	if j := tr.job(); j.State != api.Profiling {
		t.Errorf("after a report: %s (%s)", j.State, j.Reason)
	}
}

// BenchmarkRestart is the time from start to ready of a server with 1,000 jobs.
func BenchmarkRestart(b *testing.B) {
	dir := b.TempDir()
	p := &process{t: b, database: filepath.Join(dir, "perseus.db"), listen: "127.0.0.1:0", log: filepath.Join(dir, "log")}
	p.start()
	c, err := client.New(client.Config{Server: "http://" + p.listen})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < 1000; i += 16 {
				if _, err := c.PutJob(b.Context(), fmt.Sprint("job-", i), api.JobSpec{PP: 8, DP: 2, WorldSize: 16, Microbatches: 96}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p.kill()
	for b.Loop() {
		p.start()
		b.StopTimer()
		p.kill()
		b.StartTimer()
	}
	if _, err := os.Stat(p.database); err != nil {
		b.Error(err)
	}
}
