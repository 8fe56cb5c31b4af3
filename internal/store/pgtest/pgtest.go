// Package pgtest starts a real PostgreSQL server for tests, from the binaries that are installed, and stops it when they end.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startWithin bounds the wait for a server that does not come up.
const startWithin = time.Minute

// ErrNotInstalled says that this machine has no PostgreSQL server.
var ErrNotInstalled = errors.New("no PostgreSQL server found in PATH or /usr/lib/postgresql/*/bin; install the package postgresql")

// A Server is a PostgreSQL server with a data directory of its own, reached by a Unix socket within.
type Server struct {
	URL string // of its first database

	dir, bin string
	cred     *syscall.Credential
	cmd      *exec.Cmd
	ended    chan error
	made     atomic.Int64
}

// Start starts a server for a test and returns the URL of its empty database. Without PostgreSQL the test is skipped, or fails if the
// environment has CI=true.
func Start(t testing.TB) (url string) {
	t.Helper()
	return New(t).URL
}

// New is Start for tests that stop and start the server, or need more databases.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Launch()
	Require(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stopping PostgreSQL: %v", err)
		}
	})
	return s
}

// Require ends the test if err, of Launch, is not nil.
func Require(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrNotInstalled) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// Launch starts a server that several tests share; Close ends it.
func Launch() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, URL: "postgres://postgres@/postgres?host=" + url.QueryEscape(dir)}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) init() error {
	if os.Getuid() == 0 { // the server refuses to run as root
		var err error
		if s.cred, err = unprivileged(); err != nil {
			return err
		}
		if err := os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return err
		}
	}
	cmd := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s.Start()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(s.cred)
	return cmd
}

// Start starts the server and returns when it answers.
func (s *Server) Start() error {
	s.cmd = s.command("postgres", "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	var log strings.Builder
	s.cmd.Stdout, s.cmd.Stderr = io.Discard, &log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w", err)
	}
	ended := make(chan error, 1)
	s.ended = ended
	go func(cmd *exec.Cmd) { ended <- cmd.Wait() }(s.cmd)
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case err := <-ended:
			s.cmd = nil
			return fmt.Errorf("PostgreSQL ended as it started: %w\n%s", err, log.String())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("PostgreSQL does not answer: %w", err), s.Stop())
		}
	}
}

// Stop ends the server at once, as a failure of its machine would: connections break, what was committed is there after Start.
func (s *Server) Stop() error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.ended
	s.cmd = nil
	return err
}

// Close stops the server and deletes its data.
func (s *Server) Close() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.dir))
}

// Database makes an empty database and returns its URL.
func (s *Server) Database(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("test%d", s.made.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return strings.Replace(s.URL, "/postgres?", "/"+name+"?", 1), nil
}

func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1]), nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	return "", ErrNotInstalled
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL cannot run as root, and there is no user postgres or nobody")
}
