package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// maxProblems is how many problems an [Error] lists, maxSkips how many skipped
// rows a [Report] does.
const (
	maxProblems = 10
	maxSkips    = 20
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Line and Column count from 1, Column in bytes; 0 where the whole file or
	// the whole line is meant.
	Line, Column int
	// Field is the column's name and Value what stands there, cut short where it
	// is long; empty where no single field is meant.
	Field, Value string
	// Message says what is wrong, what is expected and the way out.
	Message string
}

// Error says why a profile was refused. Its text has a line for each problem.
type Error struct {
	// Name is the file's name.
	Name string
	// Problems holds the first ones, in the order of the file.
	Problems []Problem
	// More counts those that are not in Problems.
	More int
	// Skippable says that Options.SkipBadRows would leave out what is wrong.
	Skippable bool
}

func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.text(e.Name))
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n%s: %s", e.Name, count(e.More, "more problem"))
	}
	if e.Skippable {
		fmt.Fprintf(&b, "\n%s: Options.SkipBadRows leaves such rows out and counts them", e.Name)
	}
	return b.String()
}

// text returns the problem as one line: name:line:column: field "value": message.
func (p Problem) text(name string) string {
	var b strings.Builder
	b.WriteString(name)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
		if p.Column > 0 {
			b.WriteString(":" + strconv.Itoa(p.Column))
		}
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + " " + strconv.Quote(p.Value) + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// problems keeps the first few problems in the order of the file, and counts
// the others.
type problems struct {
	first []Problem
	count int
}

func (s *problems) add(p Problem) {
	s.count++
	at, _ := slices.BinarySearchFunc(s.first, p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), -1) // after its equals
	})
	if at == maxProblems {
		return
	}
	p.Value = excerpt.Of(p.Value, maxValue)
	s.first = slices.Insert(s.first, at, p)
	s.first = s.first[:min(len(s.first), maxProblems)]
}

// addf adds a problem of the whole file (line 0), or of a line.
func (s *problems) addf(line int, format string, args ...any) {
	s.add(Problem{Line: line, Message: fmt.Sprintf(format, args...)})
}

// merge adds the problems of t.
func (s *problems) merge(t problems) {
	for _, p := range t.first {
		s.add(p)
	}
	s.count += t.count - len(t.first)
}

// err returns the problems as an *Error, or nil where there are none.
func (s *problems) err(name string) error {
	if s.count == 0 {
		return nil
	}
	return &Error{Name: name, Problems: s.first, More: s.count - len(s.first)}
}

// skippable is err for problems of rows that can be left out.
func (s *problems) skippable(name string) error {
	if s.count == 0 {
		return nil
	}
	return &Error{Name: name, Problems: s.first, More: s.count - len(s.first), Skippable: true}
}

// maxValue is how many bytes of a value messages show.
const maxValue = 40

// list returns "a", "a and b" or "a, b and c".
func list(s []string) string {
	if len(s) <= 1 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

// count returns "1 row" or "2 rows".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// span is the numbers from … to.
type span struct{ from, to int32 }

// spans returns what ascending numbers cover.
func spans(numbers []int32) []span {
	var all []span
	for _, n := range numbers {
		if k := len(all) - 1; k >= 0 && all[k].to == n-1 {
			all[k].to = n
		} else {
			all = append(all, span{n, n})
		}
	}
	return all
}

// gaps returns what spans leave out of 0 … end−1, and between them.
func gaps(have []span, end int32) []span {
	var missing []span
	next := int32(0)
	for _, s := range append(slices.Clip(have), span{end, end}) {
		if s.from > next {
			missing = append(missing, span{next, s.from - 1})
		}
		next = max(next, s.to+1)
	}
	return missing
}

// ranges returns spans as "0–3, 5 and 7–8", the first few of them.
func ranges(all []span) string {
	const most = 8
	var parts []string
	for i, s := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more ranges", len(all)-most))
			break
		}
		switch s.to - s.from {
		case 0:
			parts = append(parts, strconv.Itoa(int(s.from)))
		case 1:
			parts = append(parts, strconv.Itoa(int(s.from)), strconv.Itoa(int(s.to)))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", s.from, s.to))
		}
	}
	return list(parts)
}
