package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// farOff is how many times a row's time or power may differ from the median of
// its op: clocks make a difference of up to 10, a wrong unit one of 1000.
const farOff = 50

// maxBlocking is the blocking power up to which dag.NewCurve takes all options.
// The steepest slope and the least effective energy are those at the greatest.
const maxBlocking = 1000 * unit.Watt

// op is the measurements of an instruction of a stage, at all clocks.
type op struct {
	rows  []row
	time  unit.Time // median over rows
	power int64     // median over rows, mW
}

// profile checks the rows against each other and returns what they say.
func (rd *reader) profile() (*Profile, error) {
	var bad problems
	if len(rd.ranks.pairs) > 1 || rd.column[fieldCP] >= 0 || rd.column[fieldEP] >= 0 {
		if err := rd.ranks.numberMembers(rd.rows); err != nil {
			return nil, rd.fail(Problem{Field: fieldTP.String(), Message: err.Error()})
		}
	}
	rd.sort()
	fail := func(err error) (*Profile, error) {
		rd.locate(bad.first)
		return nil, err
	}
	ops := rd.ops()
	if rd.checkUsual(ops, &bad); bad.count > 0 {
		return fail(bad.err(rd.report.Name))
	}
	if rd.dropFarOff(ops, &bad); bad.count > 0 {
		return fail(bad.skippable(rd.report.Name))
	}
	if rd.dropOddClocks(&bad); bad.count > 0 {
		return fail(bad.skippable(rd.report.Name))
	}
	if rd.dropMistyped(&bad); bad.count > 0 {
		return fail(bad.skippable(rd.report.Name))
	}
	members := rd.countMembers(&bad)
	if bad.count > 0 {
		return fail(bad.err(rd.report.Name))
	}
	if rd.dropIncomplete(members, &bad); bad.count > 0 {
		return fail(bad.skippable(rd.report.Name))
	}
	if rd.checkComplete(&bad); bad.count > 0 {
		return fail(bad.err(rd.report.Name))
	}
	rd.locate(rd.report.Skips)
	p := newProfile(rd.rows, rd.instructions, members, rd.report)
	if p.checkCurves(&bad); bad.count > 0 {
		return fail(bad.err(rd.report.Name))
	}
	return p, nil
}

// checkCurves adds a problem for each op whose options dag.NewCurve would refuse.
func (p *Profile) checkCurves(bad *problems) {
	for k, options := range p.options {
		_, err := dag.NewCurve(options, maxBlocking)
		if err == nil {
			continue
		}
		message := "two clocks differ so little in time and so much in energy that one must be wrong; leave one out"
		for _, o := range options {
			if o.Energy > unit.MaxOpEnergy {
				message = fmt.Sprintf("at %d MHz, the energy of all %d GPUs together is more than %v", o.Knobs.ClockMHz, p.GPUsPerStage, unit.MaxOpEnergy)
				break
			}
		}
		stage, instruction := p.op(k)
		line := firstRow(p.rows[p.start[k]:p.start[k+1]]).line
		bad.add(Problem{Line: int(line), Field: fieldEnergy.String(), Message: fmt.Sprintf("stage %d, %s: %s", stage, instruction, message)})
	}
}

// sort numbers the instructions by name and puts the rows into an order that
// does not depend on that of the file.
func (rd *reader) sort() {
	names := make([]string, 0, len(rd.names))
	for name := range rd.names {
		names = append(names, name)
	}
	slices.Sort(names)
	rd.instructions = names
	number := make([]int32, len(names))
	for i, name := range names {
		number[rd.names[name]] = int32(i)
	}
	for i := range rd.rows {
		rd.rows[i].instruction = number[rd.rows[i].instruction]
	}
	sortRows(rd.rows)
}

// sortRows sorts rows by stage, instruction, clock, member, time and energy.
func sortRows(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		if c := comparePoints(a, b); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.member, b.member), cmp.Compare(a.time, b.time), cmp.Compare(a.energy, b.energy))
	})
}

func comparePoints(a, b row) int {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.instruction, b.instruction), cmp.Compare(a.clock, b.clock))
}

// runs yields the longest runs of rows that are the same by same.
func runs(rows []row, same func(a, b row) bool) func(yield func([]row) bool) {
	return func(yield func([]row) bool) {
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && same(rows[0], rows[n]) {
				n++
			}
			if !yield(rows[:n:n]) {
				return
			}
			rows = rows[n:]
		}
	}
}

func sameStage(a, b row) bool  { return a.stage == b.stage }
func sameOp(a, b row) bool     { return a.stage == b.stage && a.instruction == b.instruction }
func samePoint(a, b row) bool  { return sameOp(a, b) && a.clock == b.clock }
func sameMember(a, b row) bool { return a.member == b.member }

func (rd *reader) ops() []op {
	var all []op
	var times, powers []int64
	for rows := range runs(rd.rows, sameOp) {
		times, powers = times[:0], powers[:0]
		for _, r := range rows {
			times, powers = append(times, int64(r.time)), append(powers, r.power())
		}
		all = append(all, op{rows, unit.Time(median(times)), median(powers)})
	}
	return all
}

