package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bounds of answers, uncompressed.
const (
	maxAnswer = 64 << 20 // of a message
	maxFile   = 1 << 30  // of a profile or frontier, as much as commands read of one
)

// The pauses between two tries.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	longestAsked = time.Minute      // that a server's Retry-After is followed
	longestWait  = 10 * time.Minute // that a server holds an answer back
)

// call is one request.
type call struct {
	what        string // for errors, as in "pause job a"
	method      string
	path        []string // below /v1, unescaped
	query       url.Values
	body        []byte
	contentType string
	accept      string
	// repeat says that doing it twice is the same as doing it once.
	repeat bool
	// wait is how long the server may hold the answer back on purpose. What is left of it is asked for as wait_s.
	wait time.Duration
	// read takes the answer. Its errors are final unless they are *Unreachable.
	read func(*http.Response) error
	// unchanged says that 304 is an answer too.
	unchanged bool
}

// do makes a call, again where that may help, until the context ends.
func (c *Client) do(ctx context.Context, r *call) error {
	began := time.Now()
	for n := 0; ; n++ {
		left := max(r.wait-time.Since(began), 0)
		err := c.try(ctx, r, left)
		if err == nil {
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return fmt.Errorf("%s: %w", r.what, ended)
		}
		wait := pause(err, n)
		if !transient(err, r.repeat) || !c.patient(began, r.wait, wait) {
			return fmt.Errorf("%s: %w", r.what, err)
		}
		if ended := c.sleep(ctx, err, wait); ended != nil {
			return fmt.Errorf("%s: %w; before that: %w", r.what, ended, err)
		}
	}
}

// patient says whether another try is allowed after a pause. The time that a long-poll waits on purpose does not count.
func (c *Client) patient(began time.Time, purpose, wait time.Duration) bool {
	switch p := c.config.Patience; {
	case p == 0:
		return true
	case p < 0:
		return false
	default:
		return time.Since(began)+wait <= p+purpose
	}
}

// pause returns how long to wait before try n+1, counted from 0: what the server asks for and a little more, else a
// time that doubles from try to try; half of it is drawn, so that many clients do not come back at once.
func pause(err error, n int) time.Duration {
	var refused *Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		d := min(refused.RetryAfter, longestAsked)
		return d + rand.N(d/4+1)
	}
	d := longestPause
	if n < 5 { // beyond, it would be longer anyway
		d = min(firstPause<<n, longestPause)
	}
	return d/2 + rand.N(d/2+1)
}

// sleep waits, and returns the context's error where it ends first.
func (c *Client) sleep(ctx context.Context, why error, d time.Duration) error {
	if c.config.OnRetry != nil {
		c.config.OnRetry(why, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// try makes a call once. wait is how long the server may hold the answer back.
func (c *Client) try(ctx context.Context, r *call, wait time.Duration) error {
	return c.send(ctx, r, wait, c.config.Timeout)
}

// stream makes a call once whose answer goes on until one side ends it.
func (c *Client) stream(ctx context.Context, r *call) error {
	err := c.send(ctx, r, 0, max(silentStream, c.config.Timeout))
	if errors.Is(err, io.EOF) {
		return &Unreachable{Server: c.Server(), Err: ErrStreamEnded}
	}
	return err
}

// send sends a request and reads the answer, which may be silent for as long as silence says.
func (c *Client) send(ctx context.Context, r *call, wait, silence time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := c.config.Timeout + wait // of silence, until the answer begins
	watch := time.AfterFunc(first, func() { cancel(errSilent) })
	defer watch.Stop()

	req, err := c.request(ctx, r, wait)
	if err != nil {
		return err
	}
	if r.body != nil {
		body := func() io.ReadCloser {
			return io.NopCloser(&progress{bytes.NewReader(r.body), func() { watch.Reset(first) }})
		}
		req.Body, req.GetBody, req.ContentLength = body(), func() (io.ReadCloser, error) { return body(), nil }, int64(len(r.body))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = fmt.Errorf("no answer within %v", first)
		}
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	watch.Reset(silence)
	resp.Body = &answer{c: c, ctx: ctx, body: resp.Body, alive: func() { watch.Reset(silence) }}
	if resp.StatusCode/100 != 2 && !(r.unchanged && resp.StatusCode == http.StatusNotModified) {
		return c.refusal(resp)
	}
	return r.read(resp)
}

// request returns the request of a call, without its body.
func (c *Client) request(ctx context.Context, r *call, wait time.Duration) (*http.Request, error) {
	u := *c.base
	escaped := make([]string, len(r.path))
	for i, p := range r.path {
		escaped[i] = url.PathEscape(p)
	}
	u.Path += "/v1/" + strings.Join(r.path, "/")
	u.RawPath = c.base.EscapedPath() + "/v1/" + strings.Join(escaped, "/")
	query := url.Values{}
	for k, v := range r.query {
		query[k] = v
	}
	if r.wait > 0 {
		// In whole seconds, up, so that a short wait is not none.
		query.Set("wait_s", fmt.Sprint(int64((min(wait, longestWait)+time.Second-1)/time.Second)))
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), nil)
	if err != nil {
		return nil, &invalid{"the request cannot be made"} // its text could hold what is secret
	}
	req.Header.Set("User-Agent", c.config.UserAgent)
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	accept := r.accept
	if accept == "" {
		accept = "application/json"
	}
	req.Header.Set("Accept", accept+", application/problem+json")
	if accept == "text/event-stream" || accept == "application/gzip" {
		// What compresses on the way would hold events back, and do work twice.
		req.Header.Set("Accept-Encoding", "identity")
	}
	return req, nil
}

// progress tells of each read.
type progress struct {
	io.Reader
	alive func()
}

func (p *progress) Read(b []byte) (int, error) {
	p.alive()
	return p.Reader.Read(b)
}

// answer is the body of an answer, whose errors are those of the connection.
type answer struct {
	c     *Client
	ctx   context.Context
	body  io.ReadCloser
	alive func()
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.body.Read(b)
	a.alive()
	if err != nil && err != io.EOF {
		if errors.Is(context.Cause(a.ctx), errSilent) {
			err = errors.New("the answer stopped halfway")
		}
		err = a.c.unreachable(err)
	}
	return n, err
}

func (a *answer) Close() error { return a.body.Close() }

// into returns a reader of an answer in JSON.
func into(v any) func(*http.Response) error {
	return func(resp *http.Response) error {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind != "application/json" {
			return &invalid{fmt.Sprintf("the answer is of type %q, not JSON; is this a Perseus server?", kind)}
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		switch {
		case err != nil:
			return err
		case len(text) > maxAnswer:
			return &invalid{fmt.Sprintf("the answer is longer than %d MiB", maxAnswer>>20)}
		}
		if err := json.Unmarshal(text, v); err != nil {
			return &invalid{"the answer is not what this version expects: " + err.Error()}
		}
		return nil
	}
}

// ignored reads an answer that says nothing more.
func ignored(resp *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxProblem)) // so that the connection can be used again
	return err
}
