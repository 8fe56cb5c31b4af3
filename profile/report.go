package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Report says what was read of a file, what was repaired, combined and left out.
type Report struct {
	// Name is what messages call the file, Bytes its length before compression.
	Name       string
	Bytes      int64
	Compressed bool
	// Ranked says that the file has the rank columns.
	Ranked bool
	// GPUsPerStage is the profile's.
	GPUsPerStage int
	// Rows counts the rows below the header, good or bad.
	Rows int

	// Repairs: a byte order mark; lines that end in CRLF; blank lines; headers
	// that came again; columns in another order; columns ignored, the first few
	// of them by name; values with spaces around them.
	ByteOrderMark   bool
	CRLF            int
	BlankLines      int
	RepeatedHeaders int
	Reordered       bool
	Extra           int
	ExtraColumns    []string
	Spaces          int

	// Points counts different (stage, instruction, clock). Repeats counts rows
	// beyond the first of the same member at the same point; Copies, of those,
	// the ones that are equal in time and energy to another one.
	Points, Repeats, Copies int
	// Skipped counts rows that were left out; Skips has the first of them.
	Skipped int
	Skips   []Problem

	// Ops has an entry for each instruction of each stage.
	Ops []OpReport
}

// OpReport says how an instruction of a stage was measured.
type OpReport struct {
	Stage       int
	Instruction string
	// Clocks is how many options there are, from MinMHz to MaxMHz.
	Clocks         int
	MinMHz, MaxMHz int32
	// Rises counts the steps to the next higher clock at which the time does not
	// fall. That is usual, and the values are kept.
	Rises int
}

// skip notes a row that is left out.
func (r *Report) skip(p Problem) {
	r.Skipped++
	p.Value = excerpt.Of(p.Value, maxValue)
	at, _ := slices.BinarySearchFunc(r.Skips, p, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), -1) })
	if at < maxSkips {
		r.Skips = slices.Insert(r.Skips, at, p)
		r.Skips = r.Skips[:min(len(r.Skips), maxSkips)]
	}
}

// count fills what is counted over the profile.
func (r *Report) count(p *Profile) {
	r.GPUsPerStage = p.GPUsPerStage
	for point := range runs(p.rows, samePoint) {
		r.Points++
		for member := range runs(point, sameMember) {
			r.Repeats += len(member) - 1
			for i := 1; i < len(member); i++ {
				if member[i].time == member[i-1].time && member[i].energy == member[i-1].energy {
					r.Copies++
				}
			}
		}
	}
	r.Ops = make([]OpReport, len(p.options))
	for k, options := range p.options {
		o := &r.Ops[k]
		o.Stage, o.Instruction = p.op(k)
		o.Clocks = len(options)
		o.MinMHz, o.MaxMHz = options[0].Knobs.ClockMHz, options[len(options)-1].Knobs.ClockMHz
		for i := 1; i < len(options); i++ {
			if options[i].Time >= options[i-1].Time {
				o.Rises++
			}
		}
	}
}

// maxReportLines bounds the lines about clocks.
const maxReportLines = 16

// Lines returns the report as text, a line each, the same for the same file.
func (r *Report) Lines() []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var instructions []string
	stages, steps, rises := 0, 0, 0
	for _, o := range r.Ops {
		if o.Stage == 0 {
			instructions = append(instructions, o.Instruction)
		}
		stages = o.Stage + 1
		steps += o.Clocks - 1
		rises += o.Rises
	}
	group := ""
	if r.GPUsPerStage > 1 {
		group = fmt.Sprintf(" of %d GPUs", r.GPUsPerStage)
	}
	add("%s: %s, %s%s, %s", r.Name, count(r.Rows, "row"), count(stages, "stage"), group, list(instructions))
	if r.ByteOrderMark {
		add("repaired: byte order mark removed")
	}
	if r.CRLF > 0 {
		add("repaired: CRLF at the end of %s", count(r.CRLF, "line"))
	}
	if r.Reordered {
		add("repaired: columns put in order")
	}
	if r.Extra > 0 {
		names := slices.Clone(r.ExtraColumns)
		for i, name := range names {
			names[i] = fmt.Sprintf("%q", name)
		}
		if more := r.Extra - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		add("repaired: %s ignored: %s", count(r.Extra, "column"), list(names))
	}
	if r.Spaces > 0 {
		add("repaired: spaces around %s removed", count(r.Spaces, "value"))
	}
	if r.BlankLines > 0 {
		add("repaired: %s ignored", count(r.BlankLines, "blank line"))
	}
	if r.RepeatedHeaders > 0 {
		add("repaired: %s ignored", count(r.RepeatedHeaders, "repeated header"))
	}
	if r.Skipped > 0 {
		add("skipped: %s", count(r.Skipped, "row"))
		for _, p := range r.Skips {
			lines = append(lines, "skipped: "+p.text(r.Name))
		}
		if more := r.Skipped - len(r.Skips); more > 0 {
			add("skipped: %d more", more)
		}
	}
	if r.Repeats > 0 {
		add("combined: %s of the same op, clock and GPU by their median", count(r.Repeats, "repeat"))
	}
	if r.Copies > 0 {
		add("note: %s are copies of others to the last digit; copies say nothing about noise", count(r.Copies, "repeat"))
	}
	if rises > 0 {
		add("kept as measured: the time does not fall at %d of %d steps to a higher clock", rises, steps)
	}
	return append(lines, r.clockLines(instructions)...)
}

// clockLines says how many clocks each op has, for stages that are alike at once.
func (r *Report) clockLines(instructions []string) []string {
	var lines []string
	n := len(instructions)
	clocks := func(o OpReport) string {
		if o.Clocks == 1 {
			return fmt.Sprintf("1 clock, %d MHz", o.MinMHz)
		}
		return fmt.Sprintf("%d clocks, %d–%d MHz", o.Clocks, o.MinMHz, o.MaxMHz)
	}
	stage := func(s int) string {
		ops := r.Ops[s*n : s*n+n]
		var parts []string
		for i := 0; i < n; {
			names := []string{ops[i].Instruction}
			j := i + 1
			for ; j < n && clocks(ops[j]) == clocks(ops[i]); j++ {
				names = append(names, ops[j].Instruction)
			}
			parts = append(parts, list(names)+": "+clocks(ops[i]))
			i = j
		}
		return strings.Join(parts, "; ")
	}
	stages := 0
	if n > 0 {
		stages = len(r.Ops) / n
	}
	for s := 0; s < stages; {
		text, e := stage(s), s+1
		for e < stages && stage(e) == text {
			e++
		}
		if len(lines) == maxReportLines {
			return append(lines, fmt.Sprintf("stages %d–%d: not listed", s, stages-1))
		}
		if e == s+1 {
			lines = append(lines, fmt.Sprintf("stage %d: %s", s, text))
		} else {
			lines = append(lines, fmt.Sprintf("stages %d–%d: %s", s, e-1, text))
		}
		s = e
	}
	return lines
}
