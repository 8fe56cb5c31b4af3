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
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// Bounds of what is read of a file, and what it unpacks to, so that a small file
// cannot take all memory. Readers may have lower ones. maxText is for readers that
// hold what they have read more than once.
const (
	maxBytes = 1 << 30
	maxText  = maxBytes / 4
)

// Open returns the content of the file at path, or of stdin where path is "-",
// unpacked where it starts as gzip does. The caller closes it. Errors name the
// path; a folder is one. Errors of reading do not: whoever reads knows the name.
func Open(path string, stdin io.Reader) (io.ReadCloser, error) {
	return open(path, stdin, maxBytes)
}

// OpenText is Open for all files but profiles, frontiers and graphs: plans, traces,
// orders, factors. They may be a quarter as long.
func OpenText(path string, stdin io.Reader) (io.ReadCloser, error) {
	return open(path, stdin, maxText)
}

// ReadAll returns the content of the file at path, as Open does. Errors name it.
func ReadAll(path string, stdin io.Reader) ([]byte, error) {
	r, err := Open(path, stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := unpack.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(path), err)
	}
	return text, nil
}

func open(path string, stdin io.Reader, limit int64) (io.ReadCloser, error) {
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
	in.Reader = unpack.NewReader(source, limit)
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
	if path == "" {
		return errors.New("a file's name is empty")
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: is a folder, expected a file", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // a device or a pipe: to open it could wait for its other end
	}
	real, err := target(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Dir(real)); err != nil {
		return plain(err) // names the folder
	}
	f, err := beside(real)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// target returns the path of the file that path leads to: a link stays a link, and
// what it points to is replaced, or made where it is missing.
func target(path string) (string, error) {
	const most = 40 // as Linux follows them
	for range most {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link: it is made
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: links that lead round", path)
}

// The ends of a temporary file's name, between which are digits alone.
const (
	suffix = ".perseus.tmp"
	digits = 10
)

// beside returns a new file in the folder of path, to take its name later. Its mode
// is what the umask leaves to new files.
func beside(path string) (*os.File, error) {
	folder, prefix := filepath.Dir(path), prefixOf(path)
	tidy(folder, prefix)
	for {
		name := fmt.Sprintf("%s%0*d%s", prefix, digits, rand.Uint32(), suffix)
		f, err := os.OpenFile(filepath.Join(folder, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // as any new file: the umask says who may read it
		switch {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
		default:
			return f, nil
		}
	}
}

// prefixOf returns how the names of temporary files for path begin. Names are at
// most 255 bytes long.
func prefixOf(path string) string {
	base := filepath.Base(path)
	return "." + base[:min(len(base), 200)] + "."
}

// abandoned is after how long without a change a temporary file is of a process
// that was killed: what writes it does so in seconds.
const abandoned = time.Hour

// tidy removes the temporary files with a prefix that killed processes left.
func tidy(folder, prefix string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // to make a file there may work all the same
	}
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), prefix)
		middle, also := strings.CutSuffix(middle, suffix)
		if !ok || !also || len(middle) != digits || strings.Trim(middle, "0123456789") != "" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// Distinct returns an error where one of the outputs is one of the inputs or
// another output, whatever name it goes by: to write it would destroy the other.
// Standard input and output, devices and empty names are left out.
func Distinct(inputs, outputs []string) error {
	for i, out := range outputs {
		for _, in := range inputs {
			if same(out, in) {
				return fmt.Errorf("%s: is the input %s too, which would be lost; name another file for the output", out, in)
			}
		}
		for _, other := range outputs[:i] {
			if same(out, other) {
				return fmt.Errorf("%s: is the output %s too; name another file for one of them", out, other)
			}
		}
	}
	return nil
}

// same says whether two paths lead to one file, or would once it is made.
func same(a, b string) bool {
	if a == "" || b == "" || a == Stdio || b == Stdio {
		return false
	}
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return one.Mode().IsRegular() && os.SameFile(one, two)
	}
	if err == nil || err2 == nil {
		return false
	}
	a, err = made(a)
	b, err2 = made(b)
	return err == nil && err2 == nil && a == b
}

// made returns the absolute path of a file that is still to be made.
func made(path string) (string, error) {
	path, err := target(path)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(folder, filepath.Base(path)))
}

// Write calls write with where path leads: a new file that replaces path once
// write has returned nil and its bytes are on disk, or stdout where path is "-".
// Where write fails or ctx ends the file at path stays as it was and nothing is
// left beside it; a process that is killed leaves a hidden file, which goes when the
// same path is written again an hour later or more. A new file has the mode that
// the umask leaves, an old one keeps its own. A path that is there and is no regular file (/dev/null, a
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
	if path, err = target(path); err != nil {
		return err
	}
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
	if info, err := os.Stat(path); err == nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return plain(err)
		}
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
