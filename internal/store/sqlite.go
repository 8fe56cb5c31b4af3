package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// readers is the number of connections that View has on SQLite.
const readers = 4

// sqliteEngine writes on one connection, which the writer's goroutine and River take in turn, so neither ever finds the file locked by
// the other; and reads on a few.
type sqliteEngine struct {
	s       *Store
	path    string
	readers *sql.DB
	queue   chan *request
	stopped chan struct{} // closed when the writer has ended
}

func (s *Store) openSQLite(ctx context.Context, path string) error {
	e := &sqliteEngine{s: s, path: path, queue: make(chan *request, batchLimit), stopped: make(chan struct{})}
	if err := e.prepareFile(); err != nil {
		return err
	}
	var err error
	if s.db, err = e.open("&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	fail := func(err error) error {
		return errors.Join(err, s.db.Close())
	}
	driver := riversqlite.New(s.db)
	if err := migrate(ctx, s.db, goose.DialectSQLite3, "sqlite", driver); err != nil {
		return fail(fmt.Errorf("database %q: %w", path, e.explain(err)))
	}
	if s.queue, err = river.NewClient(driver, &river.Config{Logger: quiet}); err != nil {
		return fail(fmt.Errorf("opening the queue in %q: %w", path, err))
	}
	if e.readers, err = e.open("&_pragma=query_only(1)"); err != nil {
		return fail(err)
	}
	e.readers.SetMaxOpenConns(readers)
	e.readers.SetMaxIdleConns(readers)
	s.engine = e
	go e.write()
	return nil
}

// prepareFile makes the file if there is none, for its owner only, and tells what is wrong with one that cannot be used.
func (e *sqliteEngine) prepareFile() error {
	if e.path == "" {
		return errors.New("database \"\": name a file, or a postgres:// URL")
	}
	if info, err := os.Stat(e.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("database %q is not a file; name a file, which is made if it is not there", e.path)
	}
	f, err := os.OpenFile(e.path, os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("database %q: there is no directory %q; make it first", e.path, filepath.Dir(e.path))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("database %q cannot be written (%w); give this user write permission, or name another file", e.path, errors.Unwrap(err))
	case err != nil:
		return fmt.Errorf("opening the database: %w", err)
	}
	defer f.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	if n > 0 && string(head[:n]) != "SQLite format 3\x00" {
		return fmt.Errorf("database %q is not a SQLite database; name another file, which is made if it is not there", e.path)
	}
	if err != nil && n > 0 {
		return fmt.Errorf("reading the database %q: %w", e.path, err)
	}
	return nil
}

func (e *sqliteEngine) open(more string) (*sql.DB, error) {
	abs, err := filepath.Abs(e.path)
	if err != nil {
		return nil, fmt.Errorf("database %q: %w", e.path, err)
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: "_pragma=busy_timeout(10000)&_error_rc=1" + more}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("opening the database %q: %w", e.path, err)
	}
	return db, nil
}

func (e *sqliteEngine) view(ctx context.Context, fn func(*Tx) error) error {
	tx, err := e.readers.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning to read: %w", contextOr(ctx, e.explain(err)))
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return fn(&Tx{ctx: ctx, tx: tx, run: tx, s: e.s})
}

func (e *sqliteEngine) ready(ctx context.Context) error {
	select {
	case <-e.s.stop:
		return errClosed
	default:
	}
	var n int
	if err := e.readers.QueryRowContext(ctx, "SELECT count(*) FROM perseus_schema").Scan(&n); err != nil {
		return fmt.Errorf("reading the database: %w", errors.Join(ErrUnavailable, e.explain(err)))
	}
	return nil
}

func (e *sqliteEngine) explain(err error) error {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w for %q; free some: %w", ErrFull, e.path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %q cannot be written; give this user write permission to it and its directory: %w", ErrUnavailable, e.path, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %q cannot be read or written; look at the disk: %w", ErrUnavailable, e.path, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process keeps %q locked; end it: %w", ErrUnavailable, e.path, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%q is damaged; restore it from a backup, or move it away to begin anew: %w", e.path, err)
	}
	return err
}

func (e *sqliteEngine) close() error {
	<-e.stopped
	return errors.Join(e.readers.Close(), e.s.db.Close())
}

func (e *sqliteEngine) work(ctx context.Context, cfg *river.Config) error {
	// The process that ran these is gone: this is the only one that works on the file.
	for _, q := range rescueSQLite {
		if _, err := e.s.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("taking up the work of the last process: %w", contextOr(ctx, e.explain(err)))
		}
	}
	return e.s.runRiver(ctx, riversqlite.New(e.s.db), cfg)
}

var rescueSQLite = []string{
	`UPDATE river_job SET state = 'discarded', finalized_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE state = 'running' AND attempt >= max_attempts`,
	`UPDATE river_job SET state = 'available', scheduled_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE state = 'running'`,
}
