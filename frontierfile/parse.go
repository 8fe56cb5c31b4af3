package frontierfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perseus-energy/perseus/unit"
)

// parser reads JSON from a text in memory, strictly: known fields only, each
// once. Its first error stays; after it all methods do nothing and return zero.
type parser struct {
	name string
	text []byte
	pos  int
	path []step
	err  error
}

// step is a field's name or, where that is empty, an index.
type step struct {
	field string
	index int
}

// fail records an error at the given place.
func (p *parser) fail(pos int, format string, args ...any) {
	if p.err != nil {
		return
	}
	line, column := p.place(pos)
	p.err = &SyntaxError{Name: p.name, Line: line, Column: column, Field: fieldOf(p.path), Problem: fmt.Sprintf(format, args...)}
	p.pos = len(p.text)
}

// failValue records a value that cannot be.
func (p *parser) failValue(pos int, format string, args ...any) {
	if p.err != nil {
		return
	}
	e := &ValueError{Name: p.name, Point: -1, Problem: fmt.Sprintf(format, args...)}
	e.Line, e.Column = p.place(pos)
	path := p.path
	if len(path) > 2 && path[0].field == "points" {
		e.Point, path = path[1].index, path[2:]
	}
	e.Field = fieldOf(path)
	p.err, p.pos = e, len(p.text)
}

func (p *parser) place(pos int) (line, column int) {
	before := p.text[:min(pos, len(p.text))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// failExpecting records that something else than what was expected is at pos.
func (p *parser) failExpecting(pos int, expected string) {
	found := "the end of the file"
	if pos < len(p.text) {
		end := pos + 1
		for end < len(p.text) && end < pos+24 && !bytes.ContainsRune([]byte(" \t\r\n,:[]{}"), rune(p.text[end])) {
			end++
		}
		found = strconv.Quote(string(p.text[pos:end]))
	}
	if pos >= len(p.text) && pos > 0 {
		expected += ": the file is truncated"
	}
	p.fail(pos, "found %s, expected %s", found, expected)
}

func fieldOf(path []step) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.field == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case b.Len() > 0:
			b.WriteString("." + s.field)
		default:
			b.WriteString(s.field)
		}
	}
	return b.String()
}

