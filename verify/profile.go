package verify

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// source is what an option table's entry is measured of.
type source struct {
	stage       int
	instruction string
}

// measurements is what a profile says, by the rules of docs/profiles.md.
type measurements struct {
	rows, members, stages int
	options               map[source][]dag.Option // by ascending clock
}

// member is one of the GPUs that run an op together: its ranks by tensor, context
// and experts.
type member [3]int64

type sample struct {
	source
	member
	clock        int64
	time, energy int64 // ns, pJ
}

func (s sample) power() int64 { return s.energy / s.time } // mW

// decimals says how many of them turn a column's unit into ns, pJ or MHz.
type decimals struct{ time, energy, clock int }

func decimalsOf(said frontierfile.Profile) (d decimals, err error) {
	var ok1, ok2, ok3 bool
	d.time, ok1 = map[string]int{"s": 9, "ms": 6, "us": 3, "ns": 0}[said.TimeUnit]
	d.energy, ok2 = map[string]int{"J": 12, "mJ": 9, "uJ": 6, "kJ": 15}[said.EnergyUnit]
	d.clock, ok3 = map[string]int{"MHz": 0, "kHz": -3, "Hz": -6, "GHz": 3}[said.FrequencyUnit]
	if !ok1 || !ok2 || !ok3 {
		return d, violated("profile", "units %q, %q and %q: one is unknown", said.TimeUnit, said.EnergyUnit, said.FrequencyUnit)
	}
	return d, nil
}

// readProfile returns the measurements in text. The rows that docs/profiles.md
// calls bad must be as many as the file says it left out.
func readProfile(text string, said frontierfile.Profile) (*measurements, error) {
	d, err := decimalsOf(said)
	if err != nil {
		return nil, err
	}
	var samples []sample
	var bad []string
	var header string
	var names []string
	rows := 0
	for i, line := range strings.Split(strings.TrimPrefix(text, mark), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.TrimPrefix(line, mark) == header {
			continue
		}
		cells, err := split(line)
		if header == "" {
			header, names = line, cells
			continue
		}
		rows++
		var s sample
		if err == nil {
			s, err = sampleOf(names, cells, d)
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %v", i+1, err))
			continue
		}
		samples = append(samples, s)
	}
	m, more := combine(samples)
	m.rows = rows
	if bad = append(bad, more...); len(bad) != said.SkippedRows {
		what := ""
		if len(bad) > 0 {
			what = "; " + slices.Min(bad)
		}
		return nil, violated("profile.skipped_rows", "the file says %d, but %d rows are bad%s", said.SkippedRows, len(bad), what)
	}
	return m, nil
}

// mark is a byte order mark; where files were joined, headers that come again can
// have one as well.
const mark = "\ufeff"

// sampleOf returns what a row says, or why it is bad.
func sampleOf(names, cells []string, d decimals) (sample, error) {
	if len(cells) != len(names) {
		return sample{}, fmt.Errorf("%d fields", len(cells))
	}
	r := row{names: names, cells: cells}
	s := sample{
		member: member{r.rank("tp_rank", 1<<24-1), r.rank("cp_rank", 1<<16-1), r.rank("ep_rank", 1<<16-1)},
		clock:  r.whole("frequency", d.clock, 20, 10_000),
		time:   r.measured("time", d.time, unit.Up, int64(unit.MaxOpTime)),
		energy: r.measured("energy", d.energy, unit.Nearest, int64(unit.MaxOpEnergy)),
	}
	s.stage, s.instruction = int(r.whole("stage", 0, 0, 1<<16-1)), r.cell("instruction")
	if r.err == nil && (s.instruction == "" || s.power() < 1000 || s.power() > 20_000_000) {
		r.err = fmt.Errorf("instruction %q at %d mW", s.instruction, s.power())
	}
	return s, r.err
}

// row is a line's fields by name; err is the first thing that is wrong with them.
type row struct {
	names, cells []string
	err          error
}

// cell returns a field; empty if there is none.
func (r *row) cell(name string) string {
	if k := slices.Index(r.names, name); k >= 0 {
		return r.cells[k]
	}
	return ""
}

// measured returns a positive value, rounded.
func (r *row) measured(name string, decimals int, rounding unit.Rounding, most int64) int64 {
	v, _, err := unit.ParseDecimal(r.cell(name), decimals, rounding)
	return r.within(name, v, 1, most, err)
}

// whole returns a value that must not need rounding.
func (r *row) whole(name string, decimals int, least, most int64) int64 {
	v, exact, err := unit.ParseDecimal(r.cell(name), decimals, unit.Nearest)
	if err == nil && !exact {
		err = errors.New("not whole")
	}
	return r.within(name, v, least, most, err)
}

// rank returns a whole number from 0; 0 where there is no such column.
func (r *row) rank(name string, most int64) int64 {
	if !slices.Contains(r.names, name) {
		return 0
	}
	return r.whole(name, 0, 0, most)
}

func (r *row) within(name string, v, least, most int64, err error) int64 {
	if err == nil && (v < least || v > most) {
		err = errors.New("outside what a GPU does")
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s %q: %w", name, r.cell(name), err)
	}
	return v
}

