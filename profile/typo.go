package profile

import (
	"fmt"
)

// dropOddClocks drops rows at a clock that one op alone has, and that is over twice
// the highest or under half the lowest of the clocks that several ops have: a digit
// too many or too few. An op of a clock too low would take up time that no GPU
// needs, and one of a clock too high looks like the fastest.
func (rd *reader) dropOddClocks(bad *problems) {
	ops := map[int32]int{} // by clock
	for o := range runs(rd.rows, sameOp) {
		for point := range runs(o, samePoint) {
			ops[point[0].clock]++
		}
	}
	low, high := int32(0), int32(0)
	for clock, n := range ops {
		if n > 1 {
			if low == 0 || clock < low {
				low = clock
			}
			high = max(high, clock)
		}
	}
	if high == 0 {
		return // each op has clocks of its own
	}
	rd.drop(bad, func(r row) (field, string) {
		if ops[r.clock] > 1 || r.clock <= 2*high && 2*r.clock >= low {
			return fieldFrequency, ""
		}
		return fieldFrequency, fmt.Sprintf("no other op was measured at this clock, and the others at %d … %d MHz; correct or delete the row", low, high)
	})
}

// dropMistyped drops rows of an instruction that one stage alone has, if that stage
// has as many of one that several have and that differs in one letter, or in the
// order of two.
func (rd *reader) dropMistyped(bad *problems) {
	type source struct{ stage, instruction int32 }
	rows := map[source]int{}
	stages := make([]int, len(rd.instructions))
	for o := range runs(rd.rows, sameOp) {
		rows[source{o[0].stage, o[0].instruction}] = len(o)
		stages[o[0].instruction]++
	}
	rd.drop(bad, func(r row) (field, string) {
		if stages[r.instruction] > 1 {
			return fieldInstruction, ""
		}
		for i, name := range rd.instructions {
			if stages[i] > 1 && rows[source{r.stage, r.instruction}] <= rows[source{r.stage, int32(i)}] && alike(rd.instructions[r.instruction], name) {
				return fieldInstruction, fmt.Sprintf("did you mean %s? no other stage has %s; correct or delete the row", name, rd.instructions[r.instruction])
			}
		}
		return fieldInstruction, ""
	})
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
