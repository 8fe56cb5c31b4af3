package simulate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// TraceError is what is wrong with a trace.
type TraceError struct {
	// Name is the file's name and Line counts from 1; 0 means the whole file.
	Name    string
	Line    int
	Problem string
}

func (e *TraceError) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Problem)
}

// MaxTraceLines bounds a trace.
const MaxTraceLines = 1 << 20

// ReadTrace returns the slowdowns of a straggler trace: CSV with the header
// time_s,factor and, in any order, pipeline and rank; or JSONL, an object a line
// with the same fields. Without a pipeline or rank, or with *, all are meant.
// ranks has the number of ranks of each pipeline of the job. It fails with a
// *TraceError where a line cannot be read, time goes back, or there is no such
// pipeline or rank.
func ReadTrace(r io.Reader, name string, ranks []int) ([]Slowdown, error) {
	b := bufio.NewReader(r)
	start, err := b.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil, &TraceError{name, 0, "is empty: expected a CSV with the header time_s,pipeline,rank,factor, or JSON lines"}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var slow []Slowdown
	var lines []int
	add := func(line int, f traceFields) error {
		d, err := f.slowdown()
		if err == nil && len(slow) == MaxTraceLines {
			err = fmt.Errorf("more than %d lines", MaxTraceLines)
		}
		if err != nil {
			return &TraceError{name, line, err.Error()}
		}
		slow, lines = append(slow, d), append(lines, line)
		return nil
	}
	if start[0] == '{' {
		err = readTraceJSON(b, name, add)
	} else {
		err = readTraceCSV(b, name, add)
	}
	if err != nil {
		return nil, err
	}
	_, err = newRates(slow, ranks)
	if bad := (*slowError)(nil); errors.As(err, &bad) {
		return nil, &TraceError{name, lines[bad.index], bad.problem}
	}
	return slow, err
}

// traceFields are a line's fields as text; empty where absent.
type traceFields struct{ time, pipeline, rank, factor string }

func (f traceFields) slowdown() (d Slowdown, err error) {
	if d.From, err = unit.ParseTime(f.time); err != nil {
		return d, fmt.Errorf("time_s %q: %w", f.time, err)
	}
	if d.From < 0 {
		return d, fmt.Errorf("time_s %q: it is negative", f.time)
	}
	if d.Pipeline, err = index("pipeline", f.pipeline); err != nil {
		return d, err
	}
	if d.Rank, err = index("rank", f.rank); err != nil {
		return d, err
	}
	d.Factor, err = factor(f.factor)
	return d, err
}

func readTraceCSV(r io.Reader, name string, add func(int, traceFields) error) error {
	c := csv.NewReader(r)
	c.ReuseRecord, c.TrimLeadingSpace = true, true
	header, err := c.Read()
	if err != nil {
		return csvError(name, err)
	}
	known := []string{"time_s", "pipeline", "rank", "factor"}
	column := map[string]int{}
	for i, h := range header {
		h = strings.TrimPrefix(strings.TrimSpace(h), "\ufeff")
		if _, twice := column[h]; twice || !slices.Contains(known, h) {
			return &TraceError{name, 1, fmt.Sprintf("column %q: expected time_s, factor and perhaps pipeline and rank, each once", h)}
		}
		column[h] = i
	}
	for _, need := range []string{"time_s", "factor"} {
		if _, ok := column[need]; !ok {
			return &TraceError{name, 1, fmt.Sprintf("column %s is missing", need)}
		}
	}
	field := func(row []string, name string) string {
		if i, ok := column[name]; ok {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return csvError(name, err)
		}
		line, _ := c.FieldPos(0)
		if err := add(line, traceFields{field(row, "time_s"), field(row, "pipeline"), field(row, "rank"), field(row, "factor")}); err != nil {
			return err
		}
	}
}

func csvError(name string, err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return &TraceError{name, bad.Line, bad.Err.Error()}
	}
	return fmt.Errorf("%s: %w", name, err)
}

func readTraceJSON(r io.Reader, name string, add func(int, traceFields) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<16)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var o struct {
			Time     *json.Number `json:"time_s"`
			Pipeline *json.Number `json:"pipeline"`
			Rank     *json.Number `json:"rank"`
			Factor   *json.Number `json:"factor"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(&o)
		if err == nil {
			if _, more := d.Token(); !errors.Is(more, io.EOF) {
				err = errors.New("text after the object")
			}
		}
		if err != nil {
			return &TraceError{name, n, fmt.Sprintf("%v; expected an object like {\"time_s\": 1.5, \"pipeline\": 0, \"rank\": 3, \"factor\": 1.2}", err)}
		}
		if err := add(n, traceFields{number(o.Time), number(o.Pipeline), number(o.Rank), number(o.Factor)}); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &TraceError{name, 0, "a line is longer than 64 KiB"}
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func number(n *json.Number) string {
	if n == nil {
		return ""
	}
	return n.String()
}

// Constant returns slowdowns for the whole simulation, in the order in which a
// simulator takes them, followed by those of a trace.
func Constant(slow []Slowdown, trace []Slowdown) []Slowdown {
	all := slices.Concat(slow, trace)
	slices.SortStableFunc(all, func(a, b Slowdown) int { return int(min(max(a.From-b.From, -1), 1)) })
	return all
}
