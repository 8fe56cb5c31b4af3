package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perseus-energy/perseus/internal/unpack"
)

// DefaultMaxBytes is how long a profile may be, uncompressed, where the options
// do not say: 256 MiB, some four million rows.
const DefaultMaxBytes = 256 << 20

// source is a file in memory.
type source struct {
	text       string
	sha256     string
	compressed bool
}

// load reads all of r, through gzip where it starts with gzip's magic number.
// Neither what is read from r nor what comes out of it may be longer than limit.
// It fails with an *Error where the content is at fault, and with r's own error.
func load(r io.Reader, name string, limit int64) (source, error) {
	fault := func(format string, args ...any) (source, error) {
		return source{}, &Error{Name: name, Problems: []Problem{{Message: fmt.Sprintf(format, args...)}}}
	}
	in := unpack.NewReader(r, limit)
	pieces, length, err := unpack.Pieces(in)
	var content *unpack.Error
	switch {
	case errors.As(err, &content) && content.TooLong:
		return fault("%v; leave out rows that are not needed", err)
	case errors.As(err, &content):
		return fault("%v", err)
	case err != nil:
		return source{}, fmt.Errorf("%s: %w", name, err)
	}
	var text strings.Builder
	text.Grow(length)
	hash := sha256.New()
	for _, p := range pieces {
		_, _ = text.Write(p) // which does not fail
		_, _ = hash.Write(p)
	}
	return source{text.String(), hex.EncodeToString(hash.Sum(nil)), in.Packed()}, nil
}

// checkEncoding adds a problem where text is not UTF-8, as which plain ASCII
// counts, or where its line ends are neither LF nor CRLF.
func checkEncoding(text string, found *problems) {
	const remedy = `; save the file as UTF-8, which spreadsheets call "CSV UTF-8"`
	at := func(i int, format string, args ...any) {
		line := 1 + strings.Count(text[:i], "\n")
		found.add(Problem{Line: line, Column: i - strings.LastIndexByte(text[:i], '\n'), Message: fmt.Sprintf(format, args...)})
	}
	nul := strings.IndexByte(text, 0)
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		found.addf(0, "UTF-16"+remedy)
	case nul == 0 || nul == 1:
		at(nul, "a NUL byte, as UTF-16 has"+remedy)
	case nul > 0:
		at(nul, "a NUL byte: a binary file, or one that was cut off in a crash"+remedy)
	case !utf8.ValidString(text):
		i := 0
		for r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRuneInString(text[i:]) {
			i += size
		}
		at(i, "the byte 0x%02X is not UTF-8 (Latin-1 or Windows-1252?)"+remedy, text[i])
	}
	for i := 0; ; i++ {
		j := strings.IndexByte(text[i:], '\r')
		if j < 0 {
			return
		}
		if i += j; i+1 < len(text) && text[i+1] != '\n' {
			at(i, "a carriage return inside a line; end lines with LF or CRLF")
			return
		}
	}
}

// cell is one field of a line.
type cell struct {
	// value is without quotes and without the spaces around it.
	value string
	// column is where the value starts in the line, from 1, in bytes.
	column int
	spaced bool
}

// split appends the fields of a line to cells, at most limit of them. Fields are
// as in RFC 4180, but a quoted one ends on its line. ok is false where a quote is
// at fault; fault says what is wrong with it and where.
func split(line string, cells []cell, limit int) (_ []cell, fault Problem, ok bool) {
	for pos := 0; len(cells) < limit; {
		start := len(line) - len(strings.TrimLeftFunc(line[pos:], unicode.IsSpace))
		end := len(line)
		var c cell
		if start < len(line) && line[start] == '"' {
			i, doubled := start+1, false
			for {
				j := strings.IndexByte(line[i:], '"')
				if j < 0 {
					return cells, Problem{Column: start + 1, Message: "the quote is not closed on this line; close it, or delete it"}, false
				}
				if i += j + 1; i == len(line) || line[i] != '"' {
					break
				}
				doubled = true
				i++
			}
			raw := line[start+1 : i-1]
			if doubled {
				raw = strings.ReplaceAll(raw, `""`, `"`)
			}
			if j := strings.IndexByte(line[i:], ','); j >= 0 {
				end = i + j
			}
			if strings.TrimSpace(line[i:end]) != "" {
				return cells, Problem{Column: i + 1, Message: "text after a closing quote; end the field there, or double the quotes inside it"}, false
			}
			c = cell{value: strings.TrimSpace(raw), column: start + 1}
			c.spaced = len(c.value) != len(raw) || end-pos != i-start
		} else {
			if j := strings.IndexByte(line[pos:], ','); j >= 0 {
				end = pos + j
			}
			raw := line[pos:end]
			c = cell{value: strings.TrimSpace(raw), column: start + 1}
			c.spaced = len(c.value) != len(raw)
			if j := strings.IndexByte(c.value, '"'); j >= 0 {
				return cells, Problem{Column: start + j + 1, Message: "a quote inside an unquoted field; delete it, or quote the field and double the quotes inside it"}, false
			}
		}
		cells = append(cells, c)
		if end == len(line) {
			break
		}
		pos = end + 1
	}
	return cells, Problem{}, true
}
