// Package excerpt brings what others wrote into a form that a message can hold: not too long, in one line.
//
// It imports nothing of this module, and comes before whatever reports errors.
package excerpt

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns s, cut to at most most bytes and an ellipsis where it is longer. It
// cuts between characters, never inside one. What it returns does not keep s in
// memory.
func Of(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && most-cut < utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	if cut > 0 && !utf8.RuneStart(s[cut]) {
		cut = most // no UTF-8 at all
	}
	return strings.Clone(s[:cut]) + "…"
}

// Quoted returns what Of does, quoted as in Go.
func Quoted(s string, most int) string { return strconv.Quote(Of(s, most)) }

// Line returns s as it can be shown on a terminal: in one line, with a blank for
// each character that is not printed and could steer it.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
