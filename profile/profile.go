package profile

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/unit"
)

// Profile is what was measured of a model's stages. It is immutable.
type Profile struct {
	// SHA256 is the digest, in hexadecimal, of the file as it was before
	// compression, or of what WriteCSV writes if there was no file; empty after
	// Resample.
	SHA256 string
	// GPUsPerStage is how many GPUs run a stage together: an option's energy is
	// that of all of them.
	GPUsPerStage int
	// Units are those with which the file was read.
	Units Units
	// Report says what was read, repaired and left out.
	Report Report

	instructions []string
	rows         []row // by stage, instruction, clock, member, time, energy
	// start gives where the rows of each op start, and options its options;
	// ops are numbered stage by stage, instruction by instruction.
	start   []int
	options [][]dag.Option
}

// newProfile returns the profile of sorted rows, of which each stage has each
// instruction at least once. It keeps the rows.
func newProfile(rows []row, instructions []string, members int, report Report) *Profile {
	used := make([]int32, len(instructions))
	for _, r := range rows {
		used[r.instruction]++
	}
	var kept []string
	for i, name := range instructions {
		if n := used[i]; n > 0 {
			used[i] = int32(len(kept))
			kept = append(kept, name)
		}
	}
	for i := range rows {
		rows[i].instruction = used[rows[i].instruction]
	}
	p := &Profile{GPUsPerStage: members, Report: report, instructions: kept, rows: rows, start: []int{0}}
	for o := range runs(rows, sameOp) {
		p.start = append(p.start, p.start[len(p.start)-1]+len(o))
	}
	p.combine()
	p.Report.count(p)
	return p
}

// combine fills options from rows.
func (p *Profile) combine() {
	p.options = make([][]dag.Option, len(p.start)-1)
	var times, energies []int64
	for k := range p.options {
		for point := range runs(p.rows[p.start[k]:p.start[k+1]], samePoint) {
			o := dag.Option{Knobs: dag.Knobs{ClockMHz: point[0].clock}}
			for member := range runs(point, sameMember) {
				times, energies = times[:0], energies[:0]
				for _, r := range member {
					times, energies = append(times, int64(r.time)), append(energies, int64(r.energy))
				}
				o.Time = max(o.Time, unit.Time(median(times)))
				// Saturates: checked against unit.MaxOpEnergy by NewCurve.
				o.Energy = min(o.Energy+unit.Energy(median(energies)), 2*unit.MaxOpEnergy)
			}
			p.options[k] = append(p.options[k], o)
		}
	}
}

// median sorts v, which is not empty and holds no negative number, and returns
// its median; between the two in the middle, the mean rounded up.
func median(v []int64) int64 {
	slices.Sort(v)
	n := len(v)
	low, high := v[(n-1)/2], v[n/2]
	return low + (high-low+1)/2
}

// Stages returns how many stages there are.
func (p *Profile) Stages() int { return len(p.options) / max(1, len(p.instructions)) }

// Instructions returns the names of the instructions, which all stages have,
// in alphabetical order.
func (p *Profile) Instructions() []string { return slices.Clone(p.instructions) }

// op returns what op k is.
func (p *Profile) op(k int) (stage int, instruction string) {
	return k / len(p.instructions), p.instructions[k%len(p.instructions)]
}

// Options returns what was measured of an instruction on a stage, repeats
// combined: one option a clock, by ascending clock, with Knobs, Time and Energy
// set. The slice is the caller's. It fails with an *Error where the profile has
// no such stage or instruction.
func (p *Profile) Options(stage int, instruction string) ([]dag.Option, error) {
	i, found := slices.BinarySearch(p.instructions, instruction)
	message := ""
	switch {
	case stage < 0 || stage >= p.Stages():
		message = fmt.Sprintf("no rows of stage %d; there is stage 0 only", stage)
		if n := p.Stages(); n > 1 {
			message = fmt.Sprintf("no rows of stage %d; there are stages 0–%d", stage, n-1)
		}
	case !found:
		message = fmt.Sprintf("no rows of %q; there are those of %s; measure it on all stages", excerpt.Of(instruction, maxValue), list(p.instructions))
	default:
		return slices.Clone(p.options[stage*len(p.instructions)+i]), nil
	}
	return nil, &Error{Name: p.Report.Name, Problems: []Problem{{Message: message}}}
}

// HasRepeats says whether some op was measured more than once at a clock on the
// same member of the group.
func (p *Profile) HasRepeats() bool { return p.Report.Repeats > 0 }

// Resample returns a profile of as many rows, drawn with replacement from the
// samples of each member at each point, time and energy of a row together: one
// replicate of the bootstrap (Efron and Tibshirani, "An Introduction to the
// Bootstrap", 1993, chapter 6). Points without repeats stay as they are. It
// depends only on the rows and on rng. Few repeats make intervals from it too
// narrow: with n of them, the variance is (n−1)/n of what it should be.
func (p *Profile) Resample(rng *rand.Rand) *Profile {
	q := *p
	q.SHA256 = ""
	q.rows = make([]row, 0, len(p.rows))
	for point := range runs(p.rows, samePoint) {
		for member := range runs(point, sameMember) {
			from := len(q.rows)
			for range member {
				i := 0
				if len(member) > 1 {
					i = rng.IntN(len(member))
				}
				q.rows = append(q.rows, member[i])
			}
			slices.SortFunc(q.rows[from:], func(a, b row) int {
				return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.energy, b.energy))
			})
		}
	}
	q.combine()
	return &q
}
