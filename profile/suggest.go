package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
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
	// No GPU of a server draws less at work, and 5 kW read as kJ are 5 W.
	oddPower = 5_000 // mW
	// A stage whose ops are so long, and so many times as long as those of the
	// median stage, is in another unit. Shorter ones may be compared to a stage
	// that has nothing to do.
	oddLongest   = unit.Second
	oddRatio     = 200
	usualSlowest = 100 // MHz
	usualFastest = 5_000
)

// suggestion names units of time and energy in which the two values would be
// usual ones, for the end of a message. Fewer changes come first.
type suggestion struct {
	scales       columnScales
	time, energy string
}

func (g suggestion) String() string {
	one, both := []string{}, []string{}
	for _, ts := range fieldTime.scales() {
		t, _, err := unit.ParseDecimal(g.time, ts.digits, unit.Up)
		if err != nil || unit.Time(t) < usualShortest || unit.Time(t) > usualLongest {
			continue
		}
		for _, es := range fieldEnergy.scales() {
			e, _, err := unit.ParseDecimal(g.energy, es.digits, unit.Nearest)
			if err != nil || e/t < usualWeakest || e/t > usualGreatest {
				continue
			}
			switch timeKept, energyKept := ts == g.scales.time, es == g.scales.energy; {
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

// clockSuggestion does the same for a clock.
type clockSuggestion string

func (value clockSuggestion) String() string {
	for _, s := range fieldFrequency.scales() {
		if v, _, err := unit.ParseDecimal(string(value), s.digits, unit.Nearest); err == nil && v >= usualSlowest && v <= usualFastest {
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
			p.Message += fmt.Sprintf(" (%d of %d rows are so: say what the units are with Options.Units)", rd.badRows[k], rd.report.Rows)
			all.add(p)
			wrongUnit = true
			continue
		}
		all.merge(bad)
	}
	rd.locate(rd.conflicts.first)
	switch {
	case wrongUnit || !rd.opt.SkipBadRows && rd.conflicts.count > 0:
		all.merge(rd.conflicts)
		return all.err(rd.report.Name)
	case !rd.opt.SkipBadRows:
		return all.skippable(rd.report.Name)
	case len(rd.rows) == 0:
		all.addf(0, "all %d rows are bad", rd.report.Rows)
		return all.err(rd.report.Name)
	}
	return rd.conflicts.err(rd.report.Name)
}

// checkUsual adds a problem for each op whose typical time or power is odd
// where the units were not given, or one for all where most are.
func (rd *reader) checkUsual(ops []op, bad *problems) {
	others := make([]unit.Time, len(rd.instructions)) // median over stages
	for i := range others {
		var times []int64
		for _, o := range ops {
			if int(o.rows[0].instruction) == i {
				times = append(times, int64(o.time))
			}
		}
		slices.Sort(times)
		others[i] = unit.Time(times[(len(times)-1)/2])
	}
	var odd problems
	for _, o := range ops {
		f, message := fieldTime, ""
		other := others[o.rows[0].instruction]
		switch {
		case rd.opt.Units.Time != "":
		case o.time > usualLongest:
			message = fmt.Sprintf("the typical time of %v is long for one microbatch", o.time)
		case o.time > oddLongest && o.time/oddRatio > other:
			message = fmt.Sprintf("the typical time of %v is far from that of other stages, %v", o.time, other)
		}
		if message != "" {
			message += ": are units ms and mJ? say so with Options.Units time=ms,energy=mJ, or time=s,energy=J if they are right"
		} else if rd.opt.Units.Energy == "" && o.power < oddPower {
			f = fieldEnergy
			message = fmt.Sprintf("the typical power of %s is little for a GPU at work: is the unit kJ? say so with Options.Units energy=kJ, or energy=J if it is right", watts(o.power))
		}
		if message == "" {
			continue
		}
		first := firstRow(o.rows)
		odd.add(Problem{Line: int(first.line), Field: f.String(), Message: fmt.Sprintf("stage %d, %s: %s", first.stage, rd.instructions[first.instruction], message)})
	}
	if n := odd.count; n > 1 && 2*n > len(ops) {
		p := odd.first[0]
		p.Message += fmt.Sprintf(" (%d of %d ops are so)", n, len(ops))
		odd = problems{first: []Problem{p}, count: 1}
	}
	bad.merge(odd)
}

// firstRow returns the row that comes first in the file.
func firstRow(rows []row) row {
	return slices.MinFunc(rows, func(a, b row) int { return cmp.Compare(a.line, b.line) })
}

// locate fills in column and value of problems that name a line and a field;
// they are in the order of lines.
func (rd *reader) locate(found []Problem) {
	text, number := rd.text, 1
	for i := range found {
		p := &found[i]
		f := fieldOf(p.Field)
		if p.Line == 0 || p.Column > 0 || f == fields {
			continue
		}
		for ; number < p.Line; number++ {
			_, text, _ = strings.Cut(text, "\n")
		}
		line, _, _ := strings.Cut(text, "\n")
		if cells, _, ok := split(strings.TrimSuffix(line, "\r"), nil, rd.width); ok {
			c := cells[rd.column[f]]
			p.Column, p.Value = c.column, excerpt.Of(c.value, maxValue)
		}
	}
}
