package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// What is usual for an op of a microbatch on one GPU. Values outside are
// possible, so the bounds serve suggestions, and refuse a file only where its
// units were not given.
const (
	usualShortest = 50 * unit.Microsecond
	usualLongest  = 10 * unit.Second
	usualWeakest  = 20_000    // mW
	usualGreatest = 3_000_000 // mW
	oddPower      = 5_000     // mW; no real GPU at work draws so little, and 5 kW read as kJ is 5 W
	usualSlowest  = 100       // MHz
	usualFastest  = 5_000
)

// suggest names units of time and energy in which the two values would be usual
// ones, for the end of a message. Fewer changes come first.
func (rd *reader) suggest(time, energy string) string {
	one, both := []string{}, []string{}
	for _, ts := range fieldTime.scales() {
		t, _, err := unit.ParseDecimal(time, ts.digits, unit.Up)
		if err != nil || unit.Time(t) < usualShortest || unit.Time(t) > usualLongest {
			continue
		}
		for _, es := range fieldEnergy.scales() {
			e, _, err := unit.ParseDecimal(energy, es.digits, unit.Nearest)
			if err != nil || e/t < usualWeakest || e/t > usualGreatest {
				continue
			}
			switch timeKept, energyKept := ts == rd.scales.time, es == rd.scales.energy; {
			case energyKept && !timeKept:
				one = append(one, "time="+ts.name)
			case timeKept && !energyKept:
				one = append(one, "energy="+es.name)
			default:
				both = append(both, "time="+ts.name+",energy="+es.name)
			}
		}
	}
	if len(one) > 0 {
		both = one
	}
	if len(both) == 0 {
		return ""
	}
	return "; it would be usual as " + strings.Join(both[:min(len(both), 3)], " or ")
}

// suggestClock does the same for a clock.
func (rd *reader) suggestClock(value string) string {
	for _, s := range fieldFrequency.scales() {
		if v, _, err := unit.ParseDecimal(value, s.digits, unit.Nearest); err == nil && v >= usualSlowest && v <= usualFastest {
			return "; it would be usual as frequency=" + s.name
		}
	}
	return ""
}

// rowsUsable fails where rows were bad, unless they may be skipped. Where most
// rows are bad in the same way, it is one problem, that of the file's units, and
// skipping does not help.
func (rd *reader) rowsUsable() error {
	var all problems
	wrongUnit := false
	for k, bad := range rd.bad {
		if kind(k) != kindOther && 2*rd.badRows[k] > rd.report.Rows {
			p := bad.first[0]
			p.Message += fmt.Sprintf(" (%d of %d rows are so: say what the units are with --units)", rd.badRows[k], rd.report.Rows)
			all.add(p)
			wrongUnit = true
			continue
		}
		all.merge(bad)
	}
	switch {
	case wrongUnit || !rd.opt.SkipBadRows:
		all.merge(rd.conflicts)
		return all.err(rd.report.Name)
	case len(rd.rows) == 0:
		all.addf(0, "all %d rows are bad", rd.report.Rows)
		return all.err(rd.report.Name)
	}
	return rd.conflicts.err(rd.report.Name)
}

// checkUsual adds a problem for each op whose typical time or power is odd
// where the units were not given, or one for all where most are.
func (rd *reader) checkUsual(ops []op, bad *problems) {
	var odd problems
	for _, o := range ops {
		var message string
		switch {
		case rd.opt.Units.Time == "" && o.time > usualLongest:
			message = fmt.Sprintf("a typical time of %v is long for one microbatch: is it in ms? say so with --units time=ms, or time=s if it is right", o.time)
		case rd.opt.Units.Energy == "" && o.power < oddPower:
			message = fmt.Sprintf("a typical power of %s is little for a GPU at work: is the energy in kJ? say so with --units energy=kJ, or energy=J if it is right", watts(o.power))
		default:
			continue
		}
		first := slices.MinFunc(o.rows, func(a, b row) int { return cmp.Compare(a.line, b.line) })
		odd.add(Problem{Line: int(first.line), Message: fmt.Sprintf("stage %d, %s: %s", first.stage, rd.instructions[first.instruction], message)})
	}
	if n := odd.count; n > 1 && 2*n > len(ops) {
		p := odd.first[0]
		p.Message += fmt.Sprintf(" (%d of %d ops are so)", n, len(ops))
		odd = problems{first: []Problem{p}, count: 1}
	}
	bad.merge(odd)
}
