package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// A Tx is a transaction of Update or View, for their fn only and from its goroutine only. Where several rows answer, none is an empty
// slice and no error; where one is asked for, none is ErrNotFound. A limit below 1 is no limit.
type Tx struct {
	ctx      context.Context
	tx       *sql.Tx
	run      runner // of its statements
	s        *Store
	postgres bool
	news     []string
	after    []func()
}

// runner runs the statements of a transaction: the transaction itself, or what keeps its statements prepared.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Publish tells all subscribers of all replicas of a job, once this transaction is committed.
func (t *Tx) Publish(job string) {
	if !slices.Contains(t.news, job) {
		t.news = append(t.news, job)
	}
}

// Committed has f called once this transaction is committed, before Update returns and on its goroutine; never if it is undone.
func (t *Tx) Committed(f func()) { t.after = append(t.after, f) }

func (t *Tx) fail(doing string, err error) error {
	return fmt.Errorf("%s: %w", doing, contextOr(t.ctx, t.s.engine.explain(err)))
}

// exec returns the number of rows that changed.
func (t *Tx) exec(doing, query string, args ...any) (int64, error) {
	res, err := t.run.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, t.fail(doing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, t.fail(doing, err)
	}
	return n, nil
}

// rows calls scan for each row.
func (t *Tx) rows(doing string, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := t.run.QueryContext(t.ctx, query, args...)
	if err != nil {
		return t.fail(doing, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return t.fail(doing, err)
		}
	}
	if err := rows.Err(); err != nil {
		return t.fail(doing, err)
	}
	return nil
}

// one scans the only row into dest; none is ErrNotFound.
func (t *Tx) one(doing string, dest []any, query string, args ...any) error {
	found := false
	err := t.rows(doing, func(r *sql.Rows) error {
		found = true
		return r.Scan(dest...)
	}, query, args...)
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", doing, ErrNotFound)
	}
	return err
}

// Times are kept as nanoseconds since 1970, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// data is b, but never nil, which would be NULL.
func data(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// limited is what LIMIT takes.
func limited(n int) int64 {
	if n < 1 {
		return 1<<63 - 1
	}
	return int64(n)
}

// contextOr returns the reason for which ctx ended, if it did, else err.
func contextOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
