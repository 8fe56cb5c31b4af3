// Package store keeps what the control plane must not forget: jobs, their ranks, reports, schedules and events, blobs, tokens, and the
// queue of background work. It keeps them in one SQLite file, or in a PostgreSQL database that several replicas share.
//
// All access is in transactions (Update, View). What a transaction wrote is durable when Update returns nil. It decides nothing: what a
// job's state means is the server's business, and documents are opaque bytes here.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
)

var (
	// ErrNotFound says that what was asked for, or what a new row belongs to, is not in the store.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a row of this id, name or version is there already.
	ErrExists = errors.New("exists already")
	// ErrUnavailable says that the database could not be reached or could not write; the same call may work later.
	ErrUnavailable = errors.New("database unavailable")
	// ErrFull is an ErrUnavailable that goes on until somebody makes room.
	ErrFull = fmt.Errorf("%w: no space is left", ErrUnavailable)

	errClosed = fmt.Errorf("%w: the store is closed", ErrUnavailable)
)

// Options are what a Store tells others. The zero value is valid.
type Options struct {
	Logger *slog.Logger // nil = nothing is logged
	// Observe, if not nil, is called after each commit of Update with the number of calls that shared the transaction, and the seconds
	// from its begin to its durable end.
	Observe func(batch int, seconds float64)
}

// A Store is an open database. Its methods may be called concurrently.
type Store struct {
	log     *slog.Logger
	observe func(int, float64)
	now     func() time.Time

	db     *sql.DB // SQLite: the one connection that writes. PostgreSQL: the pool
	engine engine
	queue  *river.Client[*sql.Tx] // inserts only
	hub    *hub
	worked atomic.Bool

	closing sync.Once
	stop    chan struct{}
	closed  error
}

// engine is what differs between the two databases.
type engine interface {
	update(ctx context.Context, fn func(*Tx) error) error
	view(ctx context.Context, fn func(*Tx) error) error
	ready(ctx context.Context) error
	// explain returns an error of the database with the way out, as ErrUnavailable where trying again may help.
	explain(err error) error
	work(ctx context.Context, cfg *river.Config) error
	close() error
}

// Open opens database, creating and migrating it as needed: a path is a SQLite file, postgres://… or postgresql://… a PostgreSQL
// database. A schema newer than this program is refused. No error holds a password.
func Open(ctx context.Context, database string, opt Options) (*Store, error) {
	s := &Store{log: opt.Logger, observe: opt.Observe, now: time.Now, hub: newHub(), stop: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.observe == nil {
		s.observe = func(int, float64) {}
	}
	var err error
	if IsPostgres(database) {
		err = s.openPostgres(ctx, database)
	} else {
		err = s.openSQLite(ctx, database)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// IsPostgres reports whether Open takes database for the URL of a PostgreSQL database, and not for a file.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Close waits for the transaction that commits, fails those that wait with ErrUnavailable, and gives everything back. Work must have
// returned. Subscriptions end: their channels are closed.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.closed = s.engine.close()
		s.hub.close()
	})
	return s.closed
}

// Ready returns nil if the database answers, else an error that wraps ErrUnavailable.
func (s *Store) Ready(ctx context.Context) error {
	return s.engine.ready(ctx)
}

// Update runs fn in a read-write transaction and returns nil when that is durable. An error of fn undoes what fn wrote, and is returned.
//
// On SQLite calls that wait while another commits share the next transaction, one behind the other, and fn runs on the writer's
// goroutine: it must not call Update itself, nor wait for others. A panic of fn undoes what it wrote, and is raised again in the caller.
// On PostgreSQL fn may run more than once (deadlocks, serialization failures, a connection lost before the commit), and it sees what
// others commit meanwhile: read with LockJob what you mean to change. If the connection is lost in the commit, the error does not tell
// whether it happened.
//
// Once fn runs on SQLite, the end of ctx no longer stops it.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	return s.engine.update(ctx, fn)
}

// View runs fn on a snapshot of the database that it cannot change, and returns fn's error.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	return s.engine.view(ctx, fn)
}

// Subscribe returns a channel of the ids of jobs that any replica publishes from now on. An empty id says that some may have been
// missed: look at every job. Ids that the receiver has not yet taken are told once, whatever their number; none is lost. cancel ends the
// subscription and closes the channel; it must be called.
func (s *Store) Subscribe() (news <-chan string, cancel func()) {
	return s.hub.subscribe()
}
