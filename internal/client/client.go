// Package client calls the control plane over HTTP: it says what jobs, agents and operators have to tell the server, in
// the messages of internal/api, and hands back what the server answers.
//
// A server that restarts, or that is busy, is not an error at once: calls are tried again, with growing and jittered
// pauses, for as long as their context and Config.Patience allow. What the server refuses is an *Error, a server that
// cannot be reached an *Unreachable. Neither holds the token. Answers are bounded, so that no server can take all memory.
//
// It comes after internal/api and before the agent, the demo and the commands. It decides nothing and keeps no state
// but connections.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Config says which server to call, and how.
type Config struct {
	// Server is its URL, as in http://127.0.0.1:7787 or https://perseus.example/energy. It holds no user or token.
	Server string
	// Token is sent as Bearer token; empty: none.
	Token string

	// CAFile names a PEM file with the certificates of the authorities to trust, instead of the system's.
	CAFile string
	// CertFile and KeyFile name the PEM files of a client certificate; both or none. They are read anew for each
	// connection, so a renewed certificate is taken up.
	CertFile, KeyFile string

	// Timeout is how long the server may be silent; 0: 30 s. A long-poll's wait comes on top.
	Timeout time.Duration
	// Patience is for how long a call is tried again; 0: until its context ends; negative: it is tried once.
	Patience time.Duration
	// OnRetry, if not nil, is told of each failure that is tried again, and of the pause before. It is called on the
	// caller's goroutine, also in the middle of Events.
	OnRetry func(err error, pause time.Duration)
	// Connections is how many are kept open while idle; 0: 16. One who makes more calls at a time connects anew for some.
	Connections int
	// UserAgent names the program that calls; empty: perseus.
	UserAgent string
	// Transport replaces how requests are sent; for tests. The files and connections above do not hold for it.
	Transport http.RoundTripper
}

// Client calls one server. All methods may be called at the same time. Close gives back its connections.
type Client struct {
	base     *url.URL
	config   Config
	http     *http.Client
	redacted *strings.Replacer // takes the token out of texts
}

const defaultTimeout = 30 * time.Second

// New returns a client. It does not connect. Errors name what is wrong with the configuration, never the token.
func New(c Config) (*Client, error) {
	base, err := parseServer(c.Server)
	if err != nil {
		return nil, err
	}
	if err := checkToken(c.Token); err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = "perseus"
	}
	if c.Connections <= 0 {
		c.Connections = 16
	}
	if c.Transport == nil {
		t, err := transport(c)
		if err != nil {
			return nil, err
		}
		c.Transport = t
	}
	cl := &Client{base: base, config: c, redacted: strings.NewReplacer()}
	if c.Token != "" {
		cl.redacted = strings.NewReplacer(c.Token, "…")
	}
	// A redirect would turn a PUT into a GET, or take the token elsewhere: it is shown instead.
	cl.http = &http.Client{
		Transport:     c.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return cl, nil
}

// Server returns the server's URL, without a slash at the end.
func (c *Client) Server() string { return c.base.String() }

// Close closes idle connections. Calls under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func parseServer(server string) (*url.URL, error) {
	const expected = "expected a URL as in http://127.0.0.1:7787"
	if server == "" {
		return nil, errors.New("server is empty: " + expected)
	}
	u, err := url.Parse(server)
	switch {
	case err != nil:
		// What url.Parse says holds the whole URL, and so a password in it.
		return nil, fmt.Errorf("server: no URL; %s", expected)
	case u.User != nil:
		return nil, errors.New("server: a URL with a user or password; a token is given on its own")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("server %s: %s", excerpt.Quoted(server, 100), expected)
	case u.Hostname() == "":
		return nil, fmt.Errorf("server %s: the host is missing; %s", excerpt.Quoted(server, 100), expected)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("server %s: has a query; %s", excerpt.Quoted(u.Host, 100), expected)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// checkToken returns an error where the token cannot stand in a header: one with a line break is most often the wrong
// file.
func checkToken(token string) error {
	const longest = 4096
	if len(token) > longest {
		return fmt.Errorf("token: %d bytes long, which none is; is this the right file?", len(token))
	}
	for i, b := range []byte(token) {
		if b <= ' ' || b >= 0x7f {
			return fmt.Errorf("token: byte %d is a blank or no printable ASCII; a token is one word", i+1)
		}
	}
	return nil
}

var idPattern = regexp.MustCompile(api.JobIDPattern)

// checkJob returns an error where id cannot be the id of a job. All calls check it.
func checkJob(id string) error {
	if idPattern.MatchString(id) {
		return nil
	}
	return &InvalidID{ID: id}
}

// InvalidID says that a text cannot be the id of a job.
type InvalidID struct{ ID string }

func (e *InvalidID) Error() string {
	return fmt.Sprintf("job %s: expected at most 128 letters, digits, dots, dashes and underscores, a letter or digit first", excerpt.Quoted(e.ID, 100))
}
