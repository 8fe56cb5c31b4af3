package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/internal/token"
)

type tokenCommand struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token and print it, once."`
	List   tokenListCommand   `cmd:"" help:"List tokens by name; what they are is not kept."`
	Revoke tokenRevokeCommand `cmd:"" help:"Make a token worthless, at once."`

	Database string `default:"perseus.db" env:"PERSEUS_DATABASE" placeholder:"FILE|URL" help:"The server's database (${default}); the server may run meanwhile."`
}

// Help is the text of perseus token --help.
func (tokenCommand) Help() string {
	return `Tokens are what a server asks for beyond its own machine. rank is for training jobs and node agents, read-only for dashboards and Prometheus, operator for people. They are kept as hashes, so a lost token is revoked and made anew.

Examples:

    perseus token create --scope rank nodes
    perseus token create --scope operator --expires 720h alice
    perseus token list
    perseus token revoke alice`
}

type tokenCreateCommand struct {
	Name    string        `arg:"" help:"What it is called in the list."`
	Scope   string        `default:"rank" placeholder:"SCOPE" help:"rank, operator or read-only; several with commas (${default})."`
	Expires time.Duration `placeholder:"TIME" help:"How long it is good for, as in 720h. Without it: until it is revoked."`
}

// Run makes a token.
func (c *tokenCreateCommand) Run(w *world, t *tokenCommand) error {
	scopes, err := token.ParseScopes(c.Scope)
	switch {
	case err != nil:
		return input(fmt.Errorf("--scope: %w", err))
	case c.Name == "" || len(c.Name) > 100:
		return input(errors.New("a name has 1 to 100 letters"))
	case c.Expires < 0:
		return input(fmt.Errorf("--expires %s: expected a time to come", c.Expires))
	}
	text, err := token.New(rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	row := store.Token{ID: rand.Text(), Name: c.Name, Scope: token.FormatScopes(scopes), Hash: token.Hash(text), CreatedAt: now}
	if c.Expires > 0 {
		row.ExpiresAt = now.Add(c.Expires)
	}
	err = t.with(w, func(s *store.Store) error {
		return s.Update(w.ctx, func(tx *store.Tx) error { return tx.PutToken(row) })
	})
	if errors.Is(err, store.ErrExists) {
		return input(fmt.Errorf("there is a token %q already: take another name, or revoke it first", c.Name))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.stdout, text)
	return err
}

type tokenListCommand struct{}

// Run lists tokens.
func (tokenListCommand) Run(w *world, t *tokenCommand) error {
	var list []store.Token
	err := t.with(w, func(s *store.Store) error {
		return s.View(w.ctx, func(tx *store.Tx) (err error) {
			list, err = tx.Tokens()
			return err
		})
	})
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(w.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tSCOPE\tMADE\tEXPIRES")
	for _, k := range list {
		expires := "never"
		if !k.ExpiresAt.IsZero() {
			expires = k.ExpiresAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", k.Name, k.Scope, k.CreatedAt.UTC().Format(time.RFC3339), expires)
	}
	return out.Flush()
}

type tokenRevokeCommand struct {
	Name string `arg:"" help:"Its name."`
}

// Run makes a token worthless.
func (c *tokenRevokeCommand) Run(w *world, t *tokenCommand) error {
	err := t.with(w, func(s *store.Store) error {
		return s.Update(w.ctx, func(tx *store.Tx) error { return tx.DeleteToken(c.Name) })
	})
	if errors.Is(err, store.ErrNotFound) {
		return input(fmt.Errorf("there is no token %q: perseus token list shows those there are", c.Name))
	}
	return err
}

func (t *tokenCommand) with(w *world, f func(*store.Store) error) (err error) {
	s, err := store.Open(w.ctx, t.Database, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(s)
}
