package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"
)

const (
	// unreferredFor is how long Sweep leaves a blob that nothing refers to.
	unreferredFor = 24 * time.Hour
	// touchAfter is the age from which PutBlob makes a blob that is there young again, so that not every repeat writes.
	touchAfter = time.Hour
	sweepBatch = 100
)

// PutBlob keeps data under its SHA-256 in hexadecimal, which it returns; twice is as once. Sweep deletes blobs that no schedule and no
// ref names, so name it in one of them, best in this transaction; documents of jobs are not searched for hashes.
func (t *Tx) PutBlob(b []byte) (hash string, err error) {
	sum := sha256.Sum256(b)
	hash = hex.EncodeToString(sum[:])
	now := t.s.now()
	_, err = t.exec("writing blob "+hash, `INSERT INTO blobs (hash, data, created_at) VALUES ($1, $2, $3)
		ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at WHERE blobs.created_at < $4`, hash, data(b), nanos(now), nanos(now.Add(-touchAfter)))
	return hash, err
}

// Blob returns the data of a hash, checked against it, or ErrNotFound.
func (t *Tx) Blob(hash string) ([]byte, error) {
	var b []byte
	if err := t.one("reading blob "+hash, []any{&b}, `SELECT data FROM blobs WHERE hash = $1`, hash); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("blob %s is damaged: its data do not have this hash; restore the database from a backup", hash)
	}
	return data(b), nil
}

// SetRef sets the value of a key.
func (t *Tx) SetRef(kind, key, value string) error {
	_, err := t.exec(fmt.Sprintf("writing %s %q", kind, key), `INSERT INTO refs (kind, key, value) VALUES ($1, $2, $3)
		ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value`, kind, key, value)
	return err
}

// Ref returns the value of a key, "" if there is none.
func (t *Tx) Ref(kind, key string) (value string, err error) {
	err = t.rows(fmt.Sprintf("reading %s %q", kind, key), func(r *sql.Rows) error { return r.Scan(&value) },
		`SELECT value FROM refs WHERE kind = $1 AND key = $2`, kind, key)
	return value, err
}

// Refs returns the first limit keys (bytewise) that begin with prefix, and their values.
func (t *Tx) Refs(kind, prefix string, limit int) (map[string]string, error) {
	refs := map[string]string{}
	err := t.rows("listing "+kind, func(r *sql.Rows) error {
		var key, value string
		err := r.Scan(&key, &value)
		refs[key] = value
		return err
	}, `SELECT key, value FROM refs WHERE kind = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4`, kind, prefix, prefix+"\U0010ffff", limited(limit))
	return refs, err
}

// DeleteRef deletes a key, if it is there.
func (t *Tx) DeleteRef(kind, key string) error {
	_, err := t.exec(fmt.Sprintf("deleting %s %q", kind, key), `DELETE FROM refs WHERE kind = $1 AND key = $2`, kind, key)
	return err
}

// Sweep deletes blobs that no schedule's body and no ref's value names and that were put a day ago or earlier, in small transactions.
func (s *Store) Sweep(ctx context.Context) error {
	for {
		var n int64
		err := s.Update(ctx, func(t *Tx) (err error) {
			n, err = t.exec("deleting blobs that nothing refers to", `DELETE FROM blobs WHERE hash IN (
				SELECT hash FROM blobs WHERE created_at < $1
				AND NOT EXISTS (SELECT 1 FROM schedules WHERE body = blobs.hash)
				AND NOT EXISTS (SELECT 1 FROM refs WHERE value = blobs.hash) LIMIT $2) AND created_at < $1`,
				nanos(s.now().Add(-unreferredFor)), sweepBatch)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
