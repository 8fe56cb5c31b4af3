package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// controlPlane is a server that answers in the types of the API. Its jobs are as they were put; what calls say is kept.
type controlPlane struct {
	*http.ServeMux
	mu    sync.Mutex
	jobs  map[string]api.Job
	calls []string // method, path and body
}

// steering are the calls that change a job and answer with it.
var steering = []string{"POST %s/stragglers", "PUT %s/goal", "POST %s/pause", "POST %s/resume", "POST %s/finish", "POST %s/measure"}

// newControlPlane starts a server and points PERSEUS_SERVER at it.
func newControlPlane(t *testing.T, jobs ...api.Job) *controlPlane {
	t.Helper()
	s := &controlPlane{ServeMux: http.NewServeMux(), jobs: map[string]api.Job{}}
	for _, j := range jobs {
		s.jobs[j.ID] = j
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Setenv("PERSEUS_SERVER", server.URL)
	t.Setenv("PERSEUS_TOKEN", "")

	s.HandleFunc("GET /v1/jobs", s.list)
	s.HandleFunc("GET /v1/jobs/{job}", s.answer)
	for _, pattern := range steering {
		s.HandleFunc(fmt.Sprintf(pattern, "/v1/jobs/{job}"), s.answer)
	}
	s.HandleFunc("DELETE /v1/jobs/{job}", func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		w.WriteHeader(http.StatusNoContent)
	})
	return s
}

func (s *controlPlane) note(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
}

// newest returns the newest call.
func (s *controlPlane) newest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) == 0 {
		return ""
	}
	return s.calls[len(s.calls)-1]
}

func (s *controlPlane) set(j api.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[j.ID] = j
}

func (s *controlPlane) answer(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	s.mu.Lock()
	job, ok := s.jobs[r.PathValue("job")]
	s.mu.Unlock()
	if !ok {
		problem(w, 404, fmt.Sprintf("job %q is unknown", r.PathValue("job")))
		return
	}
	replyJSON(w, job)
}

// list answers with two jobs a page.
func (s *controlPlane) list(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	var page api.JobList
	ids := []string{}
	for id, j := range s.jobs {
		state := r.URL.Query().Get("state")
		if id > r.URL.Query().Get("after") && (state == "" || api.State(state) == j.State) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for i, id := range ids {
		if i == 2 {
			page.Next = ids[1]
			break
		}
		page.Jobs = append(page.Jobs, s.jobs[id])
	}
	replyJSON(w, page)
}

func replyJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail})
}

func intp(v int) *int { return &v }

// fullJob has a value in each field that is shown.
func fullJob() api.Job {
	at := time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)
	return api.Job{
		ID: "gpt3", State: api.Running, Reason: "follows the plan", Generation: 2, Version: 7, Iteration: 12345, UnplannedCount: 12,
		CreatedAt: at, UpdatedAt: at.Add(time.Hour),
		Spec: api.JobSpec{
			Name: "GPT-3\x1b[2J 175B", PP: 8, DP: 16, TP: 8, WorldSize: 1024, Schedule: "1f1b", Microbatches: 96, Chunks: 2, GPU: "A100",
		},
		MissingRanks: []int{5, 17, 18, 19, 900, 901}, MissingRanksCount: 9,
		Profiling: &api.Profile{DoneFraction: 0.42, Iterations: 120, IterationsMax: 160, ExtraTime: 12.4, Notes: []string{"stage 3 backward: 6 samples more"}},
		Frontier:  &api.Frontier{Version: 2, Points: 1234, MinTimeS: 2.9, MaxTimeS: 3.6, LeastEnergyTimeS: 3.1, MaxClockTimeS: 2.95, MaxClockEnergyJ: 23800},
		Plan:      &api.Plan{TimeS: 3.4, EnergyJ: 20100, WaitTimeS: 3.48, SavingPercent: 12.6, Reason: "straggler", Feasible: true, Note: "near"},
		Stragglers: []api.Straggler{
			{Rank: intp(0), Slowdown: 1.2, AtIteration: 1000, UntilIteration: 2000, Source: "operator"},
			{GPU: "GPU-5d0b", MaxFrequencyMHz: 1200},
		},
		Goal:        api.Goal{Slowdown: 1.05},
		Measurement: &api.Measured{Done: true, Blocks: 12, BlocksDone: 12, SavingPercent: 12.3, SavingLow: 11.9, SavingHigh: 12.7, SlowdownPercent: 0.1, SlowdownLow: -0.1, SlowdownHigh: 0.3},
	}
}
