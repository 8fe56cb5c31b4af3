package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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

// TestJobsList lists several pages.
func TestJobsList(t *testing.T) {
	jobs := []api.Job{fullJob()}
	for _, id := range []string{"a", "b", "z"} {
		jobs = append(jobs, api.Job{ID: id, State: api.Paused, Reason: "the guardrail tripped", Spec: api.JobSpec{WorldSize: 4}})
	}
	s := newControlPlane(t, jobs...)
	lines := strings.Split(must(t, "jobs").stdout, "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "JOB") || strings.Join(strings.Fields(lines[3]), " ") != "gpt3 running 12345 3.48000 s 12.60 % 1015/1024 GPT-3 [2J 175B" {
		t.Errorf("%q", lines)
	}
	if fields := strings.Fields(lines[1]); strings.Join(fields, " ") != "a paused 0 – – 4 the guardrail tripped" {
		t.Errorf("%q", fields)
	}
	var all api.JobList
	if err := json.Unmarshal([]byte(must(t, "jobs", "list", "--json", "--state", "paused").stdout), &all); err != nil || len(all.Jobs) != 3 || all.Jobs[2].ID != "z" {
		t.Errorf("%+v, %v", all, err)
	}
	if s.newest() != "GET /v1/jobs?after=b&state=paused" {
		t.Errorf("asked for %s", s.newest())
	}
	if r := must(t, "jobs", "list", "--state", "failed"); r.stdout != "" || !strings.Contains(r.stderr, "no jobs at http://127.0.0.1:") {
		t.Errorf("%+v", r)
	}
	if r := must(t, "jobs", "list", "--state", "failed", "--json"); r.stdout != "{\n  \"jobs\": []\n}\n" {
		t.Errorf("%+v", r)
	}
}

// TestJobsShow shows all there is of a job, and of one of which there is nothing yet.
func TestJobsShow(t *testing.T) {
	job := fullJob()
	newControlPlane(t, job, api.Job{ID: "new", State: api.Registered, Spec: api.JobSpec{WorldSize: 2, Microbatches: 1}, MissingRanks: []int{1}, MissingRanksCount: 1})
	page := must(t, "jobs", "show", "gpt3").stdout
	for _, want := range []string{
		"gpt3  GPT-3 [2J 175B\nrunning: follows the plan\n",
		"1024: 8 pipeline-parallel, 16 data-parallel, 8 tensor-parallel\n",
		"missing      9 ranks: 5, 17–19, 900, 901 and 3 more\n",
		"1f1b, 96 microbatches, 2 chunks\n",
		"12345, generation 2, schedule version 7\n",
		"12 iterations ran at maximum clock",
		job.CreatedAt.In(time.Local).Format(time.DateTime),
		"42.00 % done in 120 iterations, at most 160 more\n", "note         stage 3 backward: 6 samples more\n",
		"Frontier, version 2, of 1234 points\n", "top clocks   2.95000 s, 23800.0 J of one pipeline\n",
		"waits        until 3.48000 s", "saving       12.60 % against maximum clock\n", "because      straggler\n", "note         near\n",
		"goal         at most 1.05000 times the least time\n",
		"straggler    rank 0, 1.20000 times the least time, from iteration 1000, until iteration 2000 (operator)\n",
		"straggler    GPU GPU-5d0b, at most 1200 MHz\n",
		"saving       12.30 % (95 %: 11.90 % … 12.70 %)\n", "slowdown     0.10 % (95 %: -0.10 % … 0.30 %)\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	for _, unwanted := range []string{"NOT FEASIBLE", "progress     12", "\x1b"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("%q is in\n%s", unwanted, page)
		}
	}
	page = must(t, "jobs", "show", "new").stdout
	if !strings.Contains(page, "registered: waiting for ranks\n") || !strings.Contains(page, "1 rank: 1\n") || strings.Contains(page, "Plan") {
		t.Error(page)
	}
	var back api.Job
	if err := json.Unmarshal([]byte(must(t, "jobs", "show", "gpt3", "--json").stdout), &back); err != nil || back.Spec.Name != job.Spec.Name || *back.Stragglers[0].Rank != 0 {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestJobsSteer looks at what each command tells the server.
func TestJobsSteer(t *testing.T) {
	s := newControlPlane(t, fullJob())
	for _, test := range []struct{ args, want string }{
		{"straggler gpt3 --rank 0 --slowdown 1.2", `POST /v1/jobs/gpt3/stragglers {"rank":0,"slowdown":1.2,"source":"operator"}`},
		{"straggler gpt3 --rank 5 --slowdown 120% --at-iteration 9 --until-iteration 10", `{"rank":5,"slowdown":1.2,"at_iteration":9,"until_iteration":10,"source":"operator"}`},
		{"straggler gpt3 --gpu GPU-1 --max-frequency 1200", `{"gpu_id":"GPU-1","max_frequency_mhz":1200,"source":"operator"}`},
		{"straggler gpt3 --rank 5 --clear", `{"rank":5,"slowdown":1,"source":"operator"}`},
		{"goal gpt3 --fastest", `PUT /v1/jobs/gpt3/goal {}`},
		{"goal gpt3 --slowdown 1.1", `{"slowdown":1.1}`},
		{"goal gpt3 --time 2900ms", `{"time_s":2.9}`},
		{"goal gpt3 --power 15kW", `{"power_w":15000}`},
		{"goal gpt3 --min-energy", `{"least_energy":true}`},
		{"pause gpt3", "POST /v1/jobs/gpt3/pause"},
		{"resume gpt3", "POST /v1/jobs/gpt3/resume"},
		{"finish gpt3", "POST /v1/jobs/gpt3/finish"},
		{"measure gpt3 --blocks 8", `POST /v1/jobs/gpt3/measure {"blocks":8,"iterations":20}`},
		{"delete gpt3 --yes", "DELETE /v1/jobs/gpt3"},
	} {
		args := strings.Fields("jobs " + test.args)
		r := must(t, args...)
		if !strings.HasSuffix(s.newest(), test.want) || !strings.Contains(r.stdout, "gpt3") {
			t.Errorf("%s: %s, %q", test.args, s.newest(), r.stdout)
		}
		var v any
		if err := json.Unmarshal([]byte(must(t, append(args, "--json")...).stdout), &v); err != nil {
			t.Errorf("%s --json: %v", test.args, err)
		}
	}
	if r := must(t, "jobs", "goal", "gpt3", "--fastest"); r.stdout != "gpt3 is running: follows the plan; plan: iteration 3.48000 s, 12.60 % saved\n" {
		t.Errorf("%q", r.stdout)
	}
}

// TestJobsDelete asks for --yes before a job is deleted that has not ended.
func TestJobsDelete(t *testing.T) {
	job := fullJob()
	s := newControlPlane(t, job)
	if r := perseus(t, "", "jobs", "delete", "gpt3"); r.status != statusBadInput || !strings.Contains(r.stderr, "job gpt3 is running: it is deleted all the same with --yes") {
		t.Errorf("%+v", r)
	}
	for _, job.State = range []api.State{api.Finished, api.Failed} {
		s.set(job)
		if r := must(t, "jobs", "delete", "gpt3"); r.stdout != "gpt3 is deleted\n" || s.newest() != "DELETE /v1/jobs/gpt3" {
			t.Errorf("%+v, %s", r, s.newest())
		}
	}
}

// TestJobsMeasure waits for a measurement, through a server that is away for a while.
func TestJobsMeasure(t *testing.T) {
	for _, test := range []struct {
		name   string
		after  []*api.Measured // what the server answers; nil: it is busy
		state  api.State       // of the last one
		status int
		want   string
	}{
		{
			"done",
			[]*api.Measured{{Blocks: 4}, {Blocks: 4}, nil, {Blocks: 4, BlocksDone: 2}, {Blocks: 4, BlocksDone: 4, Done: true, SavingPercent: 10, SavingLow: 9, SavingHigh: 11}},
			api.Running, statusDone, "saving    10.00 % (95 %: 9.00 % … 11.00 %)\nslowdown  0.00 % (95 %: 0.00 % … 0.00 %)\n",
		},
		{"failed", []*api.Measured{{Blocks: 4}, {Blocks: 4, BlocksDone: 1}}, api.Failed, statusFailed, "the job is failed before it was done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newControlPlane(t)
			n := 0
			next := func(w http.ResponseWriter, _ *http.Request) {
				m := test.after[n]
				job := api.Job{ID: "j", State: api.Running, Measurement: m}
				if n++; n == len(test.after) {
					job.State = test.state
				}
				if m == nil {
					problem(w, 503, "the database is away")
					return
				}
				replyJSON(w, job)
			}
			s.HandleFunc("GET /v1/jobs/j", next)
			s.HandleFunc("POST /v1/jobs/j/measure", next)
			r := perseus(t, "", "jobs", "measure", "j", "--wait", "--poll", "1ms", "--patience", "0s")
			if r.status != test.status || !strings.Contains(r.stdout+r.stderr, test.want) {
				t.Errorf("%+v", r)
			}
		})
	}
}

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

// TestJobsExport writes frontier and profile, unpacked or packed as the name says, or nothing.
func TestJobsExport(t *testing.T) {
	s := newControlPlane(t)
	s.HandleFunc("GET /v1/jobs/j/frontier", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "{}\n")
		_ = z.Close()
	})
	s.HandleFunc("GET /v1/jobs/j/profile", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "stage\n") })
	s.HandleFunc("GET /v1/jobs/cut/profile", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99")
		_, _ = io.WriteString(w, "stage\n")
	})
	if got := must(t, "jobs", "export", "j").stdout; got != "{}\n" {
		t.Errorf("%q", got)
	}
	packed, plain := filepath.Join(t.TempDir(), "F.json.gz"), filepath.Join(t.TempDir(), "P.csv")
	must(t, "jobs", "export", "j", "-o", packed)
	if text := read(t, packed); !strings.HasPrefix(text, "\x1f\x8b") {
		t.Errorf("%q", text)
	}
	must(t, "jobs", "export", "j", "--what", "profile", "-o", plain)
	for id, status := range map[string]int{"cut": statusFailed, "none": statusBadInput} {
		if r := perseus(t, "", "jobs", "export", id, "--what", "profile", "-o", plain); r.status != status || read(t, plain) != "stage\n" {
			t.Errorf("%s: %+v, and the file is %q", id, r, read(t, plain))
		}
	}
	s.HandleFunc("GET /v1/jobs/large/profile", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("stage,instruction\n", 1<<16))
	})
	for _, id := range []string{"j", "large"} {
		args := []string{"jobs", "export", id, "--what", "profile"}
		if status := run(t.Context(), args, nil, &full{1}, io.Discard); status != statusFailed {
			t.Errorf("a full disk: status %d", status)
		}
	}
}

