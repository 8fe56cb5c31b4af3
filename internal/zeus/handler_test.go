package zeus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/pipeline"
)

func newHandler(t testing.TB, s *service) *Handler {
	t.Helper()
	h, err := New(Config{Service: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call sends a request and returns status and body.
func call(h http.Handler, method, url, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

const aJob = `{"job_id":"","pp_degree":2,"dp_degree":1,"tp_degree":1,"world_size":2,"job_metadata":"schedule=1f1b;microbatches=3"}`

func register(t *testing.T, h http.Handler, body string) string {
	t.Helper()
	status, text := call(h, "POST", "/register_job", body)
	var id string
	if err := json.Unmarshal([]byte(text), &id); err != nil || status != http.StatusOK {
		t.Fatalf("register_job: %d %s", status, text)
	}
	return id
}

func registerRank(t *testing.T, h http.Handler, job string, rank, dp, pp, tp int, clocks string) {
	t.Helper()
	status, text := call(h, "POST", "/register_rank/"+job,
		fmt.Sprintf(`{"rank":%d,"dp_rank":%d,"pp_rank":%d,"tp_rank":%d,"available_frequencies":[%s]}`, rank, dp, pp, tp, clocks))
	if status != http.StatusOK || text != "null" {
		t.Fatalf("register_rank: %d %s", status, text)
	}
}

// TestUniqueIDs: two like jobs in the same second are two jobs, with ids that the control plane takes.
func TestUniqueIDs(t *testing.T) {
	s := newService()
	h := newHandler(t, s)
	h.Now = func() time.Time { return time.Date(2026, 12, 3, 9, 0, 0, 0, time.UTC) }
	a, b := register(t, h, aJob), register(t, h, aJob)
	if a == b || len(s.jobs) != 2 {
		t.Errorf("ids %q and %q, %d jobs", a, b, len(s.jobs))
	}
	for _, id := range []string{a, b} {
		if !jobID.MatchString(id) || !strings.HasPrefix(id, "zeus-20261203-090000-dp1-pp2-tp1-") {
			t.Errorf("id %q", id)
		}
	}
}

func TestSpec(t *testing.T) {
	s := newService()
	h := newHandler(t, s)
	id := register(t, h, `{"pp_degree":4,"dp_degree":2,"tp_degree":2,"world_size":16,"extra":1,
		"job_metadata":"GPT-3 / 13b; schedule=ZBV; microbatches=9; model_key=gpt3-13b; gpu=NVIDIA A40; blocking_power_w=70.5"}`)
	want := api.JobSpec{
		Name: "GPT-3 / 13b", PP: 4, DP: 2, TP: 2, CP: 1, EP: 1, WorldSize: 16, Schedule: "zbv", Microbatches: 9, Chunks: 2,
		ModelKey: "gpt3-13b", GPU: "NVIDIA A40", BlockingPowerW: 70.5,
		Metadata: map[string]string{"client": "zeus", "job_metadata": "GPT-3 / 13b; schedule=ZBV; microbatches=9; model_key=gpt3-13b; gpu=NVIDIA A40; blocking_power_w=70.5"},
	}
	if got := s.jobs[id].Spec; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	id = register(t, h, `{"pp_degree":2,"dp_degree":1,"tp_degree":1,"world_size":2,"job_metadata":null}`)
	if got := s.jobs[id].Spec; got.Schedule != "1f1b" || got.Microbatches != 8 || got.Chunks != 1 {
		t.Errorf("without metadata: %+v", got)
	}
}

func TestRefused(t *testing.T) {
	job := func(change string) string {
		m := map[string]any{"pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2}
		var c map[string]any
		if err := json.Unmarshal([]byte(change), &c); err != nil {
			t.Fatal(err)
		}
		for k, v := range c {
			m[k] = v
		}
		text, _ := json.Marshal(m)
		return string(text)
	}
	tests := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"degree 0", "POST", "/register_job", job(`{"pp_degree":0}`), 422, `["body","pp_degree"]`},
		{"degree below 0", "POST", "/register_job", job(`{"dp_degree":-1}`), 422, `["body","dp_degree"]`},
		{"degree too large", "POST", "/register_job", job(`{"tp_degree":100000}`), 422, `["body","tp_degree"]`},
		{"degree as text", "POST", "/register_job", job(`{"pp_degree":"2"}`), 422, `["body","pp_degree"]`},
		{"half a degree", "POST", "/register_job", job(`{"pp_degree":1.5}`), 422, `["body","pp_degree"]`},
		{"degree missing", "POST", "/register_job", `{"dp_degree":1,"tp_degree":1,"world_size":1}`, 422, `field required`},
		{"world size", "POST", "/register_job", job(`{"world_size":3}`), 422, `is 2`},
		{"all wrong", "POST", "/register_job", `{}`, 422, `["body","world_size"]`},
		{"own id", "POST", "/register_job", job(`{"job_id":"mine"}`), 422, `["body","job_id"]`},
		{"no such schedule", "POST", "/register_job", job(`{"job_metadata":"schedule=1f2b"}`), 422, `1f1b`},
		{"no such size", "POST", "/register_job", job(`{"job_metadata":"schedule=dualpipe;microbatches=3"}`), 422, `job_metadata`},
		{"too many ops", "POST", "/register_job", job(`{"pp_degree":4096,"world_size":4096,"job_metadata":"microbatches=65536"}`), 422, `at most`},
		{"microbatches", "POST", "/register_job", job(`{"job_metadata":"microbatches=0"}`), 422, `from 1 to 65536`},
		{"misspelt key", "POST", "/register_job", job(`{"job_metadata":"schedule=1f1b;microbatch=8"}`), 422, `microbatches`},
		{"metadata too long", "POST", "/register_job", job(`{"job_metadata":"` + strings.Repeat("x", 5000) + `"}`), 422, `4096`},
		{"no JSON", "POST", "/register_job", `pp=2`, 422, `JSON object`},
		{"null", "POST", "/register_job", `null`, 422, `JSON object`},
		{"list", "POST", "/register_job", `[1]`, 422, `JSON object`},
		{"empty", "POST", "/register_job", ``, 422, `JSON object`},
		{"more behind", "POST", "/register_job", job(`{}`) + `{}`, 422, `after top-level`},
		{"too large", "POST", "/register_job", `{"x":"` + strings.Repeat("x", maxBody) + `"}`, 413, `65536`},
		{"method", "GET", "/register_job", ``, 405, `POST`},
		{"info", "GET", "/info", ``, 404, `no such route`},
		{"no job", "GET", "/schedule/?rank=0", ``, 404, `no such route`},

		{"rank of an unknown job", "POST", "/register_rank/none", `{}`, 404, `none`},
		{"rank of an impossible job", "POST", "/register_rank/..%2f..%2fetc", `{}`, 404, `not known`},
		{"rank missing", "POST", "/register_rank/JOB", `{"dp_rank":0,"pp_rank":0,"tp_rank":0,"available_frequencies":[1410]}`, 422, `["body","rank"]`},
		{"rank outside", "POST", "/register_rank/JOB", `{"rank":2,"dp_rank":0,"pp_rank":0,"tp_rank":0,"available_frequencies":[1410]}`, 422, `from 0 to 1`},
		{"pp rank outside", "POST", "/register_rank/JOB", `{"rank":1,"dp_rank":0,"pp_rank":2,"tp_rank":0,"available_frequencies":[1410]}`, 422, `["body","pp_rank"]`},
		{"no clocks", "POST", "/register_rank/JOB", `{"rank":1,"dp_rank":0,"pp_rank":1,"tp_rank":0}`, 422, `available_frequencies`},
		{"clock in Hz", "POST", "/register_rank/JOB", `{"rank":1,"dp_rank":0,"pp_rank":1,"tp_rank":0,"available_frequencies":[1410000000]}`, 422, `MHz`},

		{"schedule of an unknown job", "GET", "/schedule/none?rank=0", ``, 404, `none`},
		{"schedule without rank", "GET", "/schedule/JOB", ``, 422, `["query","rank"]`},
		{"schedule for rank x", "GET", "/schedule/JOB?rank=x", ``, 422, `["query","rank"]`},
		{"schedule for a rank outside", "GET", "/schedule/JOB?rank=2", ``, 422, `0 to 1`},
		{"method of schedule", "POST", "/schedule/JOB?rank=1", ``, 405, `GET`},

		{"result of an unknown job", "POST", "/result/none", `{}`, 404, `none`},
		{"result without times", "POST", "/result/JOB", `{"rank":0}`, 422, `["body","iter_time"]`},
		{"result without iterations", "POST", "/result/JOB", `{"rank":0,"iter_time":[],"iter_energy":[]}`, 422, `from 1`},
		{"result of odd lengths", "POST", "/result/JOB", `{"rank":0,"iter_time":[1,2],"iter_energy":[1]}`, 422, `["body","iter_energy"]`},
		{"negative time", "POST", "/result/JOB", `{"rank":0,"iter_time":[-1],"iter_energy":[]}`, 422, `value 0`},
		{"no number", "POST", "/result/JOB", `{"rank":0,"iter_time":[NaN],"iter_energy":[]}`, 422, `invalid character`},
		{"breakdown of odd length", "POST", "/result/JOB", `{"rank":0,"iter_time":[1],"iter_energy":[],"time_breakdown":{"forward":[[1],[1]]}}`, 422, `2 iterations`},
		{"energies without times", "POST", "/result/JOB", `{"rank":0,"iter_time":[1],"iter_energy":[],"energy_breakdown":{"forward":[[1]]}}`, 422, `not as many`},
		{"result of no rank", "POST", "/result/JOB", `{"rank":1,"iter_time":[1],"iter_energy":[]}`, 404, `rank 1`},
	}
	s := newService()
	h := newHandler(t, s)
	id := register(t, h, aJob)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, text := call(h, tt.method, strings.ReplaceAll(tt.path, "JOB", id), tt.body)
			if status != tt.status || !strings.Contains(text, tt.want) || !strings.HasPrefix(text, `{"detail":`) {
				t.Errorf("got %d %s\nwant %d with %s", status, text, tt.status, tt.want)
			}
		})
	}
	if len(s.jobs) != 1 || len(s.jobs[id].ranks) != 0 {
		t.Errorf("something refused was kept: %d jobs", len(s.jobs))
	}
}

