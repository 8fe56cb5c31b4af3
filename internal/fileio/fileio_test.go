package fileio

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func read(t *testing.T, path string, stdin io.Reader) string {
	t.Helper()
	r, err := Open(path, stdin)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"F.json", "F.json.gz"} {
		path := filepath.Join(t.TempDir(), name)
		for _, text := range []string{"first\n", "second, longer\n", ""} {
			if err := Write(t.Context(), path, nil, write(text)); err != nil {
				t.Fatal(err)
			}
			if got := read(t, path, nil); got != text {
				t.Errorf("%s: read %q, wrote %q", name, got, text)
			}
		}
		if got := names(t, filepath.Dir(path)); len(got) != 1 {
			t.Errorf("%s: left in the folder: %q", name, got)
		}
		raw, _ := os.ReadFile(path)
		if packed := bytes.HasPrefix(raw, []byte{0x1f, 0x8b}); packed != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s: compressed: %v", name, packed)
		}
	}
}

func TestStdio(t *testing.T) {
	var out bytes.Buffer
	if err := Write(t.Context(), Stdio, &out, write("text")); err != nil || out.String() != "text" {
		t.Errorf("wrote %q, %v", &out, err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "packed text")
	_ = z.Close()
	if got := read(t, Stdio, &packed); got != "packed text" {
		t.Errorf("read %q", got)
	}
	if got := read(t, Stdio, strings.NewReader("x")); got != "x" {
		t.Errorf("read %q", got)
	}
}

// TestFailure checks that neither a failing writer nor the end of the context
// changes the file or leaves anything beside it.
func TestFailure(t *testing.T) {
	full := errors.New("disk full")
	for _, test := range []struct {
		name string
		// write may end the context that Write was given.
		write func(w io.Writer, end func()) error
		want  error
	}{
		{"writer fails", func(w io.Writer, _ func()) error {
			_, _ = w.Write(make([]byte, 1<<20))
			return full
		}, full},
		{"context ends at the last byte", func(_ io.Writer, end func()) error {
			end()
			return nil
		}, context.Canceled},
		{"context ends while writing", func(w io.Writer, end func()) error {
			end()
			_, err := w.Write(make([]byte, 1<<20))
			return err
		}, context.Canceled},
		{"context has ended", func(w io.Writer, _ func()) error {
			_, err := w.Write(make([]byte, 1<<20))
			return err
		}, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "F.json")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.name == "context has ended" {
				cancel()
			}
			err := Write(ctx, path, nil, func(w io.Writer) error { return test.write(w, cancel) })
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if got := read(t, path, nil); got != "old" {
				t.Errorf("the file holds %d bytes now, want the 3 it had", len(got))
			}
			if got := names(t, dir); len(got) != 1 {
				t.Errorf("left in the folder: %q", got)
			}
		})
	}
}

func TestKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "F.json"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("F.json", link); err != nil {
		t.Skip(err)
	}
	if err := Write(t.Context(), link, nil, write("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 || read(t, path, nil) != "new" {
		t.Errorf("mode %v, content %q, %v", info.Mode(), read(t, path, nil), err)
	}
}

// TestCheck has what Write cannot do found before, and nothing left of the try.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "F.json")
	if err := os.WriteFile(file, []byte("old"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(dir, "new")} {
		if err := Check(path); err != nil {
			t.Error(err) // a file that is read-only is replaced all the same
		}
	}
	if got := names(t, dir); len(got) != 1 || read(t, file, nil) != "old" {
		t.Errorf("left in the folder: %q", got)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }()
	want := Write(t.Context(), file, nil, write("new"))
	if got := Check(file); (got == nil) != (want == nil) || got != nil && !strings.HasPrefix(got.Error(), file+": ") {
		t.Errorf("check says %v, but writing %v", got, want) // root may write anywhere
	}
}

func TestErrorsNameThePath(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "F.json")
	for _, path := range []string{missing, dir} {
		if _, err := Open(path, nil); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("open %s: %v", path, err)
		}
	}
	if err := Write(t.Context(), missing, nil, write("x")); err == nil || !strings.HasPrefix(err.Error(), missing+": ") {
		t.Errorf("write: %v", err)
	}
	for path, ok := range map[string]bool{missing: false, dir: false, filepath.Join(dir, "new"): true, Stdio: true, os.DevNull: true} {
		if err := Check(path); (err == nil) != ok {
			t.Errorf("check %s: %v", path, err)
		}
	}
	if err := Write(t.Context(), os.DevNull, nil, write("x")); err != nil {
		t.Error(err)
	}
}

