package store

import (
	"database/sql"
	"fmt"
	"time"
)

// A Schedule is one version of a job's clocks. Body is the hash of a blob.
type Schedule struct {
	Job                string
	Version            int64
	Generation         int
	EffectiveIteration int64
	Reason, Body       string
	CreatedAt          time.Time
}

const scheduleColumns = `job, version, generation, effective_iteration, reason, body, created_at`

// AddSchedule adds a version; ErrExists if the job has it, ErrNotFound if there is no such job.
func (t *Tx) AddSchedule(s Schedule) error {
	n, err := t.exec(fmt.Sprintf("adding schedule %d of job %q", s.Version, s.Job),
		`INSERT INTO schedules (`+scheduleColumns+`) SELECT id, $2, $3, $4, $5, $6, $7 FROM jobs WHERE id = $1 ON CONFLICT DO NOTHING`,
		s.Job, s.Version, s.Generation, s.EffectiveIteration, s.Reason, s.Body, nanos(s.CreatedAt))
	if err != nil || n > 0 {
		return err
	}
	if _, err := t.Job(s.Job); err != nil {
		return err
	}
	return fmt.Errorf("schedule %d of job %q: %w", s.Version, s.Job, ErrExists)
}

// Schedules returns at most limit versions after that given, ascending.
func (t *Tx) Schedules(job string, after int64, limit int) ([]Schedule, error) {
	return t.schedules(job, `SELECT `+scheduleColumns+` FROM schedules WHERE job = $1 AND version > $2 ORDER BY version LIMIT $3`, job, after, limited(limit))
}

// LatestSchedule returns the highest version of a job, or ErrNotFound.
func (t *Tx) LatestSchedule(job string) (Schedule, error) {
	found, err := t.schedules(job, `SELECT `+scheduleColumns+` FROM schedules WHERE job = $1 ORDER BY version DESC LIMIT 1`, job)
	if err != nil {
		return Schedule{}, err
	}
	if len(found) == 0 {
		return Schedule{}, fmt.Errorf("schedule of job %q: %w", job, ErrNotFound)
	}
	return found[0], nil
}

func (t *Tx) schedules(job, query string, args ...any) ([]Schedule, error) {
	found := []Schedule{}
	err := t.rows(fmt.Sprintf("reading schedules of job %q", job), func(r *sql.Rows) error {
		var s Schedule
		var created int64
		err := r.Scan(&s.Job, &s.Version, &s.Generation, &s.EffectiveIteration, &s.Reason, &s.Body, &created)
		s.CreatedAt = fromNanos(created)
		found = append(found, s)
		return err
	}, query, args...)
	return found, err
}

// DeleteSchedules deletes a job's versions before that given.
func (t *Tx) DeleteSchedules(job string, before int64) error {
	_, err := t.exec(fmt.Sprintf("deleting schedules of job %q", job), `DELETE FROM schedules WHERE job = $1 AND version < $2`, job, before)
	return err
}