// peek returns the next byte that is not white space, or 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c if it comes next.
func (p *parser) take(c byte) bool {
	if p.peek() != c || p.pos >= len(p.text) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(c byte) {
	if !p.take(c) {
		p.failExpecting(p.pos, strconv.QuoteRune(rune(c)))
	}
}

// end checks that nothing follows.
func (p *parser) end() {
	p.peek()
	if p.err == nil && p.pos < len(p.text) {
		p.failExpecting(p.pos, "the end of the file")
	}
}

// fieldReader reads the value of one field of an object.
type fieldReader struct {
	name     string
	read     func()
	optional bool
}

// object reads an object with the given fields, in any order.
func (p *parser) object(fields ...fieldReader) {
	p.peek()
	start := p.pos
	p.expect('{')
	seen := make([]bool, len(fields))
	for i := 0; p.err == nil && !p.take('}'); i++ {
		if i > 0 {
			p.expect(',')
		}
		p.peek()
		at := p.pos
		key := p.string()
		p.expect(':')
		if p.err != nil {
			return
		}
		k := 0
		for k < len(fields) && fields[k].name != key {
			k++
		}
		if k == len(fields) {
			p.fail(at, "unknown field %q; is the file from a later version of perseus?", key)
			return
		}
		p.path = append(p.path, step{field: key})
		if seen[k] {
			p.fail(at, "the field is there twice")
			return
		}
		seen[k] = true
		fields[k].read()
		p.path = p.path[:len(p.path)-1]
	}
	for k, f := range fields {
		if p.err == nil && !seen[k] && !f.optional {
			p.fail(start, "field %q is missing", f.name)
		}
	}
}

// array reads an array, calling element for each of its values.
func (p *parser) array(element func(i int)) {
	p.expect('[')
	p.path = append(p.path, step{})
	for i := 0; p.err == nil && !p.take(']'); i++ {
		if i > 0 {
			p.expect(',')
		}
		p.path[len(p.path)-1].index = i
		element(i)
	}
	p.path = p.path[:len(p.path)-1]
}

// maxString bounds names, actions and hashes.
const maxString = 4096

func (p *parser) string() string {
	if p.peek() != '"' {
		p.failExpecting(p.pos, "a string")
		return ""
	}
	start := p.pos
	escaped := false
	for i := start + 1; i < len(p.text) && i-start < maxString; i++ {
		switch c := p.text[i]; {
		case c == '"':
			p.pos = i + 1
			return p.unquote(start, escaped)
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			p.fail(i, "control character %#02x in a string", c)
			return ""
		}
	}
	if len(p.text)-start <= maxString {
		p.fail(start, "the file ends within this string: it is truncated")
		return ""
	}
	p.fail(start, "a string does not end within %d bytes", maxString)
	return ""
}

func (p *parser) unquote(start int, escaped bool) string {
	text := p.text[start:p.pos]
	if !utf8.Valid(text) {
		p.fail(start, "a string that is not UTF-8")
		return ""
	}
	if !escaped {
		return string(text[1 : len(text)-1])
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		p.fail(start, "string %s: %v", text, err)
	}
	return s
}

// number returns the text of a number of JSON's grammar.
func (p *parser) number() []byte {
	p.peek()
	start := p.pos
	i := start
	digits := func() int {
		from := i
		for i < len(p.text) && p.text[i] >= '0' && p.text[i] <= '9' {
			i++
		}
		return i - from
	}
	is := func(set string) bool { return i < len(p.text) && strings.IndexByte(set, p.text[i]) >= 0 }
	if is("-") {
		i++
	}
	leadingZero := is("0")
	n := digits()
	ok := n == 1 || n > 1 && !leadingZero
	if ok && is(".") {
		i++
		ok = digits() > 0
	}
	if ok && is("eE") {
		i++
		if is("+-") {
			i++
		}
		ok = digits() > 0
	}
	if !ok {
		p.failExpecting(start, "a number")
		return nil
	}
	p.pos = i
	return p.text[start:i]
}

// decimal reads a number of at most the given decimals, as an integer of the
// last of them, between least and most.
func (p *parser) decimal(digits int, least, most int64) int64 {
	p.peek()
	at := p.pos
	text := p.number()
	if p.err != nil {
		return 0
	}
	v, ok := plainDecimal(text, digits)
	if !ok {
		exact, err := false, error(nil)
		v, exact, err = unit.ParseDecimal(string(text), digits, unit.Nearest)
		if err != nil {
			p.failValue(at, "%v", err)
			return 0
		}
		if !exact {
			p.failValue(at, "%s has more than %d decimals", text, digits)
			return 0
		}
	}
	if v < least || v > most {
		p.failValue(at, "%s is outside %s … %s", text, unit.AppendDecimal(nil, least, digits), unit.AppendDecimal(nil, most, digits))
		return 0
	}
	return v
}

// plainDecimal is the quick way for short numbers without exponent.
func plainDecimal(text []byte, digits int) (v int64, ok bool) {
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) > 18 {
		return 0, false
	}
	point := false
	for _, c := range text {
		switch {
		case c == '.':
			point = true
		case c < '0' || c > '9':
			return 0, false
		case point && digits == 0:
			return 0, false
		default:
			v = 10*v + int64(c-'0')
			if point {
				digits--
			}
		}
	}
	for range digits {
		if v > 1<<58 {
			return 0, false
		}
		v *= 10
	}
	if negative {
		v = -v
	}
	return v, true
}

func (p *parser) integer(least, most int64) int64 { return p.decimal(0, least, most) }

// skip passes over one value without looking at more than its extent.
func (p *parser) skip() {
	switch p.peek() {
	case '"':
		p.string()
		return
	case '[', '{':
	default:
		p.literal()
		return
	}
	start, depth := p.pos, 0
	for i := p.pos; i < len(p.text); i++ {
		switch p.text[i] {
		case '"':
			p.pos = i
			if p.string(); p.err != nil {
				return
			}
			i = p.pos - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				p.pos = i + 1
				return
			}
		}
	}
	p.fail(start, "the file ends within what starts here: it is truncated")
}

// literal passes over a number, true, false or null.
func (p *parser) literal() {
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(p.text[p.pos:], []byte(word)) {
			p.pos += len(word)
			return
		}
	}
	p.number()
}
