package profile

import (
	"fmt"
	"io"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/internal/filekind"
)

// Options say how [Read] takes a file.
type Options struct {
	// Units are the units of the columns.
	Units Units
	// SkipBadRows leaves out rows that are wrong by themselves or against their
	// neighbours, and counts them in the report, instead of failing.
	SkipBadRows bool
	// MaxBytes bounds the file's length, uncompressed; 0 means DefaultMaxBytes.
	MaxBytes int64
}

// field is a column that means something.
type field uint8

const (
	fieldRank field = iota
	fieldDP
	fieldPP
	fieldTP
	fieldStage
	fieldInstruction
	fieldFrequency
	fieldTime
	fieldEnergy
	// Optional, beside the first four.
	fieldCP
	fieldEP
	fields // how many there are
)

func (f field) String() string {
	return [...]string{"rank", "dp_rank", "pp_rank", "tp_rank", "stage", "instruction", "frequency", "time", "energy", "cp_rank", "ep_rank"}[f]
}

// fieldOf returns the field with a name, or fields where there is none.
func fieldOf(name string) field {
	for f := range fields {
		if f.String() == name {
			return f
		}
	}
	return fields
}

const (
	shortHeader = "stage,instruction,frequency,time,energy"
	maxColumns  = 1000
)

// Read returns the profile in r, a CSV file of one of the forms
//
//	stage,instruction,frequency,time,energy
//	rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy
//
// the latter with cp_rank or ep_rank too, where there are such groups,
// compressed with gzip or not; name is what messages call it. A byte order mark,
// CRLF, blank lines, repeated headers, columns in another order, columns of
// other names, and spaces around values are repaired and reported. All that
// would need a guess fails with an *[Error], which says where it is and what to
// do; docs/profiles.md lists the checks. Errors of r itself are returned as they
// are. What is returned does not depend on the order of the rows, and none of
// its options is one that [dag.NewCurve] refuses, whatever the blocking power up
// to 1 kW. O(rows·log rows); the whole file is held in memory.
func Read(r io.Reader, name string, opt Options) (*Profile, error) {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	scales, err := opt.Units.scales()
	if err != nil {
		return nil, err
	}
	src, err := load(r, name, opt.MaxBytes)
	if err != nil {
		return nil, err
	}
	var found problems
	checkEncoding(src.text, &found)
	if err := found.err(name); err != nil {
		return nil, err
	}
	if kind := filekind.Of([]byte(src.text[:min(len(src.text), 1<<11)])); kind != "" && kind != filekind.Profile {
		return nil, &Error{Name: name, Problems: []Problem{{Message: "this seems to be " + kind + "; expected a profile, CSV whose first line is " + shortHeader}}}
	}
	rd := reader{
		opt: opt, scales: scales, names: map[string]int32{},
		report: Report{Name: name, Bytes: int64(len(src.text)), Compressed: src.compressed},
	}
	if err := rd.scan(src.text); err != nil {
		return nil, err
	}
	p, err := rd.profile()
	if err != nil {
		return nil, err
	}
	p.SHA256, p.Units = src.sha256, opt.Units
	return p, nil
}

// reader holds what is known of a file while it is read.
type reader struct {
	opt    Options
	scales columnScales
	report Report

	text         string
	header       string // the header's line
	width        int    // how many columns it has
	column       [fields]int
	names        map[string]int32 // instructions, numbered as they come
	instructions []string         // by name, once all rows are read
	rows         []row
	ranks        ranks

	bad       [kinds]problems
	conflicts problems
	badRows   [kinds]int
	scratch   []found // of one row
}

