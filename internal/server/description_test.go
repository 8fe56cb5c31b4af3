package server

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestDescription has Schemathesis make requests from the API's own description, right and wrong ones, to a running
// server: no answer may be a 500, or one that the description does not have. The path of the program is in
// PERSEUS_SCHEMATHESIS; without it the test is skipped, or fails if the environment has CI=true.
func TestDescription(t *testing.T) {
	program := os.Getenv("PERSEUS_SCHEMATHESIS")
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PERSEUS_SCHEMATHESIS is not set: .ci/run installs schemathesis and sets it")
		}
		t.Skip("PERSEUS_SCHEMATHESIS is not set: python3 -m venv V; V/bin/pip install schemathesis; PERSEUS_SCHEMATHESIS=V/bin/schemathesis")
	}
	s, err := New(t.Context(), Config{Database: file(t), LongestWait: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, nil) }()
	cmd := exec.CommandContext(t.Context(), program, "run", "http://"+l.Addr().String()+"/openapi.json",
		"--seed", "1", "--max-examples", "20", "--generation-database", "none", "--request-timeout", "10",
		"--exclude-path-regex", "/events$", // it has no end
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance")
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
