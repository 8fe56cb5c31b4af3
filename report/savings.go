package report

import (
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// Saving is what a plan of the frontier's own points saves in one situation,
// against all ops at their top clocks in the same situation.
type Saving struct {
	// Situation says in a few words when the plan is right.
	Situation string
	// Straggler is the straggler's factor of the least time; 0 where there is
	// none.
	Straggler plan.Ratio
	// Plan has all but its ops.
	Plan *plan.Plan
}

// Savings returns the savings of a frontier: at unchanged time, at the least
// energy, and under stragglers of 1.05 to 1.5 times the least time. It costs one
// plan of effort fast for each.
func Savings(f *frontierfile.File) ([]Saving, error) {
	planner, err := plan.New(f)
	if err != nil {
		return nil, err
	}
	rows := []Saving{
		{Situation: "fastest", Plan: &plan.Plan{Request: plan.Request{Goal: plan.Fastest}}},
		{Situation: "least energy", Plan: &plan.Plan{Request: plan.Request{Goal: plan.LeastEnergy}}},
	}
	for _, percent := range []plan.Ratio{105, 110, 120, 130, 140, 150} {
		factor := percent * plan.One / 100
		rows = append(rows, Saving{
			Situation: "straggler ×" + factor.String(), Straggler: factor,
			Plan: &plan.Plan{Request: plan.Request{Goal: plan.Straggler, Factor: factor}},
		})
	}
	for i := range rows {
		r := &rows[i]
		r.Plan.Request.Effort = round.Fast
		if r.Plan, err = planner.Make(r.Plan.Request); err != nil {
			return nil, err
		}
		r.Plan.Ranks = nil
	}
	return rows, nil
}

// share returns 1 − a/b as a float for display.
func share(a, b frontierfile.Nanojoules) float64 {
	if b <= 0 {
		return 0
	}
	return 1 - a.Joules()/b.Joules()
}

// Line returns at most n points of the frontier for a picture.
func Line(f *frontierfile.File, n int) []XY {
	var xy []XY
	for _, i := range spread(f, n) {
		xy = append(xy, XY{f.Points[i].Time.Seconds(), f.Points[i].Energy.Joules()})
	}
	return xy
}

// marks returns the named points of a frontier's picture, the baseline first.
func marks(f *frontierfile.File, rows []Saving, ascii bool) []Mark {
	runes := []rune("×●◆")
	if ascii {
		runes = []rune("xo#")
	}
	m := []Mark{{XY{f.Header.MaxClockTime.Seconds(), f.Header.MaxClockEnergy.Joules()}, "all ops at their top clocks", runes[0]}}
	for i, r := range runes[1:] {
		p := rows[i].Plan
		m = append(m, Mark{XY{p.Time.Seconds(), p.Energy.Joules()}, rows[i].Situation, r})
	}
	return m
}

// factor returns t as a multiple of the least time, for display.
func factor(t unit.Time, h *frontierfile.Header) float64 {
	if h.TMin == 0 {
		return 1
	}
	return t.Seconds() / h.TMin.Seconds()
}