// scan reads header and rows.
func (rd *reader) scan(text string) error {
	const mark = "\ufeff"
	if text, rd.report.ByteOrderMark = strings.CutPrefix(text, mark); strings.TrimSpace(text) == "" {
		return rd.fail(Problem{Message: "the file is empty; its first line must be " + shortHeader})
	}
	rd.text = text
	rd.rows = make([]row, 0, min(strings.Count(text, "\n"), 1<<16))
	var cells []cell
	blank := 0 // not yet known whether they are at the end
	for number := 1; text != ""; number++ {
		line, rest, ended := strings.Cut(text, "\n")
		text = rest
		if stripped, found := strings.CutSuffix(line, "\r"); found {
			line = stripped
			if ended {
				rd.report.CRLF++
			}
		}
		if strings.TrimSpace(line) == "" {
			blank++
			continue
		}
		if rd.header == "" {
			if err := rd.readHeader(number, line); err != nil {
				return err
			}
			continue
		}
		if strings.TrimPrefix(line, mark) == rd.header {
			rd.report.RepeatedHeaders++
			continue
		}
		rd.report.Rows++
		var fault Problem
		var ok bool
		cells, fault, ok = split(line, cells[:0], rd.width+100)
		rd.scratch = rd.scratch[:0]
		if ok {
			rd.row(number, line, cells)
		} else {
			fault.Field, fault.Value = "row", line
			rd.scratch = append(rd.scratch, found{kindOther, fault})
		}
		rd.note(number)
	}
	rd.report.BlankLines = blank
	if rd.report.Rows == 0 {
		return rd.fail(Problem{Message: "no row follows the header"})
	}
	return rd.rowsUsable()
}

func (rd *reader) fail(p Problem) error {
	return &Error{Name: rd.report.Name, Problems: []Problem{p}}
}

// readHeader learns which columns there are.
func (rd *reader) readHeader(number int, line string) error {
	cells, fault, ok := split(line, nil, maxColumns+1)
	if !ok {
		fault.Line = number
		return rd.fail(fault)
	}
	if len(cells) > maxColumns {
		return rd.fail(Problem{Line: number, Message: fmt.Sprintf("more than %d columns; the header must be %s", maxColumns, shortHeader)})
	}
	if i := strings.IndexAny(line, ";\t|"); i >= 0 && len(cells) == 1 {
		return rd.fail(Problem{Line: number, Column: i + 1, Message: fmt.Sprintf(
			"%q separates the columns; separate them with commas, and write decimals with a point", line[i])})
	}
	if c := cells[0]; c.value == "" || strings.ContainsAny(c.value[:1], "0123456789.-+") {
		return rd.fail(Problem{Line: number, Column: c.column, Message: "the header is missing: the first line must be " + shortHeader})
	}
	rd.header, rd.width = line, len(cells)
	var found problems
	var extra []string
	for f := range rd.column {
		rd.column[f] = -1
	}
	last := field(0)
	for i, c := range cells {
		f := fieldOf(c.value)
		switch {
		case f == fields:
			extra = append(extra, c.value)
		case rd.column[f] >= 0:
			found.add(Problem{Line: number, Column: c.column, Field: "column", Value: c.value, Message: "there is one of this name before it; delete or rename one"})
		default:
			rd.column[f] = i
			if f <= fieldEnergy {
				rd.report.Reordered = rd.report.Reordered || f < last
				last = f
			}
		}
		if c.spaced {
			rd.report.Spaces++
		}
	}
	rd.ranked(&found, number)
	for f := fieldStage; f <= fieldEnergy; f++ {
		if rd.column[f] < 0 {
			p := Problem{Line: number, Column: 1, Field: "column", Value: f.String(), Message: "missing; the header must be " + shortHeader}
			for _, c := range cells {
				if fieldOf(c.value) == fields && strings.Contains(strings.ToLower(c.value), f.String()[:4]) {
					p.Column, p.Value, p.Message = c.column, c.value, "unknown, and there is no column "+f.String()+"; if it is that one, rename it"
					break
				}
			}
			found.add(p)
		}
	}
	rd.report.Extra = len(extra)
	for _, name := range extra[:min(len(extra), 8)] {
		rd.report.ExtraColumns = append(rd.report.ExtraColumns, excerpt.Of(name, maxValue))
	}
	return found.err(rd.report.Name)
}

// ranked learns whether the rank columns are there; some without the others are
// a problem.
func (rd *reader) ranked(found *problems, number int) {
	var have, missing []string
	for f := fieldRank; f <= fieldTP; f++ {
		if rd.column[f] >= 0 {
			have = append(have, f.String())
		} else {
			missing = append(missing, f.String())
		}
	}
	for _, f := range [...]field{fieldCP, fieldEP} {
		if rd.column[f] >= 0 {
			have = append(have, f.String())
		}
	}
	rd.report.Ranked = len(missing) == 0
	if len(have) > 0 && len(missing) > 0 {
		found.addf(number, "there is %s, but not %s; have all four of these columns or none", list(have), list(missing))
	}
}
