package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
)

const (
	poolSize = 16 // unless the URL has pool_max_conns
	// tries and firstPause bound how long a transaction that others undid is tried again: 10 + 20 + … + 640 ms.
	tries      = 8
	firstPause = 10 * time.Millisecond
	// migrationLock is the advisory lock of the replica that migrates.
	migrationLock = 0x7065727365757301
	connectWithin = 10 * time.Second
)

// postgresEngine has a transaction for each call, on a pool; and one more connection, which hears of other replicas and shows by a lock
// that this one is alive.
type postgresEngine struct {
	s        *Store
	pool     *pgxpool.Pool
	config   *pgx.ConnConfig
	instance string // this Store's name among those that are open
	driver   *riverdatabasesql.Driver

	end   context.CancelFunc
	tasks sync.WaitGroup

	mu   sync.Mutex
	told map[string]struct{} // ids that other replicas are yet to hear of
	wake chan struct{}       // capacity 1
}

func (s *Store) openPostgres(ctx context.Context, database string) error {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		// Not err itself, which may quote the URL and with it the password.
		return errors.New("the database's URL is not one of PostgreSQL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, special characters as %HH")
	}
	if !strings.Contains(database, "pool_max_conns") {
		cfg.MaxConns = poolSize
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectWithin
	}
	e := &postgresEngine{s: s, instance: "perseus-" + rand.Text(), told: map[string]struct{}{}, wake: make(chan struct{}, 1)}
	e.config = cfg.ConnConfig.Copy()
	// A replica whose machine is gone must not seem alive for hours.
	for k, v := range map[string]string{"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"} {
		e.config.RuntimeParams[k] = v
	}
	name := fmt.Sprintf("PostgreSQL database %q at %s:%d", cfg.ConnConfig.Database, cfg.ConnConfig.Host, cfg.ConnConfig.Port)
	if e.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("%s: %w", name, e.explain(err))
	}
	s.db = stdlib.OpenDBFromPool(e.pool)
	s.engine = e
	fail := func(err error) error {
		s.db.Close()
		e.pool.Close()
		return fmt.Errorf("%s: %w", name, contextOr(ctx, err))
	}
	e.driver = riverdatabasesql.NewWithPgxListener(s.db, e.pool)
	if err := e.migrate(ctx); err != nil {
		return fail(err)
	}
	if s.queue, err = river.NewClient(e.driver, &river.Config{Logger: quiet}); err != nil {
		return fail(err)
	}
	conn, err := e.listen(ctx)
	if err != nil {
		return fail(err)
	}
	var run context.Context
	run, e.end = context.WithCancel(context.Background())
	e.tasks.Go(func() { e.hear(run, conn) })
	e.tasks.Go(func() { e.tell(run) })
	return nil
}

// migrate lets one replica migrate at a time.
func (e *postgresEngine) migrate(ctx context.Context) error {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return e.explain(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("waiting for another replica's migration: %w", e.explain(err))
	}
	err = migrate(ctx, e.s.db, goose.DialectPostgres, "postgres", e.driver)
	if err != nil {
		err = e.explain(err)
	}
	if _, unlock := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrationLock)); unlock != nil && err == nil {
		err = e.explain(unlock)
	}
	return err
}

func (e *postgresEngine) update(ctx context.Context, fn func(*Tx) error) error {
	start := time.Now()
	t, err := e.transact(ctx, nil, fn)
	if err != nil {
		return err
	}
	e.s.observe(1, time.Since(start).Seconds())
	e.s.hub.publish(t.news...)
	e.announce(t.news...)
	for _, f := range t.after {
		f()
	}
	return nil
}

func (e *postgresEngine) view(ctx context.Context, fn func(*Tx) error) error {
	_, err := e.transact(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, fn)
	return err
}

// transact tries a transaction until it is committed, fails for good, or was tried often enough.
func (e *postgresEngine) transact(ctx context.Context, opt *sql.TxOptions, fn func(*Tx) error) (*Tx, error) {
	pause := firstPause
	for try := 1; ; try++ {
		select {
		case <-e.s.stop:
			return nil, errClosed
		default:
		}
		t, again, err := e.once(ctx, opt, fn)
		if err == nil {
			return t, nil
		}
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if try == tries {
			if !errors.Is(err, ErrUnavailable) {
				err = fmt.Errorf("%w: others kept undoing the transaction: %w", ErrUnavailable, err)
			}
			return nil, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-e.s.stop:
			timer.Stop()
			return nil, errClosed
		}
		pause *= 2
	}
}

// once runs a transaction once. again tells that it left nothing behind and may succeed if it is tried again.
func (e *postgresEngine) once(ctx context.Context, opt *sql.TxOptions, fn func(*Tx) error) (t *Tx, again bool, err error) {
	tx, err := e.s.db.BeginTx(ctx, opt)
	if err != nil {
		err = e.explain(err)
		return nil, errors.Is(err, ErrUnavailable), fmt.Errorf("beginning a transaction: %w", contextOr(ctx, err))
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	t = &Tx{ctx: ctx, tx: tx, run: tx, s: e.s, postgres: opt == nil}
	if err := fn(t); err != nil {
		return nil, undone(err) || errors.Is(err, ErrUnavailable), err
	}
	if err := tx.Commit(); err != nil {
		if !undone(err) {
			// It may have been committed, and nobody would be told.
			e.s.hub.publish("")
			e.announce("")
		}
		return nil, undone(err), fmt.Errorf("committing: %w", contextOr(ctx, e.explain(err)))
	}
	return t, false, nil
}

// undone reports whether PostgreSQL undid a transaction because of others: a serialization failure or a deadlock.
func undone(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "40P01")
}

func (e *postgresEngine) ready(ctx context.Context) error {
	select {
	case <-e.s.stop:
		return errClosed
	default:
	}
	if err := e.pool.Ping(ctx); err != nil {
		return fmt.Errorf("asking the database: %w", errors.Join(ErrUnavailable, err))
	}
	return nil
}

func (e *postgresEngine) explain(err error) error {
	var pe *pgconn.PgError
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, pgx.ErrTxCommitRollback), isNewerSchema(err):
		return err
	case !errors.As(err, &pe):
		// Whatever PostgreSQL did not say itself comes from the way to it.
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case pe.Code == "53100":
		return fmt.Errorf("%w on PostgreSQL's disk; free some: %w", ErrFull, err)
	case pe.Code == "53300":
		return fmt.Errorf("%w: PostgreSQL has no connection left; raise max_connections or lower pool_max_conns: %w", ErrUnavailable, err)
	case pe.Code == "23503": // a foreign key: the job went away meanwhile
		return fmt.Errorf("job deleted meanwhile: %w: %w", ErrNotFound, err)
	case pe.Code == "25006", strings.HasPrefix(pe.Code, "08"), strings.HasPrefix(pe.Code, "53"), strings.HasPrefix(pe.Code, "57P"):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func (e *postgresEngine) close() error {
	e.end()
	e.tasks.Wait()
	err := e.s.db.Close()
	e.pool.Close()
	return err
}