// TestMaxClock: without a plan a rank gets its own top clock for each op of its place in the pipeline, named as its
// order says, at each of several schedules; at a uniform clock it gets that.
func TestMaxClock(t *testing.T) {
	for _, schedule := range []string{"1f1b", "gpipe", "zb-h1", "interleaved-1f1b;chunks=2", "zbv", "gpipe-forward"} {
		t.Run(schedule, func(t *testing.T) {
			s := newService()
			h := newHandler(t, s)
			id := register(t, h, `{"pp_degree":2,"dp_degree":1,"tp_degree":1,"world_size":2,"job_metadata":"schedule=`+schedule+`;microbatches=4"}`)
			// Rank 0 is the second of the pipeline: the order follows pp_rank.
			registerRank(t, h, id, 0, 0, 1, 0, "210,1410,1395")
			registerRank(t, h, id, 1, 0, 0, 0, "1740,210")
			spec := s.jobs[id].Spec
			order, err := pipeline.Build(spec.Schedule, pipeline.Size{Ranks: 2, Chunks: spec.Chunks, Microbatches: 4})
			if err != nil {
				t.Fatal(err)
			}
			check := func(rank, pp int, clock func(string) int) {
				t.Helper()
				var parts []string
				for _, a := range order.Ranks[pp] {
					parts = append(parts, fmt.Sprintf(`["%s",%d]`, a.Kind.Instruction(), clock(a.Kind.Instruction())))
				}
				want := fmt.Sprintf(`{"rank":%d,"frequencies":[%s]}`, rank, strings.Join(parts, ","))
				if status, got := call(h, "GET", fmt.Sprintf("/schedule/%s?rank=%d", id, rank), ""); status != 200 || got != want {
					t.Errorf("got  %d %s\nwant %s", status, got, want)
				}
			}
			check(0, 1, func(string) int { return 1410 })
			check(1, 0, func(string) int { return 1740 })
			s.publish(api.Profiling, api.RankSchedule{Rank: 1, Mode: api.Uniform, Uniform: map[string]int{"forward": 900}})
			check(0, 1, func(string) int { return 1410 })
			check(1, 0, func(name string) int {
				if name == "forward" {
					return 900
				}
				return 1740
			})
		})
	}
}

