package reference

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Best returns the least Σe' of any schedule of real options with makespan at
// most t, by trying all of them; ok is false where none keeps the time. Of equal
// ones the first in the order of options is returned. O(options^ops).
func Best(p *dag.Problem, t unit.Time) (choice []int32, effective unit.Energy128, ok bool) {
	at := make([]int32, p.Graph.Ops)
	start := make([]unit.Time, p.Graph.Ops)
	for {
		c := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Options[at[op]] })
		if c.Time <= t && (!ok || c.Effective.Cmp(effective) < 0) {
			choice, effective, ok = append(choice[:0], at...), c.Effective, true
		}
		op := 0
		for ; op < len(at); op++ {
			if at[op]++; int(at[op]) < len(p.Curve(int32(op)).Options) {
				break
			}
			at[op] = 0
		}
		if op == len(at) {
			return choice, effective, ok
		}
	}
}
