package unpack

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadAll(t *testing.T) {
	for _, n := range []int{0, 1, firstPiece - 1, firstPiece, firstPiece + 1, 3 * firstPiece, 3*firstPiece + 1, 2*longestPiece + 7} {
		want := bytes.Repeat([]byte("perseus"), n/7+1)[:n]
		for name, r := range map[string]io.Reader{
			"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)), "error with data": iotest.DataErrReader(bytes.NewReader(want)),
		} {
			if got, err := ReadAll(r); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %s: got %d, %v", n, name, len(got), err)
			}
		}
	}
	for _, fault := range []error{errors.New("cable pulled"), io.ErrUnexpectedEOF} {
		if got, err := ReadAll(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(fault))); err != fault || got != nil {
			t.Errorf("got %q, %v; want %v", got, err, fault)
		}
	}
}

// TestMemory has a bomb take no more than the limit, and a piece.
func TestMemory(t *testing.T) {
	const limit = 64 << 20
	bomb := packed(t, strings.Repeat(" ", 2*limit))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadAll(NewReader(strings.NewReader(bomb), limit))
	runtime.ReadMemStats(&after)
	var content *Error
	if !errors.As(err, &content) || !content.TooLong {
		t.Errorf("got %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > limit+longestPiece+1<<20 {
		t.Errorf("allocated %d bytes in all for a limit of %d", used, limit)
	}
}
