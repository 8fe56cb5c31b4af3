// Package round turns a relaxed schedule, whose ops take any time on the convex
// hulls of their curves, into one of real options that GPUs can run: never slower
// than the time asked for, and as little above the relaxed cost as can be found.
//
// It comes after package frontier, whose solutions it takes, and before the
// packages that write or apply schedules. It does not solve the relaxation and
// proves nothing: how good a schedule is says the bound of the relaxation.
// docs/rounding.md describes the methods, what they reach, and what failed.
package round

import (
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// Effort says how much work to spend on one schedule.
type Effort uint8

// The efforts. Fast takes about 0.1 µs an op; on two cores Normal takes half a
// second for 200 ops and two for 1,500, Best fifteen times as long.
const (
	Fast Effort = iota
	Normal
	Best
)

var effortNames = [...]string{Fast: "fast", Normal: "normal", Best: "best"}

// String returns "fast", "normal" or "best".
func (e Effort) String() string {
	if int(e) < len(effortNames) {
		return effortNames[e]
	}
	return fmt.Sprintf("Effort(%d)", e)
}

// ParseEffort is the reverse of String.
func ParseEffort(s string) (Effort, error) {
	for e, name := range effortNames {
		if s == name {
			return Effort(e), nil
		}
	}
	return 0, fmt.Errorf("effort %q: it is fast, normal or best", s)
}

// Round returns the option of each op, as an index of its curve's Options, of a
// schedule with makespan at most s.Time; where s.Time is less than the least
// makespan there is, all ops get their fastest option. s guides the search: the
// better it is, the better the schedule, but any s gives a schedule that keeps
// the time. The same input gives the same schedule on any machine. The result is
// the caller's; p and s are not changed.
func Round(p *dag.Problem, s *frontier.Solution, e Effort) (choice []int32) {
	return NewRounder(p).Round(s, e, nil)
}

// Alone is Round in the calling goroutine only: the same schedule in up to twice
// the time, for those that must leave the other cores to others.
func Alone(p *dag.Problem, s *frontier.Solution, e Effort) (choice []int32) {
	r := NewRounder(p)
	r.alone = true
	return r.Round(s, e, nil)
}

// Rounder rounds many solutions of one problem without allocating anew for each.
// It is not safe for concurrent use.
type Rounder struct {
	p      *dag.Problem
	start  []unit.Time // by op: earliest start in the schedule at hand
	late   []unit.Time // by op: latest end
	second []int32     // a second choice
	alone  bool
}

// NewRounder returns a Rounder for p.
func NewRounder(p *dag.Problem) *Rounder {
	return &Rounder{
		p:     p,
		start: make([]unit.Time, p.Graph.Ops),
		late:  make([]unit.Time, p.Graph.Ops),
	}
}

// Round is like the function Round; it fills into where that is large enough.
func (r *Rounder) Round(s *frontier.Solution, e Effort, into []int32) (choice []int32) {
	if cap(into) < r.p.Graph.Ops {
		into = make([]int32, r.p.Graph.Ops)
	}
	choice = into[:r.p.Graph.Ops]
	r.fast(s, choice)
	if e == Fast || r.p.Graph.Ops == 0 || !complete(r.p, s) || r.makespan(choice) > s.Time {
		return choice
	}
	better := slices.Clone(choice)
	search(r.p, s, budgetOf(len(better), e), r.alone, better)
	if r.makespan(better) <= s.Time {
		copy(choice, better)
	}
	return choice
}

// complete says whether s has the sizes of a solution of p, and no negative flow.
func complete(p *dag.Problem, s *frontier.Solution) bool {
	ops := p.Graph.Ops
	return len(s.Start) == ops && len(s.Duration) == ops && len(s.Flow) == len(p.Graph.Arcs) &&
		(len(s.Flow) == 0 || slices.Min(s.Flow) >= 0)
}

func (r *Rounder) makespan(choice []int32) unit.Time {
	return r.p.Graph.Starts(r.start, func(op int32) unit.Time { return r.p.Curve(op).Options[choice[op]].Time })
}
