package jobs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// CheckRules returns an error where a rule derives what no schedule runs.
func CheckRules(rules []derive.Rule) error {
	var known []string
	for k := pipeline.Forward; k < pipeline.SendForward; k++ {
		known = append(known, k.Instruction())
	}
	for _, r := range rules {
		if !slices.Contains(known, r.Instruction) {
			return fmt.Errorf("%q is no instruction of a schedule; they have %s", r.Instruction, strings.Join(known, ", "))
		}
	}
	return nil
}

// ParseFixed returns the fixed-time ops in a list such as
// "load=5ms,optimizer=20ms,reduce-grad=80ms", by instruction.
func ParseFixed(list string) ([]frontierfile.Fixed, error) {
	names := map[string]pipeline.Kind{
		"load": pipeline.Load, "optimizer": pipeline.Optimizer,
		"reduce-grad": pipeline.ReduceGrad, "reduce-gradient": pipeline.ReduceGrad, "all-reduce": pipeline.ReduceGrad,
	}
	var all []frontierfile.Fixed
	for item := range strings.SplitSeq(list, ",") {
		name, text, _ := strings.Cut(item, "=")
		kind, ok := names[strings.TrimSpace(name)]
		if !ok {
			return nil, fmt.Errorf("%q: expected NAME=TIME, as in optimizer=20ms; the names are load, reduce-grad (or all-reduce) and optimizer", item)
		}
		t, err := unit.ParseTime(strings.TrimSpace(text))
		if err == nil && (t <= 0 || t > unit.MaxOpTime) {
			err = fmt.Errorf("the time is outside 1ns … %v", unit.MaxOpTime)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w; expected a time as in 20ms", item, err)
		}
		f := frontierfile.Fixed{Instruction: kind.Instruction(), Time: t}
		if slices.ContainsFunc(all, func(o frontierfile.Fixed) bool { return o.Instruction == f.Instruction }) {
			return nil, fmt.Errorf("%q: %s has a time already", item, f.Instruction)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b frontierfile.Fixed) int { return strings.Compare(a.Instruction, b.Instruction) })
	return all, nil
}

// added returns which actions to add to an order for fixed-time ops.
func added(fixed []frontierfile.Fixed) (f pipeline.Fixed) {
	for _, v := range fixed {
		switch v.Instruction {
		case pipeline.Load.Instruction():
			f.Load = true
		case pipeline.ReduceGrad.Instruction():
			f.ReduceGrad = true
		case pipeline.Optimizer.Instruction():
			f.Optimizer = true
		}
	}
	return f
}

// ParseCap returns the cap in a text such as "rank=3:1200MHz" or
// "rank=0-3:1200", for each rank that it names.
func ParseCap(text string) ([]frontierfile.Cap, error) {
	fail := func(why string) ([]frontierfile.Cap, error) {
		return nil, fmt.Errorf("%q: %s; expected as in rank=3:1200MHz or rank=0-7:1200MHz", text, why)
	}
	ranks, clock, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "rank="), ":")
	if !ok {
		return fail("a rank and a clock are needed")
	}
	mhz, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(clock), "MHz")), 10, 32)
	if err != nil || mhz < 1 {
		return fail("the clock is a whole number of MHz")
	}
	first, last, several := strings.Cut(ranks, "-")
	from, err := strconv.ParseInt(strings.TrimSpace(first), 10, 32)
	if err != nil || from < 0 {
		return fail("a rank is a whole number from 0")
	}
	to := from
	if several {
		if to, err = strconv.ParseInt(strings.TrimSpace(last), 10, 32); err != nil || to < from || to-from > 1<<20 {
			return fail("a range of ranks is FIRST-LAST")
		}
	}
	var all []frontierfile.Cap
	for r := from; r <= to; r++ {
		all = append(all, frontierfile.Cap{Rank: int(r), MHz: int32(mhz)})
	}
	return all, nil
}

func parseFactor(text string) (frontierfile.Ratio, error) {
	return derive.ParseFactor(strings.TrimSpace(text))
}

// parseFactors returns the factors in "1.2", for time and energy, or "1.2:1.15".
func parseFactors(text string) (f frontierfile.Factors, err error) {
	time, energy, both := strings.Cut(text, ":")
	if f.Time, err = parseFactor(time); err != nil {
		return f, fmt.Errorf("%q: %w", text, err)
	}
	f.Energy = f.Time
	if both {
		if f.Energy, err = parseFactor(energy); err != nil {
			return f, fmt.Errorf("%q: %w", text, err)
		}
	}
	return f, nil
}

