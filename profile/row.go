package profile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// Bounds of single values. Those of time and energy are unit's.
const (
	maxStage       = 1<<16 - 1
	maxRank        = 1<<24 - 1
	maxInstruction = 64 // bytes, and different ones
	// GPUs that are or were sold run at 100 to 3,200 MHz.
	minClock = 20
	maxClock = 10_000
	// What one GPU may draw, in mW: an idle one of the smallest draws over 1 W,
	// the largest module at most 2.5 kW.
	minPower = 1_000
	maxPower = 20_000_000
)

// row is one measurement, in the integer units of package unit.
type row struct {
	stage, instruction, clock, member int32
	others                            int32 // which cp_rank and ep_rank, until members are numbered
	line                              int32
	time                              unit.Time
	energy                            unit.Energy
}

// power returns the row's mean power in mW, rounded down.
func (r row) power() int64 { return int64(r.energy) / int64(r.time) }

// kind says what a bad row may mean for the whole file: where most rows have a
// problem of one kind, the file's unit is wrong and not the rows.
type kind uint8

const (
	kindOther     kind = iota
	kindClock          // no clock of a GPU in this unit
	kindMagnitude      // no time, energy or power of an op in these units
	kinds
)

type found struct {
	kind kind
	Problem
}

// row checks one row and keeps it; its problems go to rd.scratch.
func (rd *reader) row(number int, line string, cells []cell) {
	if len(cells) != rd.width {
		rd.scratch = append(rd.scratch, found{kindOther, rd.miscounted(line, cells)})
		return
	}
	for _, c := range cells {
		if c.spaced {
			rd.report.Spaces++
		}
	}
	if !slices.ContainsFunc(cells, func(c cell) bool { return c.value != "" }) {
		rd.scratch = append(rd.scratch, found{kindOther, Problem{Column: 1, Field: "row", Value: line, Message: "all fields are empty; delete the row"}})
		return
	}
	r := row{line: int32(number)}
	at := rank{line: r.line}
	if rd.report.Ranked {
		at.rank = rd.whole(fieldRank, cells, maxRank)
		at.dp = rd.whole(fieldDP, cells, maxRank)
		at.pp = rd.whole(fieldPP, cells, maxRank)
		at.tp = rd.whole(fieldTP, cells, maxRank)
		if rd.column[fieldCP] >= 0 {
			at.cp = rd.whole(fieldCP, cells, maxStage)
		}
		if rd.column[fieldEP] >= 0 {
			at.ep = rd.whole(fieldEP, cells, maxStage)
		}
		r.member, r.others = at.tp, rd.ranks.others(at.cp, at.ep)
	}
	r.stage = rd.whole(fieldStage, cells, maxStage)
	name := rd.instruction(cells)
	r.clock = rd.clock(cells)
	rd.measured(&r, cells)
	if len(rd.scratch) > 0 {
		return
	}
	var known bool
	if r.instruction, known = rd.names[name]; !known {
		if len(rd.names) == maxInstruction {
			rd.conflicts.addf(number, "more than %d different instructions; is the column right?", maxInstruction)
			return
		}
		r.instruction = int32(len(rd.names))
		rd.names[strings.Clone(name)] = r.instruction
	}
	if rd.report.Ranked {
		rd.ranks.add(at, r.stage, &rd.conflicts)
	}
	rd.rows = append(rd.rows, r)
}

// note files the problems of the row that was read last.
func (rd *reader) note(number int) {
	if len(rd.scratch) == 0 {
		return
	}
	var seen [kinds]bool
	for i, f := range rd.scratch {
		f.Line = number
		rd.bad[f.kind].add(f.Problem)
		if !seen[f.kind] {
			seen[f.kind] = true
			rd.badRows[f.kind]++
		}
		if i == 0 {
			rd.report.skip(f.Problem)
		}
	}
}

// complain adds a problem of the row. Arguments that cost something are Stringers,
// for only the first few problems are put into words.
func (rd *reader) complain(f field, c cell, k kind, format string, args ...any) {
	if rd.full(k) {
		rd.scratch = append(rd.scratch, found{kind: k})
		return
	}
	rd.scratch = append(rd.scratch, found{k, Problem{
		Column: c.column, Field: f.String(), Value: c.value, Message: fmt.Sprintf(format, args...),
	}})
}

