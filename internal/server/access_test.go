package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/internal/token"
)

// ask sends a request as if it came to an address.
func ask(h http.Handler, method, path, bearer, local string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(local), Port: 1})))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func tokenOf(t *testing.T, s *Server, scopes string, expires time.Time) string {
	t.Helper()
	text, err := token.New(newRandom(scopes + expires.String()))
	if err != nil {
		t.Fatal(err)
	}
	err = s.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutToken(store.Token{ID: text, Name: text, Scope: scopes, Hash: token.Hash(text), CreatedAt: time.Now(), ExpiresAt: expires})
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type fixed string

func newRandom(seed string) *fixed { f := fixed(seed); return &f }

func (f *fixed) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = (*f)[i%len(*f)] + byte(i)
	}
	return len(b), nil
}

// TestEveryRouteNeedsItsToken asks each route that there is, described or not, beyond this machine: without a token,
// with a wrong one, and with each scope.
func TestEveryRouteNeedsItsToken(t *testing.T) {
	s, _ := start(t, file(t), nil)
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	if err := json.Unmarshal(ask(h, "GET", "/openapi.json", "", "192.0.2.1").Body.Bytes(), &described); err != nil {
		t.Fatal(err)
	}
	if described.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %q", described.OpenAPI)
	}
	all := []route{
		{"GET", "/metrics", forReaders},
		{"GET", "/docs", forReaders},
		{"POST", "/register_job", forRanks},
		{"POST", "/register_rank/j", forRanks},
		{"GET", "/schedule/j", forRanks},
		{"POST", "/result/j", forRanks},
		{"GET", "/nothing", forReaders},
		{"PATCH", "/v1/jobs", forPeople},
	}
	for path, methods := range described.Paths {
		for method := range methods {
			i := slices.IndexFunc(routes, func(r route) bool { return r.path == path && r.method == strings.ToUpper(method) })
			if i < 0 {
				t.Errorf("%s %s has no scopes", strings.ToUpper(method), path)
				continue
			}
			all = append(all, routes[i])
		}
	}
	if len(all) != len(routes)+8 {
		t.Errorf("%d routes are described, %d have scopes", len(all)-8, len(routes))
	}
	tokens := map[token.Scope]string{}
	for _, scope := range token.All() {
		tokens[scope] = tokenOf(t, s, string(scope), time.Time{})
	}
	old := tokenOf(t, s, "operator", time.Now().Add(-time.Second))
	for _, r := range all {
		path := strings.ReplaceAll(r.path, "{job}", "none")
		for _, bearer := range []string{"", "wrong", strings.Repeat("x", 5000), old} {
			if w := ask(h, r.method, path, bearer, "192.0.2.1"); w.Code != 401 {
				t.Errorf("%s %s with token %.10q: %d", r.method, r.path, bearer, w.Code)
			}
		}
		for scope, bearer := range tokens {
			if strings.HasSuffix(r.path, "/events") && token.Allows([]token.Scope{scope}, r.scopes...) {
				continue
			}
			w := ask(h, r.method, path, bearer, "192.0.2.1")
			if refused := w.Code == 403; refused == token.Allows([]token.Scope{scope}, r.scopes...) || w.Code == 401 {
				t.Errorf("%s %s with scope %s: %d", r.method, r.path, scope, w.Code)
			}
		}
		if strings.HasPrefix(r.path, "/register") || strings.HasPrefix(r.path, "/schedule/") {
			if w := ask(h, r.method, "/zeus/"+tokens[token.Rank]+path, "", "192.0.2.1"); w.Code == 401 || w.Code == 403 {
				t.Errorf("%s %s with the token in its path: %d", r.method, r.path, w.Code)
			}
			if w := ask(h, r.method, "/zeus/nonsense"+path, "", "192.0.2.1"); w.Code != 401 {
				t.Errorf("%s %s with nonsense in its path: %d", r.method, r.path, w.Code)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json"} {
		if w := ask(h, "GET", path, "", "192.0.2.1"); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := ask(h, "GET", "/v1/jobs", "", "127.0.0.1"); w.Code != 200 {
		t.Errorf("on a loopback address: %d", w.Code)
	}
	if w := ask(h, "GET", "/v1/jobs", "", "::1"); w.Code != 200 {
		t.Errorf("on a loopback address: %d", w.Code)
	}
	s.config.RequireToken = true
	if w := ask(h, "GET", "/v1/jobs", "", "127.0.0.1"); w.Code != 401 {
		t.Errorf("on a loopback address that requires a token: %d", w.Code)
	}
}

// TestForeignNames shows that a web page cannot use a browser to get at a server without tokens.
func TestForeignNames(t *testing.T) {
	s, _ := start(t, file(t), nil)
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP("127.0.0.1")})))
	r.Host = "evil.example"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 403 {
		t.Errorf("another host's name: %d", w.Code)
	}
	r = httptest.NewRequest("POST", "/v1/jobs/a/pause", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP("127.0.0.1")})))
	r.Host = "localhost"
	r.Header.Set("Origin", "https://evil.example")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 403 {
		t.Errorf("another page's request: %d", w.Code)
	}
}

// TestTerse: no refusal repeats a request, whatever is wrong with it.
func TestTerse(t *testing.T) {
	s, _ := start(t, file(t), nil)
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	many := `{"pp":1`
	for i := range 20000 {
		many += fmt.Sprintf(`,"a%d":{}`, i)
	}
	for what, body := range map[string]string{
		"a long value":      `{"schedule":7,"pp":"` + long + `"}`,
		"a long key":        `{"` + long + `":1}`,
		"a long number":     `{"pp":` + strings.Repeat("9", 1<<20) + `}`,
		"no JSON":           strings.Repeat("{", 1<<20),
		"no UTF-8":          strings.Repeat("\xff", 1<<20),
		"many unknown keys": many + "}",
		"an object":         `{"pp":{"a":"` + long + `"}}`,
		"a list":            `["` + long + `"]`,
	} {
		r := httptest.NewRequest("PUT", "/v1/jobs/a", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Host = "localhost"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code < 400 || w.Code >= 500 || w.Body.Len() > 8<<10 {
			t.Errorf("%s: %d in %d bytes: %.300s", what, w.Code, w.Body.Len(), w.Body)
		}
		if !strings.Contains(w.Body.String(), `"type":"urn:perseus:`) {
			t.Errorf("%s: %.300s", what, w.Body)
		}
	}
}
