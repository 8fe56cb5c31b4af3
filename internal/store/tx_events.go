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

// A Token is what a request may carry, kept as a hash. A zero ExpiresAt is never.
type Token struct {
	ID, Name, Scope      string
	Hash                 []byte
	CreatedAt, ExpiresAt time.Time
}

const tokenColumns = `id, name, scope, hash, created_at, expires_at`

// PutToken adds a token; ErrExists if there is one of its name, id or hash.
func (t *Tx) PutToken(k Token) error {
	n, err := t.exec(fmt.Sprintf("adding token %q", k.Name), `INSERT INTO tokens (`+tokenColumns+`) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		k.ID, k.Name, k.Scope, data(k.Hash), nanos(k.CreatedAt), nanos(k.ExpiresAt))
	if err == nil && n == 0 {
		err = fmt.Errorf("token %q: %w", k.Name, ErrExists)
	}
	return err
}

// TokenByHash returns the token of a hash, expired or not, or ErrNotFound.
func (t *Tx) TokenByHash(hash []byte) (Token, error) {
	found, err := t.tokens(`SELECT `+tokenColumns+` FROM tokens WHERE hash = $1`, data(hash))
	if err != nil {
		return Token{}, err
	}
	if len(found) == 0 {
		return Token{}, fmt.Errorf("token: %w", ErrNotFound)
	}
	return found[0], nil
}

// Tokens returns all tokens, by name.
func (t *Tx) Tokens() ([]Token, error) {
	return t.tokens(`SELECT ` + tokenColumns + ` FROM tokens ORDER BY name`)
}

func (t *Tx) tokens(query string, args ...any) ([]Token, error) {
	found := []Token{}
	err := t.rows("reading tokens", func(r *sql.Rows) error {
		var k Token
		var created, expires int64
		err := r.Scan(&k.ID, &k.Name, &k.Scope, &k.Hash, &created, &expires)
		k.CreatedAt, k.ExpiresAt = fromNanos(created), fromNanos(expires)
		found = append(found, k)
		return err
	}, query, args...)
	return found, err
}

// DeleteToken deletes the token of a name, or returns ErrNotFound.
func (t *Tx) DeleteToken(name string) error {
	n, err := t.exec(fmt.Sprintf("deleting token %q", name), `DELETE FROM tokens WHERE name = $1`, name)
	if err == nil && n == 0 {
		err = fmt.Errorf("token %q: %w", name, ErrNotFound)
	}
	return err
}