// TestPlan: a plan is passed on as it is, at the ranks' own clocks.
func TestPlan(t *testing.T) {
	s := newService()
	h := newHandler(t, s)
	id := register(t, h, aJob)
	registerRank(t, h, id, 0, 0, 0, 0, "1410")
	registerRank(t, h, id, 1, 0, 1, 0, "1410")
	s.publish(api.Running, api.RankSchedule{
		Rank: 1, Mode: api.Planned, Instructions: []string{"backward", "forward"},
		Instruction: []int{1, 0, 1, 0}, Stage: []int{1, 1, 1, 1}, FrequencyMHz: []int{1200, 900, 0, 915},
	})
	want := `{"rank":1,"frequencies":[["forward",1200],["backward",900],["forward",1410],["backward",915]]}`
	if status, got := call(h, "GET", "/schedule/"+id+"?rank=1", ""); status != 200 || got != want {
		t.Errorf("got %d %s\nwant %s", status, got, want)
	}
	s.publish(api.Running, api.RankSchedule{Rank: 1, Mode: api.Planned, Instructions: []string{"forward"}, Instruction: []int{1}})
	if status, got := call(h, "GET", "/schedule/"+id+"?rank=1", ""); status != 500 || strings.Contains(got, "op 0") {
		t.Errorf("a broken plan: %d %s", status, got)
	}
}

