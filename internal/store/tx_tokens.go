package store

import (
	"database/sql"
	"fmt"
	"time"
)

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
