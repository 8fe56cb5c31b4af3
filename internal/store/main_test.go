package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perseus-energy/perseus/internal/store/pgtest"
)

// postgres is the server that the tests of this package share, each with a database of its own.
var postgres = sync.OnceValues(pgtest.Launch)

// workerEnv makes the test's binary a process that begins the work of a database and never ends it.
const workerEnv = "STORE_TEST_WORKER"

func TestMain(m *testing.M) {
	if database := os.Getenv(workerEnv); database != "" {
		workForever(database)
		return
	}
	code := m.Run()
	if s, err := postgres(); err == nil {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func workForever(database string) {
	s, err := Open(context.Background(), database, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = s.Work(context.Background(), workers{"sum": func(context.Context, string, []byte) error {
		fmt.Println("working")
		select {}
	}}, 1)
}

// startWorker returns when another process does the first work of the database.
func startWorker(t *testing.T, database string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+database)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "working\n" {
		t.Errorf("the other process said %q, %v", line, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

type workers = map[string]func(context.Context, string, []byte) error

// databases are the names of a new SQLite file and a new PostgreSQL database.
var databases = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "perseus ?#%.db") },
	"postgres": func(t *testing.T) string {
		s, err := postgres()
		pgtest.Require(t, err)
		url, err := s.Database(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return url
	},
}

// each runs a test of the contract on both.
func each(t *testing.T, test func(t *testing.T, database string)) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) { test(t, database(t)) })
	}
}

func open(t *testing.T, database string) *Store {
	t.Helper()
	s, err := Open(t.Context(), database, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func update(t *testing.T, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// begin runs Work until the test ends, or stop is called.
func begin(t *testing.T, s *Store, w workers) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Work(ctx, w, 2) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Work: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// receive fails the test if nothing comes for a minute.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("waited a minute for %s", what)
		panic("unreachable")
	}
}

var errTest = errors.New("test")