// TestWaitsForRegistrationOnly: a GET is answered when the last rank registers, at that moment, although no other rank
// asks or reports; asking again is answered at once.
func TestWaitsForRegistrationOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		h := newHandler(t, s)
		id := register(t, h, aJob)
		registerRank(t, h, id, 0, 0, 0, 0, "1410")
		start := time.Now()
		answered := make(chan time.Duration, 1)
		go func() {
			if status, text := call(h, "GET", "/schedule/"+id+"?rank=0", ""); status != 200 {
				t.Errorf("%d %s", status, text)
			}
			answered <- time.Since(start)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-answered:
			t.Fatal("answered although a rank is missing")
		default:
		}
		if s.calls > 2*int(time.Hour/longPoll)+10 {
			t.Errorf("%d calls in an hour of waiting", s.calls)
		}
		registerRank(t, h, id, 1, 0, 1, 0, "1410")
		if took := <-answered; took != time.Hour {
			t.Errorf("answered after %v", took)
		}
		for range 3 {
			call(h, "GET", "/schedule/"+id+"?rank=0", "")
		}
		if since := time.Since(start); since != time.Hour {
			t.Errorf("later GETs waited %v", since-time.Hour)
		}
	})
}

// TestMissingForGood: when the deadline for ranks is over, those that are here train at maximum clock.
func TestMissingForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		h := newHandler(t, s)
		id := register(t, h, aJob)
		registerRank(t, h, id, 0, 0, 0, 0, "1410")
		go func() {
			time.Sleep(time.Minute)
			s.publish(api.Stale)
		}()
		status, text := call(h, "GET", "/schedule/"+id+"?rank=0", "")
		if status != 200 || strings.Count(text, `",1410]`) != 6 {
			t.Errorf("%d %s", status, text)
		}
		if status, _ := call(h, "GET", "/schedule/"+id+"?rank=1", ""); status != 404 {
			t.Errorf("a rank that has not registered: %d", status)
		}
	})
}

// TestStop: a server that stops answers those who wait, at once and so that they can train.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.stop = make(chan struct{})
		h := newHandler(t, s)
		h.Done = s.stop
		id := register(t, h, aJob)
		registerRank(t, h, id, 0, 0, 0, 0, "1410")
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(s.stop) })
		status, text := call(h, "GET", "/schedule/"+id+"?rank=0", "")
		if took := time.Since(start); status != 200 || strings.Count(text, `",1410]`) != 6 || took != time.Minute {
			t.Errorf("%d %s after %v", status, text, took)
		}
		// Without the word that it stops, a service that does not wait is not asked without end.
		h.Done = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := s.calls
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/schedule/"+id+"?rank=0", nil))
		if n := s.calls - before; n > 1300 {
			t.Errorf("%d calls in a minute", n)
		}
	})
}