// TestJobsErrors says what is wrong, with the way out, and no token.
func TestJobsErrors(t *testing.T) {
	const token = "prs_secret"
	s := newControlPlane(t, fullJob())
	for status, id := range map[int]string{401: "j401", 403: "j403", 409: "j409", 422: "j422", 500: "j500", 503: "j503"} {
		s.HandleFunc("GET /v1/jobs/"+id, func(w http.ResponseWriter, r *http.Request) {
			problem(w, status, "refused with "+r.Header.Get("Authorization"))
		})
	}
	away := httptest.NewServer(s)
	away.Close()
	secured := httptest.NewTLSServer(s)
	secured.Config.ErrorLog = nil
	t.Cleanup(secured.Close)
	folder := t.TempDir()
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"show none", 2, `job "none" is unknown (404 Not Found); perseus jobs lists`},
		{"show ../x", 2, "letters, digits"},
		{"show j401", 1, "give a token in PERSEUS_TOKEN or with --token-file"},
		{"show j403", 1, "perseus token create makes a token of another scope"},
		{"show j409", 1, "409 Conflict"},
		{"show j422", 2, "422"},
		{"show j500", 1, "500"},
		{"show j503", 1, "503"},
		{"list --server " + away.URL, 1, "connection refused; start a server with perseus serve, or name the one that runs with --server or PERSEUS_SERVER"},
		{"list --server " + strings.Replace(away.URL, "http", "ftp", 1), 2, "--server: server"},
		{"list --server http://me:" + token + "@a", 2, "with a user or password"},
		{"list --server=", 2, "server is empty"},
		{"list --token-file nowhere", 2, "--token-file: nowhere: no such file"},
		{"list --token-file " + writeFile(t, "empty", "\n"), 2, "it is empty"},
		{"list --token-file " + writeFile(t, "words", token+" "+token), 2, "a token is one word"},
		{"list --tls-cert " + writeFile(t, "c.pem", "x"), 2, "belong together"},
		{"list --state odd", 2, `--state "odd": expected one of registered profiling`},
		{"show", 2, `expected "<job>"`},
		{"shwo gpt3", 2, `did you mean "show"?`},
		{"watch none", 2, "is unknown"},
		{"watch gpt3 --after=-1", 2, "--after"},
		{"schedule gpt3 --rank=-1", 2, "ranks count from 0"},
		{"schedule gpt3 --rank 1024", 2, "job gpt3 has ranks 0 to 1023"},
		{"schedule gpt3 --format xml", 2, "--format must be one of"},
		{"straggler gpt3", 2, "--rank or --gpu"},
		{"straggler gpt3 --rank 1", 2, "one of --slowdown, --max-frequency, --clear"},
		{"straggler gpt3 --rank 1 --gpu x --clear", 2, "can't be used together"},
		{"straggler gpt3 --rank 1 --clear --slowdown 2", 2, "can't be used together"},
		{"straggler gpt3 --rank=-1 --clear", 2, "--rank -1"},
		{"straggler gpt3 --rank 1 --slowdown 20%", 2, "write 1.2 for 20% more"},
		{"straggler gpt3 --rank 1 --slowdown 0.9", 2, "--slowdown 0.9: expected a factor of at least 1"},
		{"straggler gpt3 --rank 1 --max-frequency 0", 2, "expected a clock in MHz"},
		{"straggler gpt3 --rank 1 --clear --at-iteration 5 --until-iteration 5", 2, "expected one after --at-iteration 5"},
		{"goal gpt3", 2, "say what to plan for: one of --fastest"},
		{"goal gpt3 --fastest --min-energy", 2, "can't be used together"},
		{"goal gpt3 --time=-1s", 2, "--time -1s: expected a time over 0s"},
		{"goal gpt3 --slowdown 0.9", 2, "--slowdown 0.9"},
		{"goal gpt3 --power 0", 2, "--power 0W"},
		{"measure gpt3 --blocks 3", 2, "--blocks 3: at least 4 are needed"},
		{"export gpt3 -o " + folder, 2, "is a folder"},
		{"export gpt3 --what odd", 2, "--what must be one of"},
		{"delete none", 2, "is unknown"},
	} {
		t.Setenv("PERSEUS_TOKEN", token)
		r := perseus(t, "", append(strings.Fields("jobs "+test.args), "--patience=0s")...)
		if r.status != test.status || !strings.HasPrefix(r.stderr, "perseus: ") || !strings.Contains(r.stderr, test.want) || strings.Contains(r.stderr, token) || r.stdout != "" {
			t.Errorf("perseus jobs %s: status %d, %q, %q; want %d, %q", test.args, r.status, r.stdout, r.stderr, test.status, test.want)
		}
	}
}

