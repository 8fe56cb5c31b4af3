package zeus

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// service is a control plane in memory: jobs are registered until all ranks are here, then in the state then, with the
// schedule that a test gave to publish.
type service struct {
	mu      sync.Mutex
	jobs    map[string]*job
	then    api.State
	down    int // so many calls are refused with 503
	calls   int
	reports []api.Reports
	// onComplete is called, once all ranks of a job are here.
	onComplete func()
	stop       chan struct{} // closed: long-polls return at once
}

type job struct {
	api.Job
	ranks    map[int]api.Rank
	schedule map[int]api.RankSchedule
	changed  chan struct{} // closed at each change
}

func newService() *service { return &service{jobs: map[string]*job{}, then: api.Profiling} }

func unknown(id string) error {
	return &api.Error{Status: http.StatusNotFound, Code: "unknown-job", Detail: fmt.Sprintf("job %q is not known", id)}
}

// find is called with the lock held.
func (s *service) find(id string) (*job, error) {
	s.calls++
	if s.down > 0 {
		s.down--
		return nil, &api.Error{Status: http.StatusServiceUnavailable, Detail: "the database is away"}
	}
	if j := s.jobs[id]; j != nil {
		return j, nil
	}
	return nil, unknown(id)
}

func (s *service) PutJob(_ context.Context, id string, spec api.JobSpec) (api.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[id] != nil {
		return api.Job{}, &api.Error{Status: http.StatusConflict, Detail: "twice"}
	}
	j := &job{
		Job:   api.Job{ID: id, State: api.Registered, Generation: 1, Spec: spec, MissingRanksCount: spec.WorldSize},
		ranks: map[int]api.Rank{}, changed: make(chan struct{}),
	}
	s.jobs[id] = j
	return j.Job, nil
}

func (s *service) Job(_ context.Context, id string) (api.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.find(id)
	if err != nil {
		return api.Job{}, err
	}
	return j.Job, nil
}

func (s *service) RegisterRanks(_ context.Context, id string, r api.RankRegistration) (api.RankRegistered, error) {
	then := func() {}
	defer func() { then() }() // after the lock is released
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.find(id)
	if err != nil {
		return api.RankRegistered{}, err
	}
	for _, rank := range r.Ranks {
		j.ranks[rank.Rank] = rank
	}
	j.MissingRanksCount = j.Spec.WorldSize - len(j.ranks)
	if j.MissingRanksCount == 0 {
		j.State = s.then
		j.change()
		if s.onComplete != nil {
			then = s.onComplete
		}
	}
	return api.RankRegistered{Generation: j.Generation, MissingCount: j.MissingRanksCount}, nil
}

func (s *service) Rank(_ context.Context, id string, rank int) (api.Rank, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.find(id)
	if err != nil {
		return api.Rank{}, err
	}
	r, ok := j.ranks[rank]
	if !ok {
		return r, &api.Error{Status: http.StatusNotFound, Detail: fmt.Sprintf("rank %d has not registered", rank)}
	}
	return r, nil
}

func (s *service) Schedules(ctx context.Context, id string, q api.ScheduleQuery) (api.Schedules, error) {
	over := time.NewTimer(q.Wait)
	defer over.Stop()
	for {
		s.mu.Lock()
		j, err := s.find(id)
		if err != nil {
			s.mu.Unlock()
			return api.Schedules{}, err
		}
		changed, out := j.changed, api.Schedules{Generation: j.Generation, Version: j.Version, State: j.State}
		for _, rank := range q.Ranks {
			if r, ok := j.schedule[rank]; ok && j.Version > q.Version {
				out.Ranks = append(out.Ranks, r)
			}
		}
		s.mu.Unlock()
		if out.Version > q.Version || q.Wait == 0 {
			return out, nil
		}
		select {
		case <-changed:
		case <-s.stop:
			return out, nil
		case <-over.C:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

func (s *service) Report(_ context.Context, id string, r api.Reports) (api.Accepted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.find(id)
	if err != nil {
		return api.Accepted{}, err
	}
	if r.Generation != j.Generation {
		return api.Accepted{}, &api.Error{Status: http.StatusConflict, Detail: "older generation"}
	}
	s.reports = append(s.reports, r)
	return api.Accepted{Version: j.Version}, nil
}

// change wakes all who wait. It is called with the lock held.
func (j *job) change() {
	j.Version++
	close(j.changed)
	j.changed = make(chan struct{})
}

// publish gives all jobs a schedule and a state.
func (s *service) publish(state api.State, ranks ...api.RankSchedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		j.State, j.schedule = state, map[int]api.RankSchedule{}
		for _, r := range ranks {
			j.schedule[r.Rank] = r
		}
		j.change()
	}
}