// TestPlanWait: the one GET of today's client waits a little for a frontier that is being computed, and no longer.
func TestPlanWait(t *testing.T) {
	plan := api.RankSchedule{Rank: 0, Mode: api.Planned, Instructions: []string{"forward"}, Instruction: []int{0}, Stage: []int{0}, FrequencyMHz: []int{915}}
	for _, tt := range []struct {
		after, took time.Duration
		want        string
	}{
		{time.Second, time.Second, `[["forward",915]]`},
		{time.Minute, 5 * time.Second, `",1410]`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService()
			s.then = api.Characterizing
			h := newHandler(t, s)
			id := register(t, h, aJob)
			registerRank(t, h, id, 0, 0, 0, 0, "1410")
			registerRank(t, h, id, 1, 0, 1, 0, "1410")
			time.AfterFunc(tt.after, func() { s.publish(api.Running, plan) })
			start := time.Now()
			status, text := call(h, "GET", "/schedule/"+id+"?rank=0", "")
			if took := time.Since(start); status != 200 || !strings.Contains(text, tt.want) || took != tt.took {
				t.Errorf("%d %s after %v, want %s after %v", status, text, took, tt.want, tt.took)
			}
		})
	}
}

// TestUnavailable: a GET outlasts a database that is away for a while; a POST says so at once.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		h := newHandler(t, s)
		id := register(t, h, aJob)
		registerRank(t, h, id, 0, 0, 0, 0, "1410")
		registerRank(t, h, id, 1, 0, 1, 0, "1410")
		s.down = 5
		if status, text := call(h, "GET", "/schedule/"+id+"?rank=0", ""); status != 200 {
			t.Errorf("%d %s", status, text)
		}
		s.down = 1000
		if status, text := call(h, "GET", "/schedule/"+id+"?rank=0", ""); status != 503 {
			t.Errorf("%d %s", status, text)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/result/"+id, strings.NewReader(`{}`)))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	})
}

func TestResult(t *testing.T) {
	s := newService()
	h := newHandler(t, s)
	id := register(t, h, aJob)
	registerRank(t, h, id, 0, 0, 0, 0, "1410")
	registerRank(t, h, id, 1, 0, 1, 0, "1410")
	s.publish(api.Profiling, api.RankSchedule{
		Rank: 1, Mode: api.Planned, Instructions: []string{"forward", "backward"},
		Instruction: []int{0, 1, 0, 1, 0, 1}, Stage: []int{1, 1, 1, 1, 1, 1}, FrequencyMHz: []int{1200, 900, 1200, 900, 1410, 900},
	})
	result := `{"rank":1,"iter_time":[1,3,9],"iter_energy":[10,20,60],
		"time_breakdown":{"forward":[[1,2,3],[4,5,6],[9]],"backward":[[10,20,30],[40,50,60],[9]]},
		"energy_breakdown":{"forward":[[0.1,0.2,0.3],[0.4,0.5,0.6],[9]]}}`
	call(h, "GET", "/schedule/"+id+"?rank=1", "")
	// The schedule changes meanwhile: the result is still one of the clocks that the rank was told.
	s.publish(api.Profiling, api.RankSchedule{Rank: 1, Mode: api.Uniform, Uniform: map[string]int{"forward": 210}})
	if status, text := call(h, "POST", "/result/"+id, result); status != 200 || text != "null" {
		t.Fatalf("%d %s", status, text)
	}
	want := api.Reports{Generation: 1, Ranks: []api.RankReport{{
		Rank: 1, Version: 2, Iteration: 2, Iterations: 3, TimeS: 13. / 3, EnergyJ: 30, Unplanned: 1,
		Ops: []api.OpReport{
			{Stage: 1, Instruction: "forward", FrequencyMHz: 1200, TimeS: []float64{1, 4, 2, 5}, EnergyJ: []float64{0.1, 0.4, 0.2, 0.5}},
			{Stage: 1, Instruction: "backward", FrequencyMHz: 900, TimeS: []float64{10, 40, 20, 50, 30, 60}},
			{Stage: 1, Instruction: "forward", FrequencyMHz: 1410, TimeS: []float64{3, 6}, EnergyJ: []float64{0.3, 0.6}},
		},
	}}}
	if !reflect.DeepEqual(s.reports[0], want) {
		t.Errorf("got  %+v\nwant %+v", s.reports[0], want)
	}
	// Iterations go on; a result that was not accepted is not counted.
	s.down = 2
	call(h, "POST", "/result/"+id, result)
	call(h, "GET", "/schedule/"+id+"?rank=1", "")
	call(h, "POST", "/result/"+id, `{"rank":1,"iter_time":[1,3],"iter_energy":[]}`)
	last := s.reports[len(s.reports)-1].Ranks[0]
	if last.Iteration != 4 || last.Version != 3 || last.EnergyJ != 0 || last.Ops != nil || last.TimeS != 2 {
		t.Errorf("the next result: %+v", last)
	}
}

