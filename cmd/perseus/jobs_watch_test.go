package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

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
