package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// script answers the n-th request, from 0, in fake time.
type script func(n int, r *http.Request) (*http.Response, error)

type played struct {
	script
	n int
}

func (p *played) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	p.n++
	return p.script(p.n-1, r)
}

func reply(status int, header http.Header, body string) (*http.Response, error) {
	if header == nil {
		header = http.Header{}
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// inFakeTime runs f with a client of a scripted server in a bubble of its own.
func inFakeTime(t *testing.T, config Config, s script, f func(t *testing.T, c *Client, p *played)) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{script: s}
		config.Server, config.Transport = "http://perseus.example", p
		f(t, dial(t, config), p)
	})
}

var (
	errRefused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Err: syscall.ECONNRESET}
)

// TestRetries says for each failure whether a call is tried again: one that may be done twice, and one that may not.
func TestRetries(t *testing.T) {
	busy := func(status int, after string) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) {
			return reply(status, http.Header{"Retry-After": {after}}, "")
		}
	}
	fails := func(err error) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	for _, test := range []struct {
		name          string
		failure       func(*http.Request) (*http.Response, error)
		twice, once   bool          // whether calls of both kinds are tried again
		least, atMost time.Duration // the time until the second try
	}{
		{"refused", fails(errRefused), true, true, 50 * time.Millisecond, 100 * time.Millisecond},
		{"broken", fails(errReset), true, false, 50 * time.Millisecond, 100 * time.Millisecond},
		{"closed", fails(io.EOF), true, false, 50 * time.Millisecond, 100 * time.Millisecond},
		{"silent", silent, true, false, 30*time.Second + 50*time.Millisecond, 30*time.Second + 100*time.Millisecond},
		{"busy", busy(503, ""), true, true, 50 * time.Millisecond, 100 * time.Millisecond},
		{"busy for long", busy(503, "8"), true, true, 8 * time.Second, 10 * time.Second},
		{"busy for ever", busy(503, "86400"), true, true, time.Minute, 75 * time.Second},
		{"too many", busy(429, "1"), true, true, time.Second, 1250 * time.Millisecond},
		{"a proxy without its server", busy(502, ""), true, false, 50 * time.Millisecond, 100 * time.Millisecond},
		{"a proxy that waits no longer", busy(504, ""), true, false, 50 * time.Millisecond, 100 * time.Millisecond},
		{"a fault", busy(500, ""), false, false, 0, 0},
		{"older generation", busy(409, ""), false, false, 0, 0},
		{"another protocol", fails(http.ErrSchemeMismatch), false, false, 0, 0},
	} {
		for kind, call := range map[string]func(context.Context, *Client) error{
			"twice": func(ctx context.Context, c *Client) error {
				_, err := c.Report(ctx, "a", api.Reports{})
				return err
			},
			"once": func(ctx context.Context, c *Client) error {
				_, err := c.Measure(ctx, "a", api.MeasureRequest{})
				return err
			},
		} {
			t.Run(test.name+" "+kind, func(t *testing.T) {
				told := 0
				config := Config{OnRetry: func(error, time.Duration) { told++ }}
				inFakeTime(t, config, func(n int, r *http.Request) (*http.Response, error) {
					if n == 0 {
						return test.failure(r)
					}
					return reply(200, nil, "{}")
				}, func(t *testing.T, c *Client, p *played) {
					began := time.Now()
					err := call(t.Context(), c)
					took := time.Since(began)
					again := test.twice
					if kind == "once" {
						again = test.once
					}
					switch {
					case !again && (err == nil || p.n != 1 || told != 0):
						t.Errorf("%d tries, %v", p.n, err)
					case again && (err != nil || p.n != 2 || told != 1 || took < test.least || took > test.atMost):
						t.Errorf("%d tries, told of %d, after %v: %v", p.n, told, took, err)
					}
				})
			})
		}
	}
}

// TestPatience has calls given up when their time is over, and pauses grow until then.
func TestPatience(t *testing.T) {
	down := func(int, *http.Request) (*http.Response, error) { return nil, errRefused }
	inFakeTime(t, Config{Patience: time.Minute}, down, func(t *testing.T, c *Client, p *played) {
		began := time.Now()
		_, err := c.Job(t.Context(), "a")
		var out *Unreachable
		if took := time.Since(began); !errors.As(err, &out) || took < 57*time.Second || took > time.Minute || p.n < 30 || p.n > 70 {
			t.Errorf("%d tries in %v: %v", p.n, took, err)
		}
	})
	inFakeTime(t, Config{}, down, func(t *testing.T, c *Client, p *played) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := c.Job(ctx, "a")
		var out *Unreachable
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &out) || p.n < 1800 || p.n > 4000 {
			t.Errorf("%d tries: %v", p.n, err)
		}
	})
	inFakeTime(t, Config{}, func(_ int, r *http.Request) (*http.Response, error) { return silent(r) }, func(t *testing.T, c *Client, _ *played) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Job(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// TestLongPoll has a poll outlive the timeout and a restart of the server, and end when it should.
func TestLongPoll(t *testing.T) {
	var waits []string
	inFakeTime(t, Config{Timeout: 10 * time.Second, Patience: time.Second}, func(n int, r *http.Request) (*http.Response, error) {
		waits = append(waits, r.URL.Query().Get("wait_s"))
		switch n {
		case 0: // the server holds it back for a while, and dies
			time.Sleep(25 * time.Second)
			return nil, errReset
		case 1:
			return nil, errRefused
		default: // nothing happens for as long as it may
			time.Sleep(34900 * time.Millisecond)
			return reply(200, nil, `{"version":3}`)
		}
	}, func(t *testing.T, c *Client, p *played) {
		s, changed, err := c.Schedules(t.Context(), "a", api.ScheduleQuery{Version: 3, Wait: time.Minute})
		if err != nil || changed || s.Version != 3 || p.n != 3 || strings.Join(waits, " ") != "60 35 35" {
			t.Errorf("%+v, %v, %d tries, waits %v: %v", s, changed, p.n, waits, err)
		}
	})
	inFakeTime(t, Config{Timeout: 10 * time.Second, Patience: -1}, func(_ int, r *http.Request) (*http.Response, error) {
		return silent(r)
	}, func(t *testing.T, c *Client, _ *played) {
		began := time.Now()
		_, _, err := c.Schedules(t.Context(), "a", api.ScheduleQuery{Wait: time.Minute})
		if took := time.Since(began); took != 70*time.Second || err == nil || !strings.Contains(err.Error(), "no answer within 1m10s") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestStall has an answer that stops halfway given up.
func TestStall(t *testing.T) {
	inFakeTime(t, Config{}, func(n int, r *http.Request) (*http.Response, error) {
		body, w := io.Pipe()
		go func() {
			_, _ = io.WriteString(w, `{"id":`)
			if n == 0 {
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
				return
			}
			time.Sleep(29 * time.Second)
			_, _ = io.WriteString(w, `"a"`)
			time.Sleep(29 * time.Second)
			_, _ = io.WriteString(w, `}`)
			_ = w.Close()
		}()
		resp, err := reply(200, nil, "")
		resp.Body = body
		return resp, err
	}, func(t *testing.T, c *Client, p *played) {
		job, err := c.Job(t.Context(), "a")
		if err != nil || job.ID != "a" || p.n != 2 {
			t.Errorf("%d tries, %+v, %v", p.n, job, err)
		}
	})
}
