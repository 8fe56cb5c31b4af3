package baseline

import (
	"cmp"
	"math"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Exponential is a fitted cost e = A·exp(B·t) + C, with t in units of τ and e in
// joules, B < 0.
type Exponential struct {
	A, B, C float64
	// Worst is the greatest error at a measurement, in joules.
	Worst float64
}

// At returns the cost at t.
func (e Exponential) At(t float64) float64 { return float64(e.A*math.Exp(e.B*t)) + e.C }

// candidate is an option as published Perseus sees it.
type candidate struct {
	units  int64   // its time in whole units of τ, rounded down
	cost   float64 // effective energy in joules
	option dag.Option
}

// candidates returns the options that published Perseus considers, slowest first:
// those that no other one beats in both time and energy; of several that take the
// same number of units the one of the most energy; with the energy of waiting for
// that many units subtracted.
func candidates(options []dag.Option, blocking unit.Power, tau unit.Time) []candidate {
	var kept []candidate
	for _, o := range options {
		beaten := slices.ContainsFunc(options, func(p dag.Option) bool { return p.Time < o.Time && p.Energy < o.Energy })
		if !beaten {
			kept = append(kept, candidate{units: int64(o.Time / tau), option: o})
		}
	}
	slices.SortFunc(kept, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.units, a.units), cmp.Compare(b.option.Energy, a.option.Energy), cmp.Compare(a.option.Time, b.option.Time))
	})
	kept = slices.CompactFunc(kept, func(a, b candidate) bool { return a.units == b.units })
	for i := range kept {
		c := &kept[i]
		c.cost = c.option.Energy.Joules() - float64(blocking.Watts()*(unit.Time(c.units)*tau).Seconds())
	}
	return kept
}

// fitExponential returns the exponential of least squared error through the
// candidates. For a given B the best A and C follow from linear regression, so
// only B is searched: on a logarithmic grid, then by golden section around the
// best point of it. ok is false with fewer than three candidates, or where the
// cost does not fall with time.
func fitExponential(c []candidate) (e Exponential, ok bool) {
	if len(c) < 3 {
		return e, false
	}
	first, last := float64(c[len(c)-1].units), float64(c[0].units)
	at := func(logB float64) (Exponential, float64) { return regress(c, first, -math.Exp(logB)/(last-first)) }
	const low, high, steps = -7.0, 5.0, 120
	best, least := low, math.Inf(1)
	for i := range steps + 1 {
		x := low + (high-low)*float64(i)/steps
		if _, err := at(x); err < least {
			best, least = x, err
		}
	}
	a, b := best-(high-low)/steps, best+(high-low)/steps
	const golden = 0.6180339887498949
	for range 60 {
		x, y := b-float64(golden*(b-a)), a+float64(golden*(b-a))
		_, ex := at(x)
		_, ey := at(y)
		if ex < ey {
			b = y
		} else {
			a = x
		}
	}
	e, _ = at((a + b) / 2)
	if e.A <= 0 || math.IsNaN(e.A) || math.IsNaN(e.C) {
		return e, false
	}
	// From (t − first) to t.
	e.A *= math.Exp(-e.B * first)
	for _, p := range c {
		e.Worst = max(e.Worst, math.Abs(e.At(float64(p.units))-p.cost))
	}
	return e, !math.IsInf(e.A, 0) && !math.IsNaN(e.A)
}

// regress returns the best A and C for a B, with times counted from first, and
// the squared error.
func regress(c []candidate, first, b float64) (e Exponential, squared float64) {
	n := float64(len(c))
	var sx, sy, sxx, sxy float64
	for _, p := range c {
		x := math.Exp(b * (float64(p.units) - first))
		sx += x
		sy += p.cost
		sxx += float64(x * x)
		sxy += float64(x * p.cost)
	}
	e.B = b
	e.A = (float64(n*sxy) - float64(sx*sy)) / (float64(n*sxx) - float64(sx*sx))
	e.C = (sy - float64(e.A*sx)) / n
	for _, p := range c {
		d := float64(e.A*math.Exp(b*(float64(p.units)-first))) + e.C - p.cost
		squared += float64(d * d)
	}
	return e, squared
}
