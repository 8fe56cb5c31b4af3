package store

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// keptEvents is the number of events of a job that are kept: its newest.
const keptEvents = 10_000

// An Event is a line of a job's history. Ids count from 1 in each job, in the order in which they are committed.
type Event struct {
	ID         int64
	Job        string
	At         time.Time
	Kind, Text string
}

// AddEvent adds an event, and forgets all but the newest 10,000; ErrNotFound if there is no such job. It locks the job.
func (t *Tx) AddEvent(job string, at time.Time, kind, text string) error {
	doing := fmt.Sprintf("adding an event to job %q", job)
	var id int64
	if err := t.one(doing, []any{&id}, `UPDATE jobs SET events = events + 1 WHERE id = $1 RETURNING events`, job); err != nil {
		return err
	}
	if _, err := t.exec(doing, `INSERT INTO events (job, id, at, kind, text) VALUES ($1, $2, $3, $4, $5)`, job, id, nanos(at), kind, valid(text)); err != nil {
		return err
	}
	_, err := t.exec(doing, `DELETE FROM events WHERE job = $1 AND id <= $2`, job, id-keptEvents)
	return err
}

// valid is text as PostgreSQL takes it.
func valid(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// Events returns at most limit events of a job with ids after that given, oldest first.
func (t *Tx) Events(job string, after int64, limit int) ([]Event, error) {
	events := []Event{}
	err := t.rows(fmt.Sprintf("reading events of job %q", job), func(r *sql.Rows) error {
		var e Event
		var at int64
		err := r.Scan(&e.Job, &e.ID, &at, &e.Kind, &e.Text)
		e.At = fromNanos(at)
		events = append(events, e)
		return err
	}, `SELECT job, id, at, kind, text FROM events WHERE job = $1 AND id > $2 ORDER BY id LIMIT $3`, job, after, limited(limit))
	return events, err
}