// drop takes rows out, or makes them problems if they may not be skipped.
func (rd *reader) drop(bad *problems, why func(r row) (f field, message string)) {
	var kept []row
	for i, r := range rd.rows {
		f, message := why(r)
		if message != "" {
			if kept == nil {
				kept = slices.Clone(rd.rows[:i])
			}
			p := Problem{Line: int(r.line), Field: f.String(), Message: fmt.Sprintf("stage %d, %s at %d MHz: %s", r.stage, rd.instructions[r.instruction], r.clock, message)}
			if rd.opt.SkipBadRows {
				rd.report.skip(p)
			} else {
				bad.add(p)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, r)
		}
	}
	if kept != nil && rd.opt.SkipBadRows {
		rd.rows = kept
	}
}

// dropFarOff drops rows whose time or power is far from the op's median.
func (rd *reader) dropFarOff(ops []op, bad *problems) {
	i := 0
	rd.drop(bad, func(r row) (field, string) {
		for !sameOp(ops[i].rows[0], r) {
			i++
		}
		far := func(v, m int64) bool { return v/farOff >= m || v <= m/farOff }
		const remedy = "; is it in another unit? correct or delete the row"
		switch o, power := ops[i], r.power(); {
		case far(int64(r.time), int64(o.time)):
			return fieldTime, fmt.Sprintf("the op's median is %v%s", o.time, remedy)
		case far(power, o.power):
			return fieldEnergy, fmt.Sprintf("in a time of %v that is %s, where the op's median is %s%s", r.time, watts(power), watts(o.power), remedy)
		}
		return fieldTime, ""
	})
}

// countMembers returns how many GPUs run a stage together.
func (rd *reader) countMembers(bad *problems) int {
	if !rd.report.Ranked {
		return 1
	}
	if message := rd.ranks.only(rd.stages()); message != "" {
		bad.addf(0, "%s", message)
		return 0
	}
	members, first := 0, int32(0)
	for rows := range runs(rd.rows, sameStage) {
		numbers := make([]int32, len(rows))
		for i, r := range rows {
			numbers[i] = r.member
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		have, stage, message := spans(numbers), rows[0].stage, ""
		switch missing := gaps(have, 0); {
		case len(missing) > 0:
			message = fmt.Sprintf("stage %d has rows of %s %s only; those of %s %s are missing", stage, rd.memberName(), ranges(have), rd.memberName(), ranges(missing))
		case members == 0:
			members, first = len(numbers), stage
			continue
		case len(numbers) != members:
			message = fmt.Sprintf("stage %d has rows of %s (%s), but stage %d of %d; every stage needs the same number", stage, count(len(numbers), "GPU"), rd.memberName(), first, members)
		default:
			continue
		}
		bad.add(Problem{Line: int(firstRow(rows).line), Field: fieldTP.String(), Message: message})
	}
	return members
}

// memberName returns what a member's number is.
func (rd *reader) memberName() string {
	if rd.column[fieldCP] < 0 && rd.column[fieldEP] < 0 {
		return fieldTP.String()
	}
	return "member (tp_rank, then cp_rank, then ep_rank)"
}

// dropIncomplete drops points that were not measured on all GPUs of the group.
func (rd *reader) dropIncomplete(members int, bad *problems) {
	incomplete := map[row]string{} // by point
	for rows := range runs(rd.rows, samePoint) {
		var have []int32
		for m := range runs(rows, sameMember) {
			have = append(have, m[0].member)
		}
		if len(have) < members {
			incomplete[pointOf(rows[0])] = fmt.Sprintf("%s %s was not measured at this clock; do so, or delete the clock's other rows", rd.memberName(), ranges(gaps(spans(have), int32(members))))
		}
	}
	if len(incomplete) > 0 {
		rd.drop(bad, func(r row) (field, string) { return fieldTP, incomplete[pointOf(r)] })
	}
}

func pointOf(r row) row { return row{stage: r.stage, instruction: r.instruction, clock: r.clock} }

// stages returns which stages have rows.
func (rd *reader) stages() []span {
	var numbers []int32
	for rows := range runs(rd.rows, sameStage) {
		numbers = append(numbers, rows[0].stage)
	}
	return spans(numbers)
}

// checkComplete adds problems where stages or instructions are missing.
func (rd *reader) checkComplete(bad *problems) {
	if len(rd.rows) == 0 {
		bad.addf(0, "no row is left after skipping %d", rd.report.Skipped)
		return
	}
	stages := rd.stages()
	if missing := gaps(stages, 0); len(missing) > 0 {
		after := rd.rows[slices.IndexFunc(rd.rows, func(r row) bool { return r.stage > missing[0].to })].stage
		rows := slices.DeleteFunc(slices.Clone(rd.rows), func(r row) bool { return r.stage != after })
		bad.add(Problem{Line: int(firstRow(rows).line), Field: fieldStage.String(), Message: fmt.Sprintf(
			"rows of stage %s are missing; there are those of stage %s; a profile has all stages, from 0", ranges(missing), ranges(stages))})
		return
	}
	used := make([]bool, len(rd.instructions))
	for rows := range runs(rd.rows, sameOp) {
		used[rows[0].instruction] = true
	}
	for rows := range runs(rd.rows, sameStage) {
		has := make([]bool, len(used))
		for o := range runs(rows, sameOp) {
			has[o[0].instruction] = true
		}
		var missing []string
		for i, used := range used {
			if used && !has[i] && len(missing) < 4 {
				missing = append(missing, rd.instructions[i])
			}
		}
		if len(missing) > 0 {
			bad.add(Problem{Line: int(firstRow(rows).line), Field: fieldStage.String(), Message: fmt.Sprintf(
				"this stage has no rows of %s, which others have; measure it on all stages", list(missing))})
		}
	}
}
