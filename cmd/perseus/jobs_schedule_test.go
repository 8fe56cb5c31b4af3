package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/api"
)

// jobSchedules answers with a plan for each even rank, uniform clocks for rank 1, and maximum clocks for the rest.
func jobSchedules(version func() int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := api.Schedules{Generation: 1, Version: version(), EffectiveIteration: 90, State: api.Running, Reason: "straggler"}
		for text := range strings.SplitSeq(r.URL.Query().Get("ranks"), ",") {
			one := api.RankSchedule{Mode: api.MaxClock}
			_, _ = fmt.Sscan(text, &one.Rank)
			switch {
			case one.Rank == 1:
				one.Mode, one.Uniform = api.Uniform, map[string]int{"forward": 1200, "backward": 1410}
			case one.Rank%2 == 0:
				one.Mode, one.Instructions, one.Instruction = api.Planned, []string{"forward", "backward"}, []int{0, 1}
				one.Stage, one.Microbatch, one.FrequencyMHz = []int{one.Rank, one.Rank}, []int{0, 0}, []int{1305, 0}
				one.StartNs, one.TimeNs, one.IterationNs = []int64{0, 1_500_000}, []int64{1_500_000, 2_000_000_000}, 2_001_500_000
			}
			s.Ranks = append(s.Ranks, one)
		}
		replyJSON(w, s)
	}
}

// TestJobsSchedule shows schedules of all modes in all formats.
func TestJobsSchedule(t *testing.T) {
	s := newControlPlane(t, api.Job{ID: "j", Spec: api.JobSpec{WorldSize: 4}}, api.Job{ID: "large", Spec: api.JobSpec{WorldSize: 600}}, api.Job{ID: "restless", Spec: api.JobSpec{WorldSize: 600}})
	s.HandleFunc("GET /v1/jobs/j/schedules", jobSchedules(func() int64 { return 7 }))
	calls := int64(0)
	s.HandleFunc("GET /v1/jobs/large/schedules", jobSchedules(func() int64 { calls++; return min(calls, 2) }))
	s.HandleFunc("GET /v1/jobs/restless/schedules", jobSchedules(func() int64 { calls++; return calls }))
	const header = "rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s\n"
	const rank0 = "0,0,0,forward,1305,0,0.0015\n0,0,0,backward,0,0.0015,2\n"
	const rank2 = "2,2,0,forward,1305,0,0.0015\n2,2,0,backward,0,0.0015,2\n"
	if got := must(t, "jobs", "schedule", "j", "--format", "csv").stdout; got != header+rank0+"1,,,backward,1410,,\n1,,,forward,1200,,\n"+rank2+"3,,,,0,,\n" {
		t.Errorf("%s", got)
	}
	if got := must(t, "jobs", "schedule", "j", "--rank", "2", "--rank", "0,2", "--format", "csv").stdout; got != header+rank0+rank2 {
		t.Errorf("%s", got)
	}
	text := must(t, "jobs", "schedule", "j").stdout
	for _, want := range []string{
		"version 7 from iteration 90, generation 1, running: straggler\n",
		"\nrank 1: backward 1410 MHz, forward 1200 MHz\n", "\nrank 3: maximum clock\n", "\nrank 2: 2 ops, iteration 2.00150 s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	var all api.Schedules
	if err := json.Unmarshal([]byte(must(t, "jobs", "schedule", "large", "--json").stdout), &all); err != nil || len(all.Ranks) != 600 || all.Version != 2 || all.Ranks[599].Rank != 599 || calls != 5 {
		t.Errorf("%d ranks of version %d after %d calls, %v", len(all.Ranks), all.Version, calls, err)
	}
	if r := perseus(t, "", "jobs", "schedule", "restless"); r.status != statusFailed || !strings.Contains(r.stderr, "faster than it can be read") {
		t.Errorf("%d, %s", r.status, r.stderr)
	}
}

// TestJobsScheduleOdd refuses schedules whose lists do not belong together.
func TestJobsScheduleOdd(t *testing.T) {
	s := newControlPlane(t, api.Job{ID: "j", Spec: api.JobSpec{WorldSize: 1}})
	var odd api.RankSchedule
	s.HandleFunc("GET /v1/jobs/j/schedules", func(w http.ResponseWriter, _ *http.Request) {
		replyJSON(w, api.Schedules{Ranks: []api.RankSchedule{odd}})
	})
	for _, odd = range []api.RankSchedule{
		{Instruction: []int{0}},
		{Instruction: []int{-1}, Instructions: []string{"forward"}},
		{Instruction: []int{0, 0}, Instructions: []string{"forward"}, FrequencyMHz: []int{1}},
		{TimeNs: []int64{1}},
	} {
		if r := perseus(t, "", "jobs", "schedule", "j", "--format", "csv"); r.status != statusFailed || !strings.Contains(r.stderr, "rank 0: the server sent") {
			t.Errorf("%+v: %+v", odd, r)
		}
	}
}
