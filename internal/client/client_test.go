package client

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perseus-energy/perseus/internal/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "prs_0123456789abcdef"

// serve returns a client, with a token and without patience, of a server that answers with handler.
func serve(t testing.TB, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return dial(t, Config{Server: server.URL, Token: secret, Patience: -1})
}

func dial(t testing.TB, config Config) *Client {
	t.Helper()
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// TestCalls makes each call, and looks at what goes over the wire and what is made of the answer.
func TestCalls(t *testing.T) {
	job := api.Job{ID: "a.b-1", State: api.Running, Generation: 2, Spec: api.JobSpec{PP: 4, WorldSize: 4, Microbatches: 8}}
	list := api.JobList{Jobs: []api.Job{job}, Next: "a.b-1"}
	schedules := api.Schedules{Generation: 2, Version: 7, State: api.Running, ReportEvery: 10, Ranks: []api.RankSchedule{{Rank: 1, Mode: api.MaxClock}}}
	rank := 3
	for _, test := range []struct {
		name   string
		call   func(*Client) (any, error)
		line   string // the request
		body   string
		answer any
		want   any
	}{
		{
			"PutJob", func(c *Client) (any, error) { return c.PutJob(t.Context(), job.ID, job.Spec) },
			"PUT /v1/jobs/a.b-1", `{"pp":4,"world_size":4,"microbatches":8}`, job, job,
		},
		{"Job", func(c *Client) (any, error) { return c.Job(t.Context(), job.ID) }, "GET /v1/jobs/a.b-1", "", job, job},
		{"Jobs", func(c *Client) (any, error) { return c.Jobs(t.Context(), "", "", 0) }, "GET /v1/jobs", "", list, list},
		{
			"Jobs with all", func(c *Client) (any, error) { return c.Jobs(t.Context(), api.Running, "a&b", 5) },
			"GET /v1/jobs?after=a%26b&limit=5&state=running", "", list, list,
		},
		{"DeleteJob", func(c *Client) (any, error) { return nil, c.DeleteJob(t.Context(), job.ID) }, "DELETE /v1/jobs/a.b-1", "", nil, nil},
		{
			"RegisterRanks", func(c *Client) (any, error) {
				return c.RegisterRanks(t.Context(), job.ID, api.RankRegistration{Ranks: []api.Rank{{Rank: 1, PP: 1}}})
			},
			"PUT /v1/jobs/a.b-1/ranks", `{"ranks":[{"rank":1,"pp_rank":1}]}`,
			api.RankRegistered{Generation: 1, MissingCount: 3},
			api.RankRegistered{Generation: 1, MissingCount: 3},
		},
		{
			"Schedules", func(c *Client) (any, error) {
				s, changed, err := c.Schedules(t.Context(), job.ID, api.ScheduleQuery{Ranks: []int{0, 1}, Generation: 2, Version: 6, Wait: 1500 * time.Millisecond})
				if !changed {
					t.Error("not changed")
				}
				return s, err
			},
			"GET /v1/jobs/a.b-1/schedules?generation=2&ranks=0%2C1&version=6&wait_s=2", "", schedules, schedules,
		},
		{
			"Schedules of all", func(c *Client) (any, error) {
				s, _, err := c.Schedules(t.Context(), job.ID, api.ScheduleQuery{})
				return s, err
			},
			"GET /v1/jobs/a.b-1/schedules", "", schedules, schedules,
		},
		{
			"Report", func(c *Client) (any, error) {
				return c.Report(t.Context(), job.ID, api.Reports{Generation: 2, Ranks: []api.RankReport{{Rank: 1, Version: 7, Iteration: 5, TimeS: 2.5}}})
			},
			"POST /v1/jobs/a.b-1/reports", `{"generation":2,"ranks":[{"rank":1,"version":7,"iteration":5,"time_s":2.5}]}`,
			api.Accepted{Version: 7},
			api.Accepted{Version: 7},
		},
		{
			"AddStraggler", func(c *Client) (any, error) {
				return c.AddStraggler(t.Context(), job.ID, api.Straggler{Rank: &rank, Slowdown: 1.2})
			},
			"POST /v1/jobs/a.b-1/stragglers", `{"rank":3,"slowdown":1.2}`, job, job,
		},
		{
			"SetGoal", func(c *Client) (any, error) { return c.SetGoal(t.Context(), job.ID, api.Goal{LeastEnergy: true}) },
			"PUT /v1/jobs/a.b-1/goal", `{"least_energy":true}`, job, job,
		},
		{"Pause", func(c *Client) (any, error) { return c.Pause(t.Context(), job.ID) }, "POST /v1/jobs/a.b-1/pause", "", job, job},
		{"Resume", func(c *Client) (any, error) { return c.Resume(t.Context(), job.ID) }, "POST /v1/jobs/a.b-1/resume", "", job, job},
		{"Finish", func(c *Client) (any, error) { return c.Finish(t.Context(), job.ID) }, "POST /v1/jobs/a.b-1/finish", "", job, job},
		{
			"Measure", func(c *Client) (any, error) {
				return c.Measure(t.Context(), job.ID, api.MeasureRequest{Blocks: 8, Iterations: 5})
			},
			"POST /v1/jobs/a.b-1/measure", `{"blocks":8,"iterations":5}`, job, job,
		},
		{
			"PutProfile", func(c *Client) (any, error) {
				return c.PutProfile(t.Context(), job.ID, strings.NewReader("stage\n"), 83.5)
			},
			"PUT /v1/jobs/a.b-1/profile?blocking_power_w=83.5", "stage\n", job, job,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if line := r.Method + " " + r.URL.RequestURI(); line != test.line || string(body) != test.body {
					t.Errorf("%s, body %s; want %s, %s", line, body, test.line, test.body)
				}
				if got := r.Header.Get("Authorization"); got != "Bearer "+secret {
					t.Errorf("token %q", got)
				}
				if kind := r.Header.Get("Content-Type"); (kind != "") != (test.body != "") {
					t.Errorf("a body of type %q", kind)
				}
				if test.answer == nil {
					w.WriteHeader(http.StatusNoContent)
					return
				}
				answerJSON(w, test.answer)
			})
			got, err := test.call(c)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestSchedulesUnchanged has a poll end without news.
func TestSchedulesUnchanged(t *testing.T) {
	for _, answer := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, api.Schedules{Generation: 1, Version: 4}) },
	} {
		s, changed, err := serve(t, answer).Schedules(t.Context(), "a", api.ScheduleQuery{Generation: 1, Version: 4})
		if err != nil || changed || s.Version != 4 || s.Generation != 1 {
			t.Errorf("%+v, changed %v, %v", s, changed, err)
		}
	}
}

