package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

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
		{"measure gpt3 --blocks 3", 2, "--blocks 3: at least 8 are needed"},
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
