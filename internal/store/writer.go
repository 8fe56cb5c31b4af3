package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// batchLimit is the number of Update calls that may share a transaction.
const batchLimit = 512

// A request is an Update that waits for the writer.
type request struct {
	fn       func(*Tx) error
	taken    atomic.Bool // by the writer, or by a caller that gave up
	done     chan struct{}
	err      error
	panicked any
	news     []string
	after    []func()
}

func (e *sqliteEngine) update(ctx context.Context, fn func(*Tx) error) error {
	r := &request{fn: fn, done: make(chan struct{})}
	select {
	case <-e.s.stop: // a select between ready channels takes either
		return errClosed
	default:
	}
	select {
	case e.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.s.stop:
		return errClosed
	}
	select {
	case <-r.done:
	case <-e.stopped:
		select {
		case <-r.done:
		default:
			return errClosed
		}
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-r.done
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	if r.err == nil {
		for _, f := range r.after {
			f()
		}
	}
	return r.err
}

// write is the writer: it runs until the store is closed.
func (e *sqliteEngine) write() {
	defer close(e.stopped)
	batch := make([]*request, 0, batchLimit)
	for {
		batch = batch[:0]
		select {
		case <-e.s.stop:
			return
		case r := <-e.queue:
			batch = append(batch, r)
		}
	more:
		for len(batch) < batchLimit {
			select {
			case r := <-e.queue:
				batch = append(batch, r)
			default:
				break more
			}
		}
		e.writeBatch(batch)
	}
}

// writeBatch runs and answers the requests of one transaction.
func (e *sqliteEngine) writeBatch(batch []*request) {
	start := time.Now()
	live := batch[:0]
	for _, r := range batch {
		if r.taken.CompareAndSwap(false, true) {
			live = append(live, r)
		}
	}
	if len(live) == 0 {
		return
	}
	err := e.transact(live)
	if err == nil {
		for _, r := range live {
			if r.err == nil && r.panicked == nil {
				e.s.hub.publish(r.news...)
			}
		}
		e.s.observe(len(live), time.Since(start).Seconds())
	} else {
		err = fmt.Errorf("writing: %w", e.explain(err))
	}
	for _, r := range live {
		if err != nil && r.err == nil && r.panicked == nil {
			r.err = err
		}
		close(r.done)
	}
}

// transact returns nil if the transaction is durable; each request has its own error then.
func (e *sqliteEngine) transact(batch []*request) (err error) {
	// Not the callers' contexts: SQLite undoes the whole transaction when one of its statements is interrupted.
	ctx := context.Background()
	tx, err := e.s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tx.Rollback() //nolint:errcheck // the first error counts
		}
	}()
	prepared := &statements{tx: tx}
	for _, r := range batch {
		if _, err := prepared.ExecContext(ctx, "SAVEPOINT request"); err != nil {
			return err
		}
		e.runRequest(ctx, tx, prepared, r)
		if r.err != nil || r.panicked != nil {
			if _, err := prepared.ExecContext(ctx, "ROLLBACK TO request"); err != nil {
				return errors.Join(r.err, err)
			}
		}
		if _, err := prepared.ExecContext(ctx, "RELEASE request"); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (e *sqliteEngine) runRequest(ctx context.Context, tx *sql.Tx, prepared *statements, r *request) {
	defer func() {
		r.panicked = recover()
	}()
	t := &Tx{ctx: ctx, tx: tx, run: prepared, s: e.s}
	r.err = r.fn(t)
	r.news, r.after = t.news, t.after
}

// statements are those of one transaction, each prepared once.
type statements struct {
	tx *sql.Tx
	m  map[string]*sql.Stmt
}

func (p *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := p.m[query]; ok {
		return s, nil
	}
	s, err := p.tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if p.m == nil {
		p.m = map[string]*sql.Stmt{}
	}
	p.m[query] = s
	return s, nil
}

func (p *statements) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

func (p *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}
