package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Error is a refusal: the server was reached and answered with a status that says no.
type Error struct {
	// Status is that of HTTP: 409 is an older generation, 401 and 403 are about the token.
	Status int
	// Title is the kind of refusal in words, Detail what was found and what is expected, with the fields that are wrong.
	Title, Detail string
	// Code is stable, for programs; empty where the server gives none.
	Code string
	// RetryAfter is how long the server asks to wait; 0 where it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)))
	switch {
	case e.Detail != "":
		return e.Detail + " (" + status + ")"
	case e.Title != "" && e.Title != http.StatusText(e.Status):
		return e.Title + " (" + status + ")"
	}
	return "the server answered " + status
}

// Unreachable says that no answer came: no server there, a connection that broke, no answer in time, a certificate that
// is not trusted.
type Unreachable struct {
	Server string // its URL
	Err    error
}

func (e *Unreachable) Error() string { return e.Server + ": " + e.Err.Error() }

func (e *Unreachable) Unwrap() error { return e.Err }

// invalid is an answer that cannot be understood. To ask again does not help.
type invalid struct{ problem string }

func (e *invalid) Error() string { return e.problem }

// errSilent is why a try is given up.
var errSilent = errors.New("no answer in time")

// The bounds of what a refusal may say.
const (
	maxProblem = 64 << 10 // bytes that are read of it
	maxDetail  = 2000     // bytes that are kept
	maxFields  = 5
)

// refusal returns what an answer that is no success says.
func (c *Client) refusal(resp *http.Response) *Error {
	e := &Error{
		Status:     resp.StatusCode,
		Title:      http.StatusText(resp.StatusCode),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 {
		e.Detail = "the server redirects"
		if to != "" {
			e.Detail += " to " + c.clean(to, 200) + ": if that is the one, use its URL as server"
		}
		return e
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p struct {
		Type, Title, Detail string
		Errors              []struct {
			Message, Location string
			Value             any
		}
	}
	if err != nil || kind != "application/problem+json" && kind != "application/json" || json.Unmarshal(body, &p) != nil {
		e.Detail = c.clean(fmt.Sprintf("%s does not answer as a Perseus server does", c.Server()), maxDetail)
		if resp.StatusCode >= 500 {
			e.Detail = ""
		}
		return e
	}
	if p.Title != "" {
		e.Title = c.clean(p.Title, 200)
	}
	if code, ok := strings.CutPrefix(p.Type, "urn:perseus:"); ok {
		e.Code = c.clean(code, 100)
	}
	parts := []string{}
	if p.Detail != "" {
		parts = append(parts, p.Detail)
	}
	for i, f := range p.Errors {
		if i == maxFields {
			parts = append(parts, fmt.Sprintf("and %d more", len(p.Errors)-i))
			break
		}
		part := f.Message
		if f.Location != "" {
			part = f.Location + ": " + part
		}
		switch v := f.Value.(type) {
		case string:
			part += ", found " + excerpt.Quoted(v, 100)
		case float64:
			part += ", found " + strconv.FormatFloat(v, 'g', -1, 64)
		}
		parts = append(parts, part)
	}
	e.Detail = c.clean(strings.Join(parts, "; "), maxDetail)
	return e
}

// clean returns text of the server as it can be shown: without the token, without what is not printed and could
// steer a terminal, and not too long.
func (c *Client) clean(text string, most int) string {
	return excerpt.Of(strings.TrimSpace(excerpt.Line(c.redacted.Replace(text))), most)
}

// retryAfter returns how long a Retry-After header asks to wait, in seconds or until a date; 0 where it says nothing.
func retryAfter(header string, now time.Time) time.Duration {
	const longest = 1e6 // seconds: beyond it, durations could overflow
	header = strings.TrimSpace(header)
	if s, err := strconv.ParseFloat(header, 64); err == nil && s > 0 && s < longest {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(header); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// unreachable returns the error of a request that got no answer. The URL, which net/http puts before it, is the base
// alone here.
func (c *Client) unreachable(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the connection was closed")
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && op.Err != nil {
		err = &dialError{op.Err}
	}
	return &Unreachable{Server: c.Server(), Err: err}
}

// dialError says that there was no connection, so that nothing can have been done.
type dialError struct{ err error }

func (e *dialError) Error() string { return strings.TrimPrefix(e.err.Error(), "connect: ") }

func (e *dialError) Unwrap() error { return e.err }

// transient says whether to try again may help. repeat says that doing it twice is the same as doing it once.
func transient(err error, repeat bool) bool {
	var refused *Error
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			return true // not done, by what they mean
		case http.StatusBadGateway, http.StatusGatewayTimeout:
			return repeat
		}
		return false
	}
	var out *Unreachable
	if !errors.As(err, &out) || permanent(err) {
		return false
	}
	var dial *dialError
	return repeat || errors.As(err, &dial)
}

// permanent says whether a connection fails for a reason that stays: certificates, or another protocol.
func permanent(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		unknown      x509.UnknownAuthorityError
		host         x509.HostnameError
		certificate  x509.CertificateInvalidError
		record       tls.RecordHeaderError
		op           *net.OpError
	)
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		return true // how crypto/tls wraps an alert
	}
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &certificate) ||
		errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, context.Canceled)
}
