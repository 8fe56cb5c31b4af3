package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteZeus writes the plan as the Python expression that Zeus's schedulers
// PointSolution3D (one list a pipeline rank) and PointSolution (the same where
// there is one GPU a rank) load: for each rank the names and clocks in MHz of
// its ops in execution order. Comments around it say what the plan is.
func (p *Plan) WriteZeus(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s: %s, %d ranks, %d microbatches\n", Format, oneLine(p.Schedule), len(p.Ranks), p.Microbatches)
	fmt.Fprintf(out, "# iteration %v, energy %v\n", p.Time, p.Energy)
	_, _ = out.WriteString("[\n") // Flush reports
	for _, ops := range p.Ranks {
		_ = out.WriteByte('[')
		for i := range ops {
			if i > 0 {
				_, _ = out.WriteString(", ")
			}
			fmt.Fprintf(out, "(%s, %d)", pythonString(ops[i].Instruction), ops[i].Knobs.ClockMHz)
		}
		_, _ = out.WriteString("],\n")
	}
	_, _ = out.WriteString("]\n")
	return out.Flush()
}

// pythonString returns s as a string literal of Python.
func pythonString(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// oneLine returns s without what could end a comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