// TestJobsToken takes the token from the variable, or the file where one is named.
func TestJobsToken(t *testing.T) {
	s := newControlPlane(t)
	var got string
	s.HandleFunc("GET /v1/jobs/j", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		replyJSON(w, api.Job{ID: "j"})
	})
	must(t, "jobs", "show", "j")
	if got != "" {
		t.Errorf("%q without a token", got)
	}
	t.Setenv("PERSEUS_TOKEN", " one\n")
	must(t, "jobs", "show", "j")
	if got != "Bearer one" {
		t.Errorf("%q", got)
	}
	must(t, "jobs", "show", "j", "--token-file", writeFile(t, "token", "two\n"))
	if got != "Bearer two" {
		t.Errorf("%q", got)
	}
}

// eventStream writes events as the server does.
func eventStream(w http.ResponseWriter, events ...api.Event) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		text, _ := json.Marshal(e)
		fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, text)
	}
	_ = http.NewResponseController(w).Flush()
}

// TestJobsWatch follows a job over a restart of the server until it finishes.
func TestJobsWatch(t *testing.T) {
	at := time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)
	event := func(id int64, kind, text string) api.Event { return api.Event{ID: id, At: at, Kind: kind, Text: text} }
	for _, test := range []struct {
		name   string
		last   api.Job
		silent bool // whether no event says that it ended
		status int
		stderr string
	}{
		{"finished", api.Job{ID: "j", State: api.Finished}, false, statusDone, ""},
		{"without a word", api.Job{ID: "j", State: api.Finished}, true, statusDone, ""},
		{"failed", api.Job{ID: "j", State: api.Failed, Reason: "no frontier"}, false, statusFailed, "job j failed: no frontier"},
		{"deleted", api.Job{}, true, statusFailed, "job j was deleted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newControlPlane(t, api.Job{ID: "j", State: api.Running})
			var afters []string
			s.HandleFunc("GET /v1/jobs/j/events", func(w http.ResponseWriter, r *http.Request) {
				afters = append(afters, r.URL.Query().Get("after"))
				switch len(afters) {
				case 1:
					eventStream(w, event(1, "state", "running"), event(2, "straggler", "rank 5\nis slow"))
				case 2:
					problem(w, 503, "starting")
				default:
					events := []api.Event{event(2, "straggler", "again"), event(3, "schedule", "version 8")}
					s.mu.Lock()
					delete(s.jobs, "j")
					s.mu.Unlock()
					if test.last.ID != "" {
						s.set(test.last)
					}
					if !test.silent {
						events = append(events, event(4, "state", "the end"))
					}
					eventStream(w, events...)
					<-r.Context().Done()
				}
			})
			r := perseus(t, "", "jobs", "watch", "j", "--poll", "50ms", "--quiet", "50ms")
			when := at.In(time.Local).Format(time.DateTime)
			want := when + "  state      running\n" + when + "  straggler  rank 5 is slow\n" + when + "  schedule   version 8\n"
			if !test.silent {
				want += when + "  state      the end\n"
			}
			if r.status != test.status || r.stdout != want || !strings.Contains(r.stderr, test.stderr) || !strings.HasPrefix(strings.Join(afters, " "), "0 2 2") {
				t.Errorf("%+v after %v; want\n%s", r, afters, want)
			}
			if !strings.Contains(r.stderr, "starting (503 Service Unavailable); trying again until it answers") {
				t.Errorf("nothing is said of the outage: %q", r.stderr)
			}
		})
	}
}

