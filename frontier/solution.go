package frontier

import (
	"fmt"
	"iter"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Solution is an optimal relaxed schedule at one iteration time, with the flow
// that proves it.
type Solution struct {
	// Time is the makespan that was asked for.
	Time unit.Time
	// Price is what one more unit of time saves: −dΣe'/dT on the slower side of
	// Time, the value of Flow.
	Price unit.Power
	// Start and Duration hold each op's start and relaxed duration, which lies
	// between the fastest and the slowest time of its curve.
	Start, Duration []unit.Time
	// Flow holds the flow of each arc of the graph, in the order of Graph.Arcs.
	// The flow through an op is the sum over the arcs that end at it.
	Flow []unit.Power
}

// Segment is a linear piece of the frontier. It belongs to the iteration that
// yields it and is valid until the next one.
type Segment struct {
	// Slow and Fast are the iteration times at its ends, Fast < Slow.
	Slow, Fast unit.Time
	// Price is the fall of Σe' per unit of time between them.
	Price unit.Power

	solver *solver
}

// Solution fills into with the relaxed optimum at the segment's fast end and the
// flow that is optimal on the whole segment, reusing its slices. O(ops + arcs).
func (s *Segment) Solution(into *Solution) {
	s.solver.solution(into)
	into.Time, into.Price = s.Fast, s.Price
}

// Solve returns the linear segments of the frontier of p, exact, from the
// slowest to the fastest: their prices rise strictly, and each one's Fast is the
// next one's Slow. There is none where no op has a choice that matters. Stop by
// breaking out of the loop. Memory is O(ops + arcs).
func Solve(p *dag.Problem) iter.Seq[*Segment] {
	return func(yield func(*Segment) bool) {
		s := newSolver(p)
		if s == nil {
			return
		}
		segment := &Segment{Slow: s.makespan, solver: s}
		for s.breakpoint(noTarget) {
			segment.Fast, segment.Price = s.makespan, s.price
			if !yield(segment) {
				return
			}
			segment.Slow = segment.Fast
		}
	}
}

// At returns the relaxed optimum with makespan at most t: with makespan t
// between t_min and t_max, and the one of t_max later. It fails where t is less
// than t_min.
func At(p *dag.Problem, t unit.Time) (*Solution, error) {
	for s, err := range Times(p, []unit.Time{t}) {
		return s, err
	}
	return nil, nil
}

// Times yields At(p, t) for each of times, which must fall (or stay), in one
// walk of the frontier. The solution is the caller's to keep. It yields an error
// once, and ends, at the first time that is less than t_min.
func Times(p *dag.Problem, times []unit.Time) iter.Seq2[*Solution, error] {
	return func(yield func(*Solution, error) bool) {
		s := newSolver(p)
		if s == nil {
			for range times {
				if !yield(&Solution{}, nil) {
					return
				}
			}
			return
		}
		for _, t := range times {
			for s.makespan > t && s.breakpoint(t) {
			}
			if s.makespan > t {
				yield(nil, fmt.Errorf("no schedule takes %v: the least iteration time is %v", t, s.makespan))
				return
			}
			into := &Solution{Time: s.makespan, Price: s.price}
			s.solution(into)
			if !yield(into, nil) {
				return
			}
		}
	}
}
