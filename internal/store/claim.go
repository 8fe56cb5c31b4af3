package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Claim makes the caller the only one that serves a SQLite file, until release or the end of its process, however it
// ends. It fails where another one serves it already: both would drive the same jobs. Looking and writing by Open is
// free to all. A PostgreSQL database is for several servers, so there it does nothing.
func Claim(database string) (release func() error, err error) {
	if IsPostgres(database) {
		return func() error { return nil }, nil
	}
	f, err := os.OpenFile(database+"-lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("database %q: its folder does not exist: make it, or name another file", database)
	case errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("database %q is on a file system that is mounted read-only: name another file", database)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("database %q: this user may not write to its folder: %w", database, err)
	case err != nil:
		return nil, fmt.Errorf("claiming %s: %w", database, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s is served by another process: stop that one first, or take another file; several servers need PostgreSQL", database)
		}
		return nil, fmt.Errorf("claiming %s: %w", database, err)
	}
	return f.Close, nil
}