// TestFiles downloads a profile and a frontier, and notices what is cut off.
func TestFiles(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "{}")
	_ = z.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/jobs/a/profile":
			_, _ = io.WriteString(w, "stage\n")
		case "/v1/jobs/a/frontier":
			w.Header().Set("Content-Type", "application/gzip")
			_, _ = w.Write(packed.Bytes())
		case "/v1/jobs/cut/profile":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "stage\n")
		}
	})
	var profile, frontier, cut bytes.Buffer
	if err := c.Profile(t.Context(), "a", &profile); err != nil || profile.String() != "stage\n" {
		t.Errorf("profile %q, %v", &profile, err)
	}
	if err := c.Frontier(t.Context(), "a", &frontier); err != nil || !bytes.Equal(frontier.Bytes(), packed.Bytes()) {
		t.Errorf("frontier %q, %v", &frontier, err)
	}
	c = dial(t, Config{Server: c.Server(), Patience: time.Second})
	if err := c.Profile(t.Context(), "cut", &cut); err == nil || cut.String() != "stage\n" {
		t.Errorf("a file that is cut off: %q, %v", &cut, err) // not written twice
	}
}

// TestCompressed has answers in gzip unpacked, and bounded after that.
func TestCompressed(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Error("the client does not ask for gzip")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		if r.URL.Path == "/v1/jobs/bomb" {
			blanks := bytes.Repeat([]byte{' '}, 1<<20)
			for range maxAnswer>>20 + 1 {
				if _, err := z.Write(blanks); err != nil {
					return
				}
			}
		}
		_, _ = io.WriteString(z, `{"id":"a"}`)
	})
	if job, err := c.Job(t.Context(), "a"); err != nil || job.ID != "a" {
		t.Errorf("%+v, %v", job, err)
	}
	if _, err := c.Job(t.Context(), "bomb"); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("a long answer: %v", err)
	}
}

