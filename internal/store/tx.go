package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Tx is a transaction of Update or View, for their fn only and from its goroutine only. Where several rows answer, none is an empty
// slice and no error; where one is asked for, none is ErrNotFound. A limit below 1 is no limit.
type Tx struct {
	ctx      context.Context
	tx       *sql.Tx
	s        *Store
	prepared *statements // nil: the driver keeps them
	postgres bool
	news     []string
}

// A Job is a training job: its state, and a document that the store does not read.
type Job struct {
	ID, State            string
	Doc                  []byte
	CreatedAt, UpdatedAt time.Time
}

func (t *Tx) fail(doing string, err error) error {
	return fmt.Errorf("%s: %w", doing, contextOr(t.ctx, t.s.engine.explain(err)))
}

// exec returns the number of rows that changed.
func (t *Tx) exec(doing, query string, args ...any) (int64, error) {
	var res sql.Result
	var err error
	if t.prepared != nil {
		var s *sql.Stmt
		if s, err = t.prepared.get(t.ctx, query); err == nil {
			res, err = s.ExecContext(t.ctx, args...)
		}
	} else {
		res, err = t.tx.ExecContext(t.ctx, query, args...)
	}
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
	var rows *sql.Rows
	var err error
	if t.prepared != nil {
		var s *sql.Stmt
		if s, err = t.prepared.get(t.ctx, query); err == nil {
			rows, err = s.QueryContext(t.ctx, args...)
		}
	} else {
		rows, err = t.tx.QueryContext(t.ctx, query, args...)
	}
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

const jobColumns = `id, state, doc, created_at, updated_at`

func scanJob(r interface{ Scan(...any) error }) (j Job, err error) {
	var created, updated int64
	err = r.Scan(&j.ID, &j.State, &j.Doc, &created, &updated)
	j.CreatedAt, j.UpdatedAt = fromNanos(created), fromNanos(updated)
	return j, err
}

func (t *Tx) job(id, query string) (j Job, err error) {
	found := false
	doing := fmt.Sprintf("reading job %q", id)
	err = t.rows(doing, func(r *sql.Rows) (err error) {
		found = true
		j, err = scanJob(r)
		return err
	}, query, id)
	if err == nil && !found {
		err = fmt.Errorf("job %q: %w", id, ErrNotFound)
	}
	return j, err
}

// Job returns the job of this id, or ErrNotFound.
func (t *Tx) Job(id string) (Job, error) {
	return t.job(id, `SELECT `+jobColumns+` FROM jobs WHERE id = $1`)
}

// LockJob is Job, and keeps all others from locking, changing or deleting the job until this transaction ends; it waits for one that has
// it locked. Reports may still be added. In View it only reads.
func (t *Tx) LockJob(id string) (Job, error) {
	if t.postgres {
		// Not FOR UPDATE, for which the foreign keys of new reports would have to wait.
		return t.job(id, `SELECT `+jobColumns+` FROM jobs WHERE id = $1 FOR NO KEY UPDATE`)
	}
	return t.Job(id)
}

// InsertJob adds a job; ErrExists if there is one of its id.
func (t *Tx) InsertJob(j Job) error {
	n, err := t.exec(fmt.Sprintf("adding job %q", j.ID),
		`INSERT INTO jobs (id, state, doc, created_at, updated_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		j.ID, j.State, data(j.Doc), nanos(j.CreatedAt), nanos(j.UpdatedAt))
	if err == nil && n == 0 {
		err = fmt.Errorf("job %q: %w", j.ID, ErrExists)
	}
	return err
}

// UpdateJob replaces all of a job but its id; ErrNotFound if there is none.
func (t *Tx) UpdateJob(j Job) error {
	n, err := t.exec(fmt.Sprintf("changing job %q", j.ID),
		`UPDATE jobs SET state = $2, doc = $3, created_at = $4, updated_at = $5 WHERE id = $1`,
		j.ID, j.State, data(j.Doc), nanos(j.CreatedAt), nanos(j.UpdatedAt))
	return jobFound(j.ID, n, err)
}

// DeleteJob deletes a job with its parts, ranks, reports, schedules and events; ErrNotFound if there is none. Refs, blobs and queued
// work stay.
func (t *Tx) DeleteJob(id string) error {
	n, err := t.exec(fmt.Sprintf("deleting job %q", id), `DELETE FROM jobs WHERE id = $1`, id)
	return jobFound(id, n, err)
}

func jobFound(id string, n int64, err error) error {
	if err == nil && n == 0 {
		err = fmt.Errorf("job %q: %w", id, ErrNotFound)
	}
	return err
}

// Jobs returns at most limit jobs of a state ("" = any) with ids after that given, by id (bytewise).
func (t *Tx) Jobs(state, after string, limit int) ([]Job, error) {
	query, args := `SELECT `+jobColumns+` FROM jobs WHERE id > $1 ORDER BY id LIMIT $2`, []any{after, limited(limit)}
	if state != "" {
		query = `SELECT ` + jobColumns + ` FROM jobs WHERE id > $1 AND state = $3 ORDER BY id LIMIT $2`
		args = append(args, state)
	}
	jobs := []Job{}
	err := t.rows("listing jobs", func(r *sql.Rows) error {
		j, err := scanJob(r)
		jobs = append(jobs, j)
		return err
	}, query, args...)
	return jobs, err
}

// CountJobs returns the number of jobs in each state that any has.
func (t *Tx) CountJobs() (map[string]int, error) {
	counts := map[string]int{}
	err := t.rows("counting jobs", func(r *sql.Rows) error {
		var state string
		var n int
		err := r.Scan(&state, &n)
		counts[state] = n
		return err
	}, `SELECT state, count(*) FROM jobs GROUP BY state`)
	return counts, err
}

// Part returns one of a job's further documents, nil if there is none of this name.
func (t *Tx) Part(job, name string) ([]byte, error) {
	var b []byte
	err := t.one(fmt.Sprintf("reading %s of job %q", name, job), []any{&b}, `SELECT data FROM parts WHERE job = $1 AND name = $2`, job, name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return data(b), err
}

// SetPart adds or replaces a document of a job; nil deletes it. ErrNotFound if there is no such job.
func (t *Tx) SetPart(job, name string, b []byte) error {
	doing := fmt.Sprintf("writing %s of job %q", name, job)
	if b == nil {
		_, err := t.exec(doing, `DELETE FROM parts WHERE job = $1 AND name = $2`, job, name)
		return err
	}
	n, err := t.exec(doing, `INSERT INTO parts (job, name, data) SELECT id, $2, $3 FROM jobs WHERE id = $1
		ON CONFLICT (job, name) DO UPDATE SET data = excluded.data`, job, name, b)
	return jobFound(job, n, err)
}

// Publish tells all subscribers of all replicas of a job, once this transaction is committed.
func (t *Tx) Publish(job string) {
	if !slices.Contains(t.news, job) {
		t.news = append(t.news, job)
	}
}