// TestDamaged has what is no gzip file, for all its first bytes, say so in words.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "P.csv.gz")
	if err := os.WriteFile(path, []byte{0x1f, 0x8b, 8}, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("got %v", err)
	}
}

// TestMissingTarget has what a link leads to made where it is missing, and links that
// lead round refused; the links stay.
func TestMissingTarget(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"first": "sub/second", "sub/second": at("F.json"), "round": "round", "nowhere": "no/F.json"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Skip(err)
		}
	}
	if err := Check(at("first")); err != nil {
		t.Error(err)
	}
	if err := Write(t.Context(), at("first"), nil, write("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(at("first"))
	if err != nil || info.Mode()&os.ModeSymlink == 0 || read(t, at("F.json"), nil) != "new" {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"round", "nowhere"} {
		if err := Check(at(name)); err == nil {
			t.Errorf("check %s: no error", name)
		}
		if err := Write(t.Context(), at(name), nil, write("new")); err == nil {
			t.Errorf("write %s: no error", name)
		}
		if info, err := os.Lstat(at(name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s was replaced", name)
		}
	}
}

// TestMode has a new file of the mode that any program's new file has.
func TestMode(t *testing.T) {
	dir := t.TempDir()
	usual, ours := filepath.Join(dir, "usual"), filepath.Join(dir, "ours")
	f, err := os.Create(usual)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := Write(t.Context(), ours, nil, write("new")); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(usual)
	got, err2 := os.Stat(ours)
	if err := errors.Join(err, err2); err != nil || got.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v, %v", got.Mode(), want.Mode(), err)
	}
}

// TestLeftovers has what a killed process left removed, and nothing else.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("F", 240)+".json")
	f, err := beside(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	keep := []string{".F.json.1234567890.tmp", ".F.json.12345x7890.perseus.tmp", "F.json.1234567890.perseus.tmp", ".G.json.1234567890.perseus.tmp"}
	for _, name := range keep {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(t.Context(), path, nil, write("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Name()); err != nil {
		t.Errorf("a file that may still be written is gone: %v", err)
	}
	old := time.Now().Add(-2 * abandoned)
	for _, name := range names(t, dir) {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(t.Context(), path, nil, write("newer")); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), filepath.Join(dir, "F.json"), nil, write("x")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != len(keep)+2 {
		t.Errorf("left in the folder: %q", got)
	}
}

func TestDistinct(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"P.csv", "F.json.gz"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Link(at("P.csv"), at("hard")), os.Symlink("P.csv", at("soft")), os.Symlink("new", at("dangling")), os.Symlink(".", at("here"))); err != nil {
		t.Skip(err)
	}
	type paths = []string
	for _, test := range []struct {
		inputs, outputs paths
		want            string // part of the error
	}{
		{paths{at("P.csv")}, paths{at("F.json"), at("Q.csv")}, ""},
		{paths{at("P.csv")}, paths{at("P.csv")}, "is the input"},
		{paths{"-", at("F.json.gz")}, paths{at("here/./F.json.gz")}, "is the input"},
		{paths{at("P.csv")}, paths{at("soft")}, "is the input"},
		{paths{at("P.csv")}, paths{at("hard")}, "is the input"},
		{paths{at("soft")}, paths{at("hard")}, "is the input"},
		{nil, paths{at("new"), at("new")}, "is the output"},
		{nil, paths{at("new"), at("here/new")}, "is the output"},
		{nil, paths{at("new"), at("dangling")}, "is the output"},
		{nil, paths{at("P.csv"), at("hard")}, "is the output"},
		{paths{"-"}, paths{"-", "", os.DevNull, os.DevNull}, ""},
		{paths{os.DevNull}, paths{os.DevNull}, ""},
		{paths{at("no/P.csv")}, paths{at("no/F.json")}, ""},
	} {
		err := Distinct(test.inputs, test.outputs)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q and %q: %v, want %q", test.inputs, test.outputs, err, test.want)
		}
	}
}

// TestReadAll has a file that unpacks to more than is read refused, with its path.
func TestReadAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "F.json.gz")
	if err := Write(t.Context(), path, nil, write("text")); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(path, nil); err != nil || string(got) != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{filepath.Dir(path), path + "x"} {
		if _, err := ReadAll(bad, nil); err == nil || !strings.HasPrefix(err.Error(), bad+": ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	err := Write(t.Context(), path, nil, func(w io.Writer) error {
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range maxText>>20 + 1 {
			if _, err := w.Write(spaces); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenText(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != maxText || err == nil || err.Error() != "longer than 256 MiB, the most that is read" {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