// full says that problems of kind k are counted only.
func (rd *reader) full(k kind) bool {
	return rd.report.Skipped >= maxSkips && rd.bad[k].count >= maxProblems
}

// miscounted is the problem of a row that has too few or too many fields.
func (rd *reader) miscounted(line string, cells []cell) Problem {
	if rd.full(kindOther) {
		return Problem{}
	}
	p := Problem{Field: "row", Value: line}
	have := count(len(cells), "field")
	if len(cells) > rd.width {
		p.Column = cells[rd.width].column
		p.Message = fmt.Sprintf("%s where the header has %d; write decimals with a point, and quote text that has commas", have, rd.width)
		return p
	}
	p.Column = len(line) + 1
	p.Message = fmt.Sprintf("%s where the header has %d", have, rd.width)
	if i := strings.IndexAny(line, ";\t|"); i >= 0 {
		p.Column = i + 1
		p.Message += fmt.Sprintf("; is %q the separator? separate fields with commas", line[i])
	} else {
		p.Message += "; complete or delete the row"
	}
	return p
}

// whole returns a number from 0 to limit.
func (rd *reader) whole(f field, cells []cell, limit int64) int32 {
	c := cells[rd.column[f]]
	if v, err := strconv.ParseUint(c.value, 10, 31); err == nil && int64(v) <= limit {
		return int32(v)
	}
	v, exact, err := unit.ParseDecimal(c.value, 0, unit.Nearest)
	switch {
	case errors.Is(err, unit.ErrSyntax):
		rd.complain(f, c, kindOther, "%s", explanation{c.value, "0, 1, 2, …"})
	case err == nil && !exact:
		rd.complain(f, c, kindOther, "not whole; write 0, 1, 2, …")
	case err != nil || v < 0 || v > limit:
		rd.complain(f, c, kindOther, "outside 0 … %d", limit)
	}
	return int32(v)
}

func (rd *reader) instruction(cells []cell) string {
	c := cells[rd.column[fieldInstruction]]
	fault := ""
	for i, b := range []byte(c.value) {
		letter := b >= 'a' && b <= 'z'
		if !letter && (i == 0 || b != '-' && b != '_' && (b < '0' || b > '9')) {
			fault = "a name has small letters, digits, - and _, such as forward or backward"
			if lower := strings.ToLower(c.value); fieldOf(lower) == fields && (lower == "forward" || lower == "backward") {
				fault = "write " + lower
			}
			break
		}
	}
	switch {
	case c.value == "":
		fault = "empty; name the op, such as forward or backward"
	case len(c.value) > maxInstruction:
		fault = fmt.Sprintf("longer than %d bytes", maxInstruction)
	}
	if fault != "" {
		rd.complain(fieldInstruction, c, kindOther, "%s", fault)
	}
	return c.value
}

func (rd *reader) clock(cells []cell) int32 {
	c := cells[rd.column[fieldFrequency]]
	v, exact, err := unit.ParseDecimal(c.value, rd.scales.frequency.digits, unit.Nearest)
	switch {
	case errors.Is(err, unit.ErrSyntax):
		rd.complain(fieldFrequency, c, kindOther, "%s", explanation{c.value, "1410"})
	case err == nil && v == 0 && exact:
		rd.complain(fieldFrequency, c, kindOther, "zero; write the clock at which this was measured")
	case strings.HasPrefix(c.value, "-"):
		rd.complain(fieldFrequency, c, kindOther, "negative")
	case err != nil || v < minClock || v > maxClock:
		rd.complain(fieldFrequency, c, kindClock, "not a GPU's clock in %s, %d … %d MHz%s", rd.scales.frequency.name, minClock, maxClock, clockSuggestion(c.value))
	case !exact:
		rd.complain(fieldFrequency, c, kindOther, "not a whole number of MHz; write the clock that was set")
	}
	return int32(v)
}

