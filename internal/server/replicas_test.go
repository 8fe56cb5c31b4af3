package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/internal/store/pgtest"
)

// alternate asks the replicas in turn; one that is gone is passed over.
type alternate struct {
	servers []*Server
	n       int
}

func (a *alternate) next() *Server {
	a.n++
	return a.servers[a.n%len(a.servers)]
}

func (a *alternate) PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error) {
	return a.next().PutJob(ctx, id, spec)
}

func (a *alternate) Job(ctx context.Context, id string) (api.Job, error) {
	return a.next().Job(ctx, id)
}

func (a *alternate) RegisterRanks(ctx context.Context, id string, r api.RankRegistration) (api.RankRegistered, error) {
	return a.next().RegisterRanks(ctx, id, r)
}

func (a *alternate) Schedules(ctx context.Context, id string, q api.ScheduleQuery) (api.Schedules, error) {
	return a.next().Schedules(ctx, id, q)
}

func (a *alternate) Report(ctx context.Context, id string, r api.Reports) (api.Accepted, error) {
	return a.next().Report(ctx, id, r)
}

// TestReplicas has two replicas on PostgreSQL answer one job's requests in turn; half-way one of them ends.
func TestReplicas(t *testing.T) {
	url := pgtest.Start(t)
	one, stop := start(t, url, nil)
	two, _ := start(t, url, nil)
	a := &alternate{servers: []*Server{one, two}}
	tr := newTrainer(t, a, "job", api.JobSpec{PP: 3, DP: 2, Microbatches: 6, ReportEvery: 2})
	tr.register()
	for range 6 {
		tr.run()
	}
	stop()
	a.servers = []*Server{two}
	j := tr.until(2000, running)
	if j.Generation != 1 || j.Plan.SavingPercent < 5 {
		t.Errorf("%+v", j)
	}
}

// TestDatabaseRestart stops PostgreSQL while requests come: they wait or are told to come again, and then go on.
func TestDatabaseRestart(t *testing.T) {
	pg := pgtest.New(t)
	s, _ := start(t, pg.URL, nil)
	tr := newTrainer(t, s, "job", api.JobSpec{PP: 2, Microbatches: 4})
	tr.register()
	tr.run()
	if err := pg.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	_, err := s.Report(ctx, "job", api.Reports{Generation: 1, Ranks: []api.RankReport{{Iteration: 100, TimeS: 1}}})
	cancel()
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the database is away: %v", err)
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	tr.t = t
	deadline := time.Now().Add(20 * time.Second)
	for s.store.Ready(t.Context()) != nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	tr.until(300, running)
}

// TestOneCharacterization registers many equal jobs at once: their frontier is computed once.
func TestOneCharacterization(t *testing.T) {
	s, _ := start(t, file(t), nil)
	csv := []byte("stage,instruction,frequency,time,energy\n")
	for stage := range 2 {
		for _, name := range []string{"forward", "backward"} {
			for i, mhz := range []int{1400, 1200, 1000} {
				csv = fmt.Appendf(csv, "%d,%s,%d,%g,%g\n", stage, name, mhz, 0.1+0.02*float64(i+stage), 30-4*float64(i))
			}
		}
	}
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			tr := newTrainer(t, s, fmt.Sprint("job-", i), api.JobSpec{PP: 2, Microbatches: 4, NoProfiling: true, BlockingPowerW: 50})
			tr.register()
			if _, err := s.PutProfile(t.Context(), tr.id, csv, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		id := fmt.Sprint("job-", i)
		for {
			news := s.hub.waiting(id)
			j, err := s.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if running(j) {
				break
			}
			select {
			case <-news:
			case <-time.After(30 * time.Second):
				t.Fatalf("%s is %s (%s)", id, j.State, j.Reason)
			}
		}
	}
	if got := s.computed.Load(); got != 1 {
		t.Errorf("%d frontiers were computed", got)
	}
}