// split returns a line's fields, without spaces around them.
func split(line string) ([]string, error) {
	cells := strings.Split(line, ",")
	if strings.Contains(line, `"`) {
		r := csv.NewReader(strings.NewReader(line))
		r.TrimLeadingSpace = true
		var err error
		if cells, err = r.Read(); err != nil {
			return nil, err
		}
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, nil
}

// combine makes options of the samples, and says which it left out: those far off,
// those that look mistyped, and those at a clock at which not all members were measured.
func combine(samples []sample) (m *measurements, bad []string) {
	near, bad := nearUsual(samples)
	near, mistyped := likely(near)
	bad = append(bad, mistyped...)
	type point struct {
		source
		clock int64
	}
	at := map[point]map[member][]sample{}
	members := map[member]bool{}
	for _, s := range near {
		p := point{s.source, s.clock}
		if at[p] == nil {
			at[p] = map[member][]sample{}
		}
		at[p][s.member] = append(at[p][s.member], s)
		members[s.member] = true
	}
	m = &measurements{members: len(members), options: map[source][]dag.Option{}}
	for p, of := range at {
		if len(of) == len(members) {
			m.options[p.source] = append(m.options[p.source], together(p.clock, of))
			continue
		}
		for _, samples := range of {
			for range samples {
				bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: not measured on all GPUs", p.stage, p.instruction, p.clock))
			}
		}
	}
	stages := map[int]bool{}
	for k, options := range m.options {
		stages[k.stage] = true
		slices.SortFunc(options, func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
	}
	m.stages = len(stages)
	return m, bad
}

// nearUsual returns the samples whose time and power are within fifty times of the
// medians of their stage and instruction, and says which are not.
func nearUsual(samples []sample) (near []sample, bad []string) {
	times, powers := map[source][]int64{}, map[source][]int64{}
	for _, s := range samples {
		times[s.source] = append(times[s.source], s.time)
		powers[s.source] = append(powers[s.source], s.power())
	}
	usual := map[source][2]int64{}
	for k := range times {
		usual[k] = [2]int64{median(times[k]), median(powers[k])}
	}
	far := func(v, m int64) bool { return v/50 >= m || v <= m/50 }
	for _, s := range samples {
		if u := usual[s.source]; far(s.time, u[0]) || far(s.power(), u[1]) {
			bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: far from the median", s.stage, s.instruction, s.clock))
			continue
		}
		near = append(near, s)
	}
	return near, bad
}

// likely returns the samples without those that look mistyped, and says which do:
// a clock that one stage and instruction alone have, over twice or under half of all
// that several have; then a few rows of an instruction that one stage alone has,
// spelt nearly like one that several have.
func likely(samples []sample) (kept []sample, bad []string) {
	ofClock := map[int64]map[source]bool{}
	for _, s := range samples {
		if ofClock[s.clock] == nil {
			ofClock[s.clock] = map[source]bool{}
		}
		ofClock[s.clock][s.source] = true
	}
	low, high := int64(0), int64(0)
	for clock, of := range ofClock {
		if len(of) > 1 {
			if low == 0 || clock < low {
				low = clock
			}
			high = max(high, clock)
		}
	}
	count := map[source]int{}
	stages := map[string]map[int]bool{}
	for _, s := range samples {
		if high > 0 && len(ofClock[s.clock]) == 1 && (s.clock > 2*high || 2*s.clock < low) {
			bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: no other op has this clock", s.stage, s.instruction, s.clock))
			continue
		}
		kept = append(kept, s)
		count[s.source]++
		if stages[s.instruction] == nil {
			stages[s.instruction] = map[int]bool{}
		}
		stages[s.instruction][s.stage] = true
	}
	mistyped := func(s sample) bool {
		if len(stages[s.instruction]) > 1 {
			return false
		}
		for other, of := range stages {
			o := source{s.stage, other}
			if len(of) > 1 && of[s.stage] && count[s.source] <= count[o] && alike(s.instruction, other) {
				return true
			}
		}
		return false
	}
	samples, kept = kept, nil
	for _, s := range samples {
		if mistyped(s) {
			bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: the instruction is mistyped", s.stage, s.instruction, s.clock))
			continue
		}
		kept = append(kept, s)
	}
	return kept, bad
}

// alike says whether one letter, or the order of two, makes a into b.
// Of short names, such as fwd and bwd, it says nothing.
func alike(a, b string) bool {
	if min(len(a), len(b)) < 4 {
		return false
	}
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// together returns the option of all members at a clock: the slowest one's time and
// the energies of all, each the median of its samples.
func together(clock int64, of map[member][]sample) dag.Option {
	o := dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}}
	for _, samples := range of {
		var times, energies []int64
		for _, s := range samples {
			times, energies = append(times, s.time), append(energies, s.energy)
		}
		o.Time = max(o.Time, unit.Time(median(times)))
		o.Energy += unit.Energy(median(energies))
	}
	return o
}

// median returns the value in the middle, or between two the mean, rounded up.
func median(v []int64) int64 {
	slices.Sort(v)
	low, high := v[(len(v)-1)/2], v[len(v)/2]
	return low + (high-low+1)/2
}
