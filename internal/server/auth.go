package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/internal/zeus"
)

// The scopes of tokens. Operators may do everything, ranks what a job does for itself, readers only look.
const (
	scopeRank     = "rank"
	scopeOperator = "operator"
	scopeReader   = "read-only"
)

// allowed says whether a token's scope covers what a route needs.
func allowed(has, needs string) bool {
	return has == scopeOperator || has == needs || needs == scopeReader && has == scopeRank
}

// open are the routes that need no token anywhere.
func open(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/openapi.json"
}

// needs returns the scope that a request needs: that of its route where it has one, by method otherwise.
func needs(r *http.Request) string {
	rest := r.URL.Path
	if zeus.Serves(rest) {
		return scopeRank
	}
	for _, route := range routes {
		if route.method == r.Method && matches(route.path, rest) {
			return route.scope
		}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return scopeReader
	}
	return scopeOperator
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

// guarded lets requests pass that may: to open routes, on loopback addresses, or with a token of the right scope.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if t, rest, ok := zeus.SplitToken(r.URL.Path); ok {
			given = t
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = rest, ""
		}
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
		scope, err := s.scope(r.Context(), given)
		switch {
		case errors.Is(err, store.ErrUnavailable):
			writeProblem(w, &api.Error{Status: 503, Code: "unavailable", Detail: "the database is not available: try again soon"})
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Bearer realm="perseus"`)
			writeProblem(w, &api.Error{Status: 401, Code: "token", Detail: "no valid token was given: perseus token create makes one, and clients take it from PERSEUS_TOKEN"})
		case !allowed(scope, needs(r)):
			writeProblem(w, &api.Error{Status: 403, Code: "scope", Detail: "the token's scope is " + scope + "; this needs " + needs(r)})
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

// scope returns the scope of a token.
func (s *Server) scope(ctx context.Context, text string) (string, error) {
	if text == "" || len(text) > 200 {
		return "", errNoToken
	}
	sum := sha256.Sum256([]byte(text))
	var t store.Token
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		t, err = tx.TokenByHash(sum[:])
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", errNoToken
	case err != nil:
		return "", err
	case subtle.ConstantTimeCompare(t.Hash, sum[:]) != 1, !t.ExpiresAt.IsZero() && time.Now().After(t.ExpiresAt):
		return "", errNoToken
	}
	return t.Scope, nil
}
