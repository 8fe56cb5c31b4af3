// Package fileio opens the files that commands read and writes the ones they
// make: "-" is standard input or output, compressed input is unpacked whatever
// its name, output is compressed where its name ends in .gz, and a file is
// either written whole or not at all.
//
// It knows nothing of what is in the files, and is for the edges: packages of the
// core take an io.Reader or an io.Writer.
package fileio

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perseus-energy/perseus/internal/unpack"
)

// Stdio is the name that stands for standard input or output.
const Stdio = "-"

// Name returns path as messages show it.
func Name(path string) string {
	if path == Stdio {
		return "standard input"
	}
	return path
}

// maxBytes bounds what is read of a file, and what it unpacks to. Readers may have
// lower bounds; this one is there so that a small file cannot take all memory.
const maxBytes = 1 << 30

// Open returns the content of the file at path, or of stdin where path is "-",
// unpacked where it starts as gzip does. The caller closes it. Errors name the
// path; a folder is one. Errors of reading do not: whoever reads knows the name.
func Open(path string, stdin io.Reader) (io.ReadCloser, error) {
	in := input{closer: io.NopCloser(nil)}
	source := stdin
	if path != Stdio {
		f, err := os.Open(path)
		if err != nil {
			return nil, plain(err)
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, errors.Join(fmt.Errorf("%s: is a folder, expected a file", path), f.Close())
		}
		source, in.closer = f, f
	}
	in.Reader = unpack.NewReader(source, maxBytes)
	return in, nil
}

type input struct {
	io.Reader
	closer io.Closer
}

func (in input) Close() error { return in.closer.Close() }

// plain returns the error of a file operation as "path: what", without the
// operation's name.
func plain(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}

// Check returns an error where Write could not write to path, so that long work
// need not be done first. It does not touch what is there, and removes the empty
// file that it makes beside it to see whether one can be made.
func Check(path string) error {
	if path == Stdio {
		return nil
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: is a folder, expected a file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // a device or a pipe: to open it could wait for its other end
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return plain(err) // names the folder
	}
	f, err := beside(target(path))
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// target returns the path of the file that path leads to: a link stays a link, and
// what it points to is replaced.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// beside returns a new file in the folder of path, to take its name later.
func beside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	return f, nil
}

// Write calls write with where path leads: a new file that replaces path once
// write has returned nil and its bytes are on disk, or stdout where path is "-".
// Where write fails or ctx ends the file at path stays as it was and nothing is
// left beside it. A path that is there and is no regular file (/dev/null, a
// pipe) is written to as it is.
func Write(ctx context.Context, path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == Stdio {
		return buffer(ctx, path, stdout, write)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return plain(err)
		}
		return errors.Join(buffer(ctx, path, f, write), f.Close())
	}
	return replace(ctx, path, write)
}

func replace(ctx context.Context, path string, write func(io.Writer) error) (err error) {
	path = target(path)
	f, err := beside(path)
	if err != nil {
		return err
	}
	// At once where ctx ends: a sync may take longer than the process then lives.
	stop := context.AfterFunc(ctx, func() { _ = os.Remove(f.Name()) })
	defer func() {
		stop()
		if err != nil {
			_ = f.Close() // a second close does no harm
			_ = os.Remove(f.Name())
		}
	}()
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return plain(err)
	}
	if err := buffer(ctx, path, f, write); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return plain(err)
	}
	if err := f.Close(); err != nil {
		return plain(err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	// So that the name, too, survives a crash. Some file systems cannot do it.
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// buffer calls write with a buffered w that fails once ctx has ended and
// compresses where path says so.
func buffer(ctx context.Context, path string, w io.Writer, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(writer{ctx, w}, 64<<10)
	if !strings.HasSuffix(path, ".gz") {
		if err := write(out); err != nil {
			return err
		}
		return out.Flush()
	}
	// The header holds neither name nor time: the same input gives the same bytes.
	z := gzip.NewWriter(out)
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return out.Flush()
}

type writer struct {
	ctx context.Context
	w   io.Writer
}

func (w writer) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}