// TestJobsWatchEnded prints the history of a job that ended before.
func TestJobsWatchEnded(t *testing.T) {
	s := newControlPlane(t, api.Job{ID: "j", State: api.Finished})
	s.HandleFunc("GET /v1/jobs/j/events", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") != "3" {
			t.Errorf("events behind %s", r.URL.Query().Get("after"))
		}
		eventStream(w, api.Event{ID: 4, Kind: "state", Text: "finished"})
		<-r.Context().Done()
	})
	if r := must(t, "jobs", "watch", "j", "--after", "3"); !strings.HasSuffix(r.stdout, "  state      finished\n") || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// TestJobsWatchStopped ends watching with an interrupt: all went well.
func TestJobsWatchStopped(t *testing.T) {
	s := newControlPlane(t, api.Job{ID: "j", State: api.Running})
	s.HandleFunc("GET /v1/jobs/j/events", func(w http.ResponseWriter, r *http.Request) {
		eventStream(w, api.Event{ID: 1, Kind: "state", Text: "running"})
		<-r.Context().Done()
	})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr bytes.Buffer
	out := writerFunc(func(b []byte) (int, error) {
		interrupt()
		return stdout.Write(b)
	})
	status := run(ctx, []string{"jobs", "watch", "j", "--json"}, nil, out, &stderr)
	var e api.Event
	if err := json.Unmarshal(stdout.Bytes(), &e); err != nil || e.ID != 1 || status != statusDone || stderr.Len() > 0 {
		t.Errorf("status %d, %s, %s", status, &stdout, &stderr)
	}
	full := writerFunc(func([]byte) (int, error) { return 0, errFull })
	if status := run(t.Context(), []string{"jobs", "watch", "j"}, nil, full, io.Discard); status != statusFailed {
		t.Errorf("a full disk: status %d", status)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestInterruptedCall ends a call that waits for the server.
func TestInterruptedCall(t *testing.T) {
	s := newControlPlane(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	s.HandleFunc("GET /v1/jobs/j", func(_ http.ResponseWriter, r *http.Request) {
		interrupt(errors.New("interrupted"))
		<-r.Context().Done()
	})
	var stderr bytes.Buffer
	if status := run(ctx, []string{"jobs", "show", "j"}, nil, io.Discard, &stderr); status != statusInterrupted || stderr.String() != "perseus: interrupted\n" {
		t.Errorf("status %d, %s", status, &stderr)
	}
}
