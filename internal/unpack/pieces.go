package unpack

import "io"

// The lengths of the first and the longest pieces.
const (
	firstPiece   = 64 << 10
	longestPiece = 16 << 20
)

// Pieces returns all of r, in pieces, and their length together. What is refused for
// its length takes no more memory than that length: nothing is copied to grow. Where
// it fails it returns no pieces, and the error of r.
func Pieces(r io.Reader) (pieces [][]byte, length int, err error) {
	for size := firstPiece; ; size = min(2*size, longestPiece) {
		piece, n := make([]byte, size), 0
		for n < len(piece) && err == nil {
			var more int
			more, err = r.Read(piece[n:])
			n += more
		}
		if n > 0 {
			pieces, length = append(pieces, piece[:n]), length+n
		}
		switch {
		case err == io.EOF:
			return pieces, length, nil
		case err != nil:
			return nil, 0, err
		}
	}
}

// ReadAll returns all of r, as io.ReadAll does; it takes at most twice the length of
// the text, and once that where r fails.
func ReadAll(r io.Reader) ([]byte, error) {
	pieces, length, err := Pieces(r)
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	all := make([]byte, 0, length)
	for _, p := range pieces {
		all = append(all, p...)
	}
	return all, nil
}