// TestRefusals holds what is made of answers that say no, and that cannot be understood.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   Error // Status 0: another error
		text   string
	}{
		{"problem", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 404, `{"title":"Not Found","status":404,"detail":"job \"a\" is unknown","type":"urn:perseus:unknown-job"}`)
		}, Error{Status: 404, Title: "Not Found", Detail: `job "a" is unknown`, Code: "unknown-job"}, `look at job a: job "a" is unknown (404 Not Found)`},
		{"fields", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 422, `{"detail":"validation failed","errors":[{"message":"expected number >= 1","location":"body.pp","value":-1},{"message":"too odd","value":"x\u001b[2J"}]}`)
		}, Error{Status: 422, Title: "Unprocessable Entity", Detail: `validation failed; body.pp: expected number >= 1, found -1; too odd, found "x\x1b[2J"`}, "body.pp"},
		{"many fields", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 422, `{"errors":[`+strings.Repeat(`{"message":"m"},`, 9)+`{}]}`)
		}, Error{Status: 422, Title: "Unprocessable Entity", Detail: "m; m; m; m; m; and 5 more"}, ""},
		{"the token", func(w http.ResponseWriter, r *http.Request) {
			refuse(w, 401, `{"title":"bad `+r.Header.Get("Authorization")+`","detail":"`+r.Header.Get("Authorization")+`","errors":[{"location":"header","value":"`+r.Header.Get("Authorization")+`"}]}`)
		}, Error{Status: 401, Title: "bad Bearer …", Detail: `Bearer …; header: , found "Bearer …"`}, ""},
		{"a terminal's commands", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 400, `{"type":"about:blank","detail":"a\u001b]0;x\u0007b\nc"}`)
		}, Error{Status: 400, Title: "Bad Request", Detail: "a ]0;x b c"}, ""},
		{"retry", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			refuse(w, 503, `{"detail":"the database is away"}`)
		}, Error{Status: 503, Title: "Service Unavailable", Detail: "the database is away", RetryAfter: 7 * time.Second}, ""},
		{"another server", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "<html>")
		}, Error{Status: 404, Title: "Not Found", Detail: "SERVER does not answer as a Perseus server does"}, ""},
		{"a title alone", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 404, `{"title":"There is no such job"}`)
		}, Error{Status: 404, Title: "There is no such job"}, "look at job a: There is no such job (404 Not Found)"},
		{"a proxy", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(502)
		}, Error{Status: 502, Title: "Bad Gateway"}, "the server answered 502 Bad Gateway"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://perseus.example/", http.StatusMovedPermanently)
		}, Error{Status: 301, Title: "Moved Permanently", Detail: "the server redirects to https://perseus.example/: if that is the one, use its URL as server"}, ""},
		{"a long problem", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, 400, `{"detail":"`+strings.Repeat("x", maxProblem-100)+`"}`)
		}, Error{Status: 400, Title: "Bad Request", Detail: strings.Repeat("x", maxDetail) + "…"}, ""},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":`)
		}, Error{}, "the answer is not what this version expects"},
		{"more after JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{} {}`)
		}, Error{}, "the answer is not what this version expects"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>log in")
		}, Error{}, `of type "text/html", not JSON; is this a Perseus server?`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := serve(t, test.answer)
			test.want.Detail = strings.ReplaceAll(test.want.Detail, "SERVER", c.Server())
			_, err := c.Job(t.Context(), "a")
			var refused *Error
			switch {
			case err == nil || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), secret):
				t.Errorf("%v, want %s", err, test.text)
			case test.want.Status == 0:
				if errors.As(err, &refused) {
					t.Errorf("%+v", refused)
				}
			case !errors.As(err, &refused) || !reflect.DeepEqual(*refused, test.want):
				t.Errorf("%+v, want %+v", refused, test.want)
			}
		})
	}
}

