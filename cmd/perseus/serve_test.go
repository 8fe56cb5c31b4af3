package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestServe serves until it is interrupted, and sends traces to a collector: they name routes, and no token.
func TestServe(t *testing.T) {
	var mu sync.Mutex
	var traces bytes.Buffer
	var paths []string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path)
		_, _ = io.Copy(&traces, r.Body)
	}))
	defer collector.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	serving := make(chan string, 1)
	logged := regexp.MustCompile(`msg=serving url=(\S+)`)
	var stderr bytes.Buffer
	log := writerFunc(func(b []byte) (int, error) {
		if m := logged.FindSubmatch(b); m != nil {
			serving <- string(m[1])
		}
		return stderr.Write(b)
	})
	ended := make(chan int, 1)
	database := filepath.Join(t.TempDir(), "p.db")
	go func() {
		ended <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--database", database, "--otlp-endpoint", collector.URL}, nil, io.Discard, log)
	}()
	var url string
	select {
	case url = <-serving:
	case status := <-ended:
		t.Fatalf("status %d: %s", status, &stderr)
	}
	for path, want := range map[string]int{
		"/readyz": 200, "/v1/jobs/nothing": 404, "/zeus/perseus_SECRET/schedule/nothing": 401, "/zeus/perseus_SECRET": 401, "/zeus//perseus_SECRET/x": 401,
	} {
		resp, err := http.Get(url + path) //nolint:gosec,noctx // the server above
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, resp.Status, want)
		}
	}
	interrupt()
	if status := <-ended; status != statusDone {
		t.Errorf("status %d: %s", status, &stderr)
	}
	text := traces.String()
	if !strings.Contains(text, "GET /v1/jobs/{job}") || strings.Contains(text+stderr.String(), "SECRET") {
		t.Errorf("traces %q, log %s", text, &stderr)
	}
	if len(paths) == 0 || paths[0] != "/v1/traces" {
		t.Errorf("the collector was asked for %v", paths)
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--rank-deadline 0", "--rank-deadline 0s: at least 1s is needed"},
		{"--otlp-endpoint localhost:4318", `--otlp-endpoint "localhost:4318": expected a URL such as http://localhost:4318`},
		{"--tls-cert /dev/null", "--tls-cert and --tls-key belong together"},
		{"--database /nowhere/p.db", `database "/nowhere/p.db": its folder does not exist`},
		{"--listen 127.0.0.1:99999", "--listen 127.0.0.1:99999"},
	} {
		r := perseus(t, "", append([]string{"serve", "--listen", "127.0.0.1:0"}, strings.Fields(c.args)...)...)
		if r.status == statusDone || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: status %d, %s", c.args, r.status, r.stderr)
		}
	}
}
