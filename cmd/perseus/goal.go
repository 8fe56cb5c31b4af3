package main

import (
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// goal is what the flags of a command say to plan for; at most one is set.
type goal struct {
	time                *unit.Time
	slowdown, straggler *plan.Ratio
	power               *unit.Power
	minEnergy           bool
}

// of returns r with the goal that is set, or with the fastest plan where none is.
func (g goal) of(r plan.Request) plan.Request {
	switch {
	default:
		r.Goal = plan.Fastest
	case g.time != nil:
		r.Goal, r.Time = plan.WithinTime, *g.time
	case g.slowdown != nil:
		r.Goal, r.Factor = plan.Slowdown, *g.slowdown
	case g.straggler != nil:
		r.Goal, r.Factor = plan.Straggler, *g.straggler
	case g.power != nil:
		r.Goal, r.Power = plan.AveragePower, *g.power
	case g.minEnergy:
		r.Goal = plan.LeastEnergy
	}
	return r
}