// TestNew holds what is said of configurations that cannot be. None of it holds a secret.
func TestNew(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string // "": fine
	}{
		{Config{Server: "http://127.0.0.1:7787"}, ""},
		{Config{Server: "https://perseus.example/energy/", Token: secret}, ""},
		{Config{Server: "http://[::1]:7787"}, ""},
		{Config{}, "server is empty"},
		{Config{Server: "127.0.0.1:7787"}, "expected a URL"},
		{Config{Server: "localhost:7787"}, "expected a URL as in http://127.0.0.1:7787"},
		{Config{Server: "ftp://a"}, "expected a URL"},
		{Config{Server: "http://"}, "the host is missing"},
		{Config{Server: "http://:7787"}, "the host is missing"},
		{Config{Server: "http://a?token=" + secret}, "has a query"},
		{Config{Server: "http://me:" + secret + "@a"}, "with a user or password"},
		{Config{Server: "http://me:" + secret + "@a:x"}, "no URL"},
		{Config{Server: "http://a", Token: secret + "\nx"}, "token: byte 21 is a blank"},
		{Config{Server: "http://a", Token: strings.Repeat(secret, 500)}, "is this the right file?"},
		{Config{Server: "https://a", CAFile: "nowhere.pem"}, "nowhere.pem: no such file"},
		{Config{Server: "https://a", CAFile: "client.go"}, "no certificate in it"},
		{Config{Server: "https://a", CertFile: "client.go"}, "belong together"},
		{Config{Server: "https://a", CertFile: "client.go", KeyFile: "client.go"}, "client certificate client.go"},
	} {
		c, err := New(test.config)
		switch {
		case test.want == "" && err == nil:
			c.Close()
		case err == nil || test.want == "" || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret):
			t.Errorf("%+v: %v; want %s", test.config, err, test.want)
		}
	}
}

// TestIDs has no id reach the server that could be something else in a path.
func TestIDs(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the server was asked for %s", r.URL) })
	for _, id := range []string{"", "..", "../a", "a/b", "a?b", "a%2f", ".a", "ä", "a b", strings.Repeat("a", 129), "a\n"} {
		_, err := c.Job(t.Context(), id)
		var bad *InvalidID
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v", id, err)
		}
		for _, err := range c.Events(t.Context(), id, 0) {
			if !errors.As(err, &bad) {
				t.Errorf("events of %q: %v", id, err)
			}
		}
	}
	for _, id := range []string{"a", "0", "A.b_c-D", strings.Repeat("a", 128)} {
		if err := checkJob(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestBasePath puts a server below a path, as a proxy does.
func TestBasePath(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/en%20ergy/v1/jobs/a" {
			t.Errorf("path %s", r.URL.EscapedPath())
		}
		answerJSON(w, api.Job{ID: "a"})
	}))
	t.Cleanup(server.Close)
	c := dial(t, Config{Server: server.URL + "/en%20ergy/"})
	if _, err := c.Job(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// TestNoServer says in few words that nobody answers.
func TestNoServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := dial(t, Config{Server: server.URL, Token: secret, Patience: -1})
	_, err := c.Measure(t.Context(), "a", api.MeasureRequest{})
	var out *Unreachable
	if !errors.As(err, &out) || err.Error() != "measure job a: "+server.URL+": connection refused" {
		t.Errorf("%v", err)
	}
	if !transient(err, false) {
		t.Error("a call that never went out is not tried again")
	}
}

// TestRetryAfter reads the header in both its forms.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 12, 3, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, " 0.5 ": 500 * time.Millisecond, "-1": 0, "1e300": 0, "nan": 0, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