// IsFactorList says whether a text looks like a list of factors, and not like the name
// of a file of them: files may have such names, if seldom.
func IsFactorList(text string) bool {
	return strings.Trim(text, "0123456789.,:eE+ ") == "" || strings.Contains(text, ",") && !strings.Contains(text, "/")
}

// ParseMicrobatchFactors returns the factors in a list such as "1,1.2:1.15,0.9",
// one for each microbatch.
func ParseMicrobatchFactors(list string) ([]frontierfile.Factors, error) {
	var all []frontierfile.Factors
	for item := range strings.SplitSeq(list, ",") {
		f, err := parseFactors(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// maxLines bounds files of factors.
const maxLines = pipeline.MaxActions

// table calls row for each line of a CSV file after the header, which must be the
// one given. Errors have the file's name and the line.
func table(r io.Reader, name string, header []string, row func(cells []string) error) error {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	in.FieldsPerRecord = len(header)
	for n := 0; ; n++ {
		cells, err := in.Read()
		if err == io.EOF && n > 0 {
			return nil
		}
		var fault *csv.ParseError
		switch {
		case errors.As(err, &fault):
			if n == 0 || errors.Is(err, csv.ErrFieldCount) {
				return fmt.Errorf("%s:%d: %d columns are expected: %s", name, max(1, fault.Line), len(header), strings.Join(header, ","))
			}
			return fmt.Errorf("%s:%d: %w", name, fault.Line, fault.Err)
		case err == io.EOF:
			return fmt.Errorf("%s: empty; the first line must be %s", name, strings.Join(header, ","))
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case n > maxLines:
			return fmt.Errorf("%s: more than %d lines", name, maxLines)
		}
		line, _ := in.FieldPos(0)
		cells[0] = strings.TrimPrefix(cells[0], "\ufeff")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if n == 0 {
			if !slices.Equal(cells, header) {
				return fmt.Errorf("%s:1: the first line must be %s", name, strings.Join(header, ","))
			}
			continue
		}
		if err := row(cells); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

// ReadMicrobatchFactors returns the factors in a CSV file with the columns
// microbatch,time_factor,energy_factor, which has each microbatch once, in any
// order.
func ReadMicrobatchFactors(r io.Reader, name string) ([]frontierfile.Factors, error) {
	given := map[int]frontierfile.Factors{}
	err := table(r, name, []string{"microbatch", "time_factor", "energy_factor"}, func(cells []string) error {
		m, err := number("microbatch", cells[0])
		if err != nil {
			return err
		}
		if _, twice := given[m]; twice {
			return fmt.Errorf("microbatch %d is there twice", m)
		}
		given[m], err = parseFactors(cells[1] + ":" + cells[2])
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]frontierfile.Factors, len(given))
	for m, f := range given {
		if m >= len(all) {
			first := 0
			for _, ok := given[first]; ok; _, ok = given[first] {
				first++
			}
			return nil, fmt.Errorf("%s: microbatch %d is missing; all from 0 are needed", name, first)
		}
		all[m] = f
	}
	return all, nil
}

func number(what, text string) (int, error) {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s %q: expected a whole number from 0", what, text)
	}
	return int(v), nil
}

// ReadOpFactors returns the factors of single ops in a CSV file with the columns
// stage,microbatch,instruction,time_factor,energy_factor, by op.
func ReadOpFactors(r io.Reader, name string) ([]frontierfile.OpFactors, error) {
	var all []frontierfile.OpFactors
	type op struct {
		stage, microbatch int
		instruction       string
	}
	seen := map[op]bool{}
	err := table(r, name, []string{"stage", "microbatch", "instruction", "time_factor", "energy_factor"}, func(cells []string) error {
		stage, err := number("stage", cells[0])
		if err != nil {
			return err
		}
		microbatch, err := number("microbatch", cells[1])
		if err != nil {
			return err
		}
		at := op{stage, microbatch, strings.Clone(cells[2])}
		if seen[at] {
			return fmt.Errorf("%s of stage %d and microbatch %d is there twice", at.instruction, stage, microbatch)
		}
		seen[at] = true
		f, err := parseFactors(cells[3] + ":" + cells[4])
		all = append(all, frontierfile.OpFactors{Stage: stage, Microbatch: microbatch, Instruction: at.instruction, Factors: f})
		return err
	})
	slices.SortFunc(all, func(a, b frontierfile.OpFactors) int {
		x := frontierfile.Key{Stage: a.Stage, SecondStage: a.Microbatch}
		y := frontierfile.Key{Stage: b.Stage, SecondStage: b.Microbatch}
		if c := x.Compare(y); c != 0 {
			return c
		}
		return strings.Compare(a.Instruction, b.Instruction)
	})
	return all, err
}