// measured reads time and energy.
func (rd *reader) measured(r *row, cells []cell) {
	t, e := cells[rd.column[fieldTime]], cells[rd.column[fieldEnergy]]
	hint := suggestion{rd.scales, t.value, e.value}
	time, ok := rd.positive(fieldTime, t, rd.scales.time, unit.Up, hint)
	energy, also := rd.positive(fieldEnergy, e, rd.scales.energy, unit.Nearest, hint)
	if !ok || !also {
		return
	}
	r.time, r.energy = unit.Time(time), unit.Energy(energy)
	power := r.power()
	switch {
	case r.time > unit.MaxOpTime:
		rd.complain(fieldTime, t, kindMagnitude, "longer than an hour%s", hint)
	case power < minPower:
		rd.complain(fieldEnergy, e, kindMagnitude, "in a time of %v that is %s, too little for a GPU%s", r.time, watts(power), hint)
	case power > maxPower:
		rd.complain(fieldEnergy, e, kindMagnitude, "in a time of %v that is %s, too much for a GPU%s", r.time, watts(power), hint)
	case r.energy > unit.MaxOpEnergy:
		rd.complain(fieldEnergy, e, kindMagnitude, "more than %v%s", unit.MaxOpEnergy, hint)
	}
}

// positive returns a number greater than 0 in ns or pJ.
func (rd *reader) positive(f field, c cell, s scale, r unit.Rounding, hint suggestion) (v int64, ok bool) {
	v, exact, err := unit.ParseDecimal(c.value, s.digits, r)
	switch {
	case errors.Is(err, unit.ErrSyntax):
		rd.complain(f, c, kindOther, "%s", explanation{c.value, "0.124"})
	case strings.HasPrefix(c.value, "-") && (v != 0 || !exact || err != nil) && f == fieldEnergy:
		rd.complain(f, c, kindOther, "negative: did the counter step back? measure again")
	case strings.HasPrefix(c.value, "-") && (v != 0 || !exact || err != nil):
		rd.complain(f, c, kindOther, "negative; measure again")
	case err != nil:
		rd.complain(f, c, kindMagnitude, "absurd in %s%s", s.name, hint)
	case v == 0 && !exact:
		rd.complain(f, c, kindMagnitude, "absurdly small in %s%s", s.name, hint)
	case v == 0 && f == fieldEnergy:
		rd.complain(f, c, kindOther, "zero: GPUs update the counter every 20 to 100 ms; measure many runs of the op together and divide")
	case v == 0:
		rd.complain(f, c, kindOther, "zero; measure again, or write a small time if the op does nothing")
	default:
		return v, true
	}
	return 0, false
}

// explanation says why value is not a decimal number such as example.
type explanation struct{ value, example string }

func (x explanation) String() string {
	s := x.value
	switch strings.ToLower(strings.Trim(s, "+-[]() ")) {
	case "":
		if strings.Trim(s, " ") == "" {
			return "empty; measure this again, or delete the row"
		}
	case "nan", "n/a", "na", "null", "nil", "none", "not supported", "unknown error", "err!", "#n/a", "<na>":
		return "nothing was measured here; measure this again, or delete the row"
	case "inf", "infinity":
		return "infinite; measure this again, or delete the row"
	}
	if point := strings.Replace(s, ",", ".", 1); point != s {
		if _, _, err := unit.ParseDecimal(point, 0, unit.Nearest); err == nil {
			whole, decimals, _ := strings.Cut(s, ",")
			if len(decimals) == 3 && strings.Trim(whole, "+-0") != "" && !strings.Contains(decimals, ".") {
				return fmt.Sprintf("a comma in a number; write %s, or %s if it separates thousands", point, whole+decimals)
			}
			return "decimal comma; write " + point
		}
	}
	for i := len(s); i > 0; i-- {
		if _, _, err := unit.ParseDecimal(strings.TrimSpace(s[:i]), 0, unit.Nearest); err == nil && i < len(s) {
			if len(s) <= maxValue && strings.Trim(s[i:], " abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ") == "" {
				return fmt.Sprintf("text after the number; write %s, and give its unit with Options.Units", strings.TrimSpace(s[:i]))
			}
			break
		}
	}
	return "not a number; write it as in " + x.example
}

// watts is a power in mW.
type watts int64

func (w watts) String() string {
	if w < 10_000 {
		return fmt.Sprintf("%d.%03d W", int64(w/1000), int64(w%1000))
	}
	return fmt.Sprintf("%d W", int64(w/1000))
}
