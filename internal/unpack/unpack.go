// Package unpack reads text that is compressed with gzip or not, whatever the name
// it comes under, and says in words that a person can act on where it is damaged,
// compressed otherwise or too long.
//
// It knows nothing of what the text means. Whatever reads files comes after it.
package unpack

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error says that the fault is with the content, not with reading it.
type Error struct {
	// Problem says what is wrong and the way out.
	Problem string
	// TooLong says that the text is longer than was allowed.
	TooLong bool
}

func (e *Error) Error() string { return e.Problem }

// Reader gives the uncompressed text of another reader.
type Reader struct {
	source source
	text   io.Reader // nil before the first read
	packed bool
	limit  int64
	left   int64 // of limit; negative once it is passed
	err    error // that all further reads return
}

// NewReader returns the uncompressed text of r, of which it reads more than it
// returns. Neither r nor the text may be longer than limit bytes: to pass the
// limit, and content that cannot be unpacked, is an *Error. Errors of r are
// returned as they are.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{source: source{r: r, left: limit}, limit: limit, left: limit}
}

// Packed says whether what was read was compressed. It is known after a read.
func (r *Reader) Packed() bool { return r.packed }

// Read reads the next bytes of the text.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.err == nil && r.text == nil {
		r.err = r.explain(r.start())
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err = r.text.Read(p[:min(int64(len(p)), r.left+1)])
	if r.left -= int64(n); r.left < 0 {
		n, err = n-1, errPassed
	}
	r.err = r.explain(err)
	return n, r.err
}

// start looks at how the text is compressed.
func (r *Reader) start() error {
	const longest = 4
	b := bufio.NewReaderSize(&r.source, 64<<10)
	r.text = b
	magic, err := b.Peek(longest)
	if err != nil && err != io.EOF {
		return err
	}
	switch m := string(magic); {
	case strings.HasPrefix(m, "\x1f\x8b"):
		r.packed = true
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		r.text = z
	case m == "PK\x03\x04":
		return &Error{Problem: `a zip file or an Excel workbook; unpack it, or save the sheet as "CSV UTF-8"`}
	case m == "\x28\xb5\x2f\xfd", strings.HasPrefix(m, "BZh"), m == "\xfd7zX":
		return &Error{Problem: "compressed, but not with gzip; use gzip or none"}
	}
	return nil
}

// errPassed marks a text or a source that passed the limit; callers see an *Error.
var errPassed = errors.New("passed the limit")

// explain returns the error that callers see: that of the source where it has one.
func (r *Reader) explain(err error) error {
	if err != nil && err != io.EOF && r.source.err != nil {
		err = r.source.err
	}
	var known *Error
	switch {
	case err == errPassed:
		return &Error{Problem: "longer than " + size(r.limit) + ", the most that is read", TooLong: true}
	case err == nil, err == io.EOF && r.text != nil, err == r.source.err, errors.As(err, &known):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		return &Error{Problem: "the gzip file is cut short; copy or make it again"}
	}
	return &Error{Problem: fmt.Sprintf("damaged gzip file (%v); copy or make it again", err)}
}

// size writes a number of bytes as people do.
func size(n int64) string {
	if n > 0 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// source reads at most left bytes and one to see that there are more, and keeps the
// error that r failed with, to tell it from damaged content.
type source struct {
	r    io.Reader
	left int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left+1)])
	if s.left -= int64(n); s.left < 0 {
		s.err = errPassed
		return n - 1, s.err
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
