package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// silentStream is after how long without a byte a stream is taken for dead and asked for anew. Servers send a comment
// more often than that; where one does not, nothing is lost either.
const silentStream = time.Minute

// ErrStreamEnded is why a stream is asked for anew that the server closed in order, as it does when it stops.
var ErrStreamEnded = errors.New("the stream ended")

// Events returns the events of a job behind the one with id after, from the first for 0, and then each new one when
// it happens. Where the connection breaks it goes on behind the last event, as Config.Patience allows from the last
// one on; no event comes twice. The last thing yielded is an error: the context's where it ended, or why it cannot go
// on. It has a connection of its own until the loop ends.
func (c *Client) Events(ctx context.Context, job string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		what := "follow job " + job
		if err := checkJob(job); err != nil {
			yield(api.Event{}, err)
			return
		}
		s := &subscription{c: c, job: job, after: after}
		broken := time.Now() // when the stream began to be down
		for n := 0; ; n++ {
			var err error
			for e, failed := range s.connect(ctx) {
				if err = failed; failed != nil {
					break
				}
				n = 0
				if !yield(e, nil) {
					return
				}
			}
			if s.connected {
				broken = time.Now()
			}
			if ended := ctx.Err(); ended != nil {
				yield(api.Event{}, fmt.Errorf("%s: %w", what, ended))
				return
			}
			wait := max(pause(err, n), min(s.retry, longestAsked))
			if !transient(err, true) || !c.patient(broken, 0, wait) {
				yield(api.Event{}, fmt.Errorf("%s: %w", what, err))
				return
			}
			if ended := c.sleep(ctx, err, wait); ended != nil {
				yield(api.Event{}, fmt.Errorf("%s: %w", what, ended))
				return
			}
		}
	}
}

// subscription is what stays from one connection of Events to the next.
type subscription struct {
	c         *Client
	job       string
	after     int64
	retry     time.Duration // the pause that the server asked for
	connected bool          // whether the newest connection brought a stream
}

// connect yields the events of one connection, and last why it ended.
func (s *subscription) connect(ctx context.Context) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s.connected = false
		r := &call{
			method: http.MethodGet, path: []string{"jobs", s.job, "events"}, accept: "text/event-stream",
			query: url.Values{"after": {strconv.FormatInt(s.after, 10)}},
		}
		stopped := false
		r.read = func(resp *http.Response) error {
			if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
				return &invalid{fmt.Sprintf("the answer is of type %q, not a stream of events; is this a Perseus server?", kind)}
			}
			s.connected = true
			in := newStream(resp.Body)
			defer func() { s.retry = in.retry }()
			for {
				m, err := in.next()
				if err != nil {
					if errors.Is(err, errLongEvent) {
						return &invalid{err.Error()}
					}
					return err
				}
				e, news, err := s.event(m)
				if err != nil {
					return err
				}
				if news && !yield(e, nil) {
					stopped = true
					return nil
				}
			}
		}
		if err := s.c.stream(ctx, r); !stopped {
			yield(api.Event{}, err)
		}
	}
}

// event returns the event in a message, and whether it is new: a server may send again what was seen.
func (s *subscription) event(m message) (e api.Event, news bool, err error) {
	if len(m.data) == 0 {
		return e, false, nil // a sign of life
	}
	if err := json.Unmarshal(m.data, &e); err != nil {
		return e, false, &invalid{"an event is not what this version expects: " + err.Error()}
	}
	if id, err := strconv.ParseInt(m.id, 10, 64); err == nil && e.ID == 0 {
		e.ID = id
	}
	if e.ID <= s.after {
		return e, false, nil
	}
	s.after = e.ID
	return e, true, nil
}
