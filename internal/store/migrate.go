package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema, and that of the queue, to this program's version. A newer one is an error, and is left as it is.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, directory string, queue riverdriver.Driver[*sql.Tx]) error {
	files, err := fs.Sub(migrations, "migrations/"+directory)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName("perseus_schema"))
	if err != nil {
		return fmt.Errorf("reading the migrations: %w", err)
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	if have > want {
		return &newerSchema{"its schema", have, want}
	}
	rivers, err := rivermigrate.New(queue, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("reading the queue's migrations: %w", err)
	}
	all := rivers.AllVersions()
	last := int64(all[len(all)-1].Version)
	known, err := rivers.ExistingVersions(ctx)
	if err != nil { // which it is, too, if one of them is unknown
		var version int64
		if db.QueryRowContext(ctx, `SELECT max(version) FROM river_migration`).Scan(&version) == nil && version > last {
			return &newerSchema{"its queue's schema", version, last}
		}
		return fmt.Errorf("reading the queue's version: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrating the schema from version %d to %d: %w", have, want, err)
	}
	if len(known) < len(all) {
		if _, err := rivers.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("migrating the queue's schema: %w", err)
		}
	}
	return nil
}

// A newerSchema is why a database is refused that a later version of this program wrote.
type newerSchema struct {
	what       string
	have, want int64
}

func (e *newerSchema) Error() string {
	return fmt.Sprintf("%s has version %d, and this program knows up to %d: a newer perseus wrote it; run that one, or name another database",
		e.what, e.have, e.want)
}

func isNewerSchema(err error) bool {
	var n *newerSchema
	return errors.As(err, &n)
}
