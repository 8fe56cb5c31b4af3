package verify

import (
	"encoding/csv"
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

type sample struct {
	source
	clock, member int64
	time, energy  int64 // ns, pJ
}

func (s sample) power() int64 { return s.energy / s.time } // mW

// readProfile returns the measurements in text. The rows that docs/profiles.md
// calls bad must be as many as the file says it left out.
func readProfile(text string, said frontierfile.Profile) (*measurements, error) {
	timeDigits, ok1 := map[string]int{"s": 9, "ms": 6, "us": 3, "ns": 0}[said.TimeUnit]
	energyDigits, ok2 := map[string]int{"J": 12, "mJ": 9, "uJ": 6, "kJ": 15}[said.EnergyUnit]
	clockDigits, ok3 := map[string]int{"MHz": 0, "kHz": -3, "Hz": -6, "GHz": 3}[said.FrequencyUnit]
	if !ok1 || !ok2 || !ok3 {
		return nil, violated("profile", "units %q, %q and %q: one is unknown", said.TimeUnit, said.EnergyUnit, said.FrequencyUnit)
	}
	var m measurements
	var samples []sample
	var bad []string
	var header string
	column := map[string]int{}
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.TrimPrefix(line, "\ufeff") == header {
			continue
		}
		cells, err := split(line)
		if header == "" {
			header = line
			for k, name := range cells {
				column[strings.ToLower(name)] = k
			}
			continue
		}
		m.rows++
		var s sample
		if err == nil && len(cells) != strings.Count(header, ",")+1 {
			err = fmt.Errorf("%d fields", len(cells))
		}
		number := func(name string, digits int, r unit.Rounding, least, most int64) (v int64) {
			k, ok := column[name]
			if err != nil || !ok && strings.HasSuffix(name, "p_rank") {
				return 0
			}
			if !ok {
				err = fmt.Errorf("there is no column %s", name)
				return 0
			}
			exact := false
			if v, exact, err = unit.ParseDecimal(cells[k], digits, r); err == nil && (v < least || v > most || r == whole && !exact) {
				err = fmt.Errorf("%s %q is outside what a GPU does", name, cells[k])
			}
			return v
		}
		s.stage = int(number("stage", 0, whole, 0, 1<<16-1))
		s.member = number("tp_rank", 0, whole, 0, 1<<24-1)
		s.member += number("cp_rank", 0, whole, 0, 1<<16-1) << 24
		s.member += number("ep_rank", 0, whole, 0, 1<<16-1) << 40
		s.clock = number("frequency", clockDigits, whole, 20, 10_000)
		s.time = number("time", timeDigits, unit.Up, 1, int64(unit.MaxOpTime))
		s.energy = number("energy", energyDigits, unit.Nearest, 1, int64(unit.MaxOpEnergy))
		if k, ok := column["instruction"]; err == nil && ok {
			s.instruction = cells[k]
		}
		if err == nil && (s.instruction == "" || s.power() < 1000 || s.power() > 20_000_000) {
			err = fmt.Errorf("instruction %q at %d mW", s.instruction, s.power())
		}
		if err != nil {
			bad = append(bad, fmt.Sprintf("line %d: %v", i+1, err))
			continue
		}
		samples = append(samples, s)
	}
	return m.combine(samples, bad, said.SkippedRows)
}

// whole marks numbers that must not be rounded at all.
const whole unit.Rounding = 100

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

// combine leaves out what is far off or incomplete, and makes options of the rest.
func (m *measurements) combine(samples []sample, bad []string, skipped int) (*measurements, error) {
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
	type point struct {
		source
		clock int64
	}
	byMember := map[point]map[int64][]sample{}
	members := map[int64]bool{}
	for _, s := range samples {
		if u := usual[s.source]; far(s.time, u[0]) || far(s.power(), u[1]) {
			bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: far from the median", s.stage, s.instruction, s.clock))
			continue
		}
		p := point{s.source, s.clock}
		if byMember[p] == nil {
			byMember[p] = map[int64][]sample{}
		}
		byMember[p][s.member] = append(byMember[p][s.member], s)
		members[s.member] = true
	}
	m.members, m.options = len(members), map[source][]dag.Option{}
	for p, of := range byMember {
		var o dag.Option
		o.Knobs.ClockMHz = int32(p.clock)
		for _, samples := range of {
			var times, energies []int64
			for _, s := range samples {
				times, energies = append(times, s.time), append(energies, s.energy)
			}
			o.Time = max(o.Time, unit.Time(median(times)))
			o.Energy += unit.Energy(median(energies))
			if len(of) < len(members) {
				for range samples {
					bad = append(bad, fmt.Sprintf("stage %d, %s at %d MHz: not measured on all GPUs", p.stage, p.instruction, p.clock))
				}
			}
		}
		if len(of) == len(members) {
			m.options[p.source] = append(m.options[p.source], o)
		}
	}
	stages := map[int]bool{}
	for k, options := range m.options {
		stages[k.stage] = true
		slices.SortFunc(options, func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
	}
	m.stages = len(stages)
	if len(bad) != skipped {
		what := ""
		if len(bad) > 0 {
			what = "; " + slices.Min(bad)
		}
		return nil, violated("profile.skipped_rows", "the file says %d, but %d rows are bad%s", skipped, len(bad), what)
	}
	return m, nil
}

// median returns the value in the middle, or between two the mean, rounded up.
func median(v []int64) int64 {
	slices.Sort(v)
	low, high := v[(len(v)-1)/2], v[len(v)/2]
	return low + (high-low+1)/2
}