// TestResultAfterRestart: a server that does not remember what it told takes the schedule in force, and counts on from
// the newest iteration known.
func TestResultAfterRestart(t *testing.T) {
	s := newService()
	id := register(t, newHandler(t, s), aJob)
	h := newHandler(t, s)
	registerRank(t, h, id, 0, 0, 0, 0, "1410")
	registerRank(t, h, id, 1, 0, 1, 0, "1410")
	s.publish(api.Profiling, api.RankSchedule{Rank: 0, Mode: api.Uniform, Uniform: map[string]int{"forward": 900, "backward": 900}})
	s.jobs[id].Iteration = 49
	for range 2 {
		call(h, "POST", "/result/"+id, `{"rank":0,"iter_time":[1],"iter_energy":[],"time_breakdown":{"forward":[[1,1,1]],"backward":[[1,1,1]]}}`)
	}
	for i, r := range s.reports {
		if got := r.Ranks[0]; got.Iteration != int64(50+i) || got.Version != 2 || len(got.Ops) != 2 || got.Ops[0].FrequencyMHz != 900 {
			t.Errorf("report %d: %+v", i, got)
		}
	}
	if len(s.reports) != 2 {
		t.Errorf("%d reports", len(s.reports))
	}
	// A new generation: what ranks of the old one measured is refused.
	s.jobs[id].Generation = 2
	if status, text := call(h, "POST", "/result/"+id, `{"rank":0,"iter_time":[1],"iter_energy":[]}`); status != 409 {
		t.Errorf("older generation: %d %s", status, text)
	}
}

// TestServedIsBounded: what was told to ranks of jobs long unused is forgotten.
func TestServedIsBounded(t *testing.T) {
	var s served
	for j := range 5 {
		for r := range maxServed / 4 {
			s.put(fmt.Sprint(j), r, servedRank{version: int64(j)}, 0)
		}
	}
	if _, ok := s.last("0", 0); ok || s.ranks > maxServed {
		t.Errorf("%d ranks, the first job known: %v", s.ranks, ok)
	}
	if told, ok := s.last("4", 0); !ok || told.version != 4 {
		t.Error("the newest job is forgotten")
	}
}

func TestToken(t *testing.T) {
	for _, tt := range []struct {
		path, token, rest string
		ok                bool
	}{
		{"/zeus/perseus_abc/schedule/j", "perseus_abc", "/schedule/j", true},
		{"/zeus/perseus_abc//register_job", "perseus_abc", "//register_job", true},
		{"/zeus//perseus_abc/register_job", "perseus_abc", "/register_job", true},
		{"/zeus/perseus_abc", "perseus_abc", "/", true},
		{"/zeus/", "", "", false},
		{"/zeus//", "", "", false},
		{"/register_job", "", "", false},
		{"/v1/zeus/x/y", "", "", false},
	} {
		token, rest, ok := SplitToken(tt.path)
		if token != tt.token || rest != tt.rest || ok != tt.ok {
			t.Errorf("%s: %q %q %v", tt.path, token, rest, ok)
		}
	}
}
