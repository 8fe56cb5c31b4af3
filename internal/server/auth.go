package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/internal/token"
	"github.com/perseus-energy/perseus/internal/zeus"
)

// Who a route is for. Operators may do everything.
var (
	forReaders = []token.Scope{token.ReadOnly}
	forRanks   = []token.Scope{token.Rank}
	forBoth    = []token.Scope{token.Rank, token.ReadOnly}
	forPeople  = []token.Scope{token.Operator}
)

// open are the routes that need no token anywhere.
func open(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/openapi.json"
}

// needs returns the scopes of which a request needs one: those of its route where it has some, by method otherwise.
func needs(r *http.Request) []token.Scope {
	rest := r.URL.Path
	if zeus.Serves(rest) {
		return forRanks
	}
	for _, route := range routes {
		if route.method == r.Method && matches(route.path, rest) {
			return route.scopes
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return forReaders
	}
	return forPeople
}

// matches says whether a path is of a pattern in which {job} stands for one segment.
func matches(pattern, path string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] && !strings.HasPrefix(p[i], "{") {
			return false
		}
	}
	return true
}

// headed moves the token in the path of a Zeus client to the header, before anything looks at the path and tells of it.
func headed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t, rest, ok := zeus.SplitToken(r.URL.Path); ok {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+t)
			r.URL.Path, r.URL.RawPath = rest, ""
			r.RequestURI = r.URL.RequestURI()
		}
		next.ServeHTTP(w, r)
	})
}

// guarded lets requests pass that may: to open routes, on loopback addresses, or with a token of the right scope.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := token.FromHeader(r.Header.Get("Authorization"))
		if open(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if given == "" && !s.config.RequireToken && loopback(local) {
			if !loopbackName(r.Host) {
				writeProblem(w, &api.Error{Status: 403, Code: "token", Detail: "without a token this address answers to localhost and loopback addresses only, not to the host name that was asked for"})
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		scopes, err := s.scopes(r.Context(), given)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			writeProblem(w, unavailable(err))
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Bearer realm="perseus"`)
			writeProblem(w, &api.Error{Status: 401, Code: "token", Detail: "no valid token was given: perseus token create makes one, and clients take it from PERSEUS_TOKEN"})
		case !token.Allows(scopes, needs(r)...):
			writeProblem(w, &api.Error{Status: 403, Code: "scope", Detail: fmt.Sprintf("the token's scope is %s; this needs %s", token.FormatScopes(scopes), token.FormatScopes(needs(r)))})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// loopbackName says whether a Host header names this machine itself: a page elsewhere that points its own name at
// 127.0.0.1 does not get in.
func loopbackName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}

var errNoToken = errors.New("no valid token")

// scopes returns what a token may do.
func (s *Server) scopes(ctx context.Context, text string) ([]token.Scope, error) {
	if !token.WellFormed(text) {
		return nil, errNoToken
	}
	var t store.Token
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		t, err = tx.TokenByHash(token.Hash(text))
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errNoToken
	case err != nil:
		return nil, err
	case !token.Matches(text, t.Hash), !t.ExpiresAt.IsZero() && time.Now().After(t.ExpiresAt):
		return nil, errNoToken
	}
	return token.ParseScopes(t.Scope)
}
