package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// A Job is a training job: its state, and a document that the store does not read.
type Job struct {
	ID, State            string
	Doc                  []byte
	CreatedAt, UpdatedAt time.Time
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
