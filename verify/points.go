package verify

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// checker goes through the points.
type checker struct {
	problem *dag.Problem
	file    *frontierfile.File
	report  Report

	start   []unit.Time // scratch
	through []unit.Power
	exact   exactness
	proved  []proof // of each point
}

// proof is what a point's flow and choice come to.
type proof struct {
	// No schedule with makespan at most T has a Σe' below base − price·T.
	base  unit.Energy128
	price unit.Power
	// At the point's relaxed time some relaxed schedule has a Σe' of at most
	// missing more than that.
	missing unit.Energy128
	// The cost of the point's own schedule.
	time      unit.Time
	effective unit.Energy128
}

func (p proof) at(t unit.Time) unit.Energy128 { return p.base.Sub(unit.Product(p.price, t)) }

func newChecker(p *dag.Problem, f *frontierfile.File) *checker {
	return &checker{problem: p, file: f, exact: newExactness(p, f.Header.Quantum)}
}

func (c *checker) sizes() error {
	if err := differs("ops", c.file.Header.Ops, c.problem.Graph.Ops); err != nil {
		return err
	}
	c.start, c.through = make([]unit.Time, c.problem.Graph.Ops), make([]unit.Power, c.problem.Graph.Ops)
	return differs("arcs", c.file.Header.Arcs, len(c.problem.Graph.Arcs))
}

// cost returns the makespan of a schedule and its Σe'.
func (c *checker) cost(option func(op int32) dag.Option) (makespan unit.Time, effective unit.Energy128) {
	g := c.problem.Graph
	clear(c.start)
	for _, op := range g.Order() {
		o := option(op)
		effective = effective.Add(o.Effective.Widen())
		end := c.start[op] + o.Time
		makespan = max(makespan, end)
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 {
				c.start[to] = max(c.start[to], end)
			}
		}
	}
	return makespan, effective
}

func (c *checker) landmarks() error {
	h := &c.file.Header
	curve := c.problem.Curve
	fastest, _ := c.cost(func(op int32) dag.Option { return curve(op).Options[len(curve(op).Options)-1] })
	slowest, _ := c.cost(func(op int32) dag.Option { return curve(op).Options[0] })
	top, effective := c.cost(func(op int32) dag.Option { return curve(op).Top })
	energy, err := c.energy(effective, top, unit.Nearest)
	if err != nil {
		return violated("max_clock_energy_j", "%v", err)
	}
	for _, t := range []struct {
		field         string
		said, derived unit.Time
	}{{"t_min_s", h.TMin, fastest}, {"t_max_s", h.TMax, slowest}, {"max_clock_time_s", h.MaxClockTime, top}} {
		if err := differs(t.field, t.said, t.derived); err != nil {
			return err
		}
	}
	return differs("max_clock_energy_j", h.MaxClockEnergy, energy)
}

// energy returns effective + t·ΣP.
func (c *checker) energy(effective unit.Energy128, t unit.Time, r unit.Rounding) (frontierfile.Nanojoules, error) {
	return nanojoules(effective.Add(unit.Product(c.problem.BlockingPower, t)), r)
}

func nanojoules(e unit.Energy128, r unit.Rounding) (frontierfile.Nanojoules, error) {
	v, ok := e.Nanojoules(r)
	if !ok {
		return 0, errors.New("beyond what a file can hold")
	}
	return frontierfile.Nanojoules(v), nil
}

// points checks each point's flow and choice, and that the certificates are tight.
func (c *checker) points() error {
	i := -1
	for p, err := range c.file.Walk() {
		i++
		var value *frontierfile.ValueError
		if errors.As(err, &value) {
			return violationOf(value)
		}
		if err == nil {
			err = c.point(i, p)
		}
		if err != nil {
			return atPoint(err, i)
		}
	}
	return nil
}

// atPoint returns the error as one of the point i, if it is a violation.
func atPoint(err error, i int) error {
	var v *Violation
	if !errors.As(err, &v) {
		return err
	}
	return &Violation{i, v.Field, v.Problem}
}

func (c *checker) point(i int, p *frontierfile.Point) error {
	var v proof
	var err error
	if v.base, v.price, err = c.certificate(p.Flow); err != nil {
		return err
	}
	for op, k := range p.Choice {
		if n := len(c.problem.Curve(int32(op)).Options); int(k) >= n {
			return violated("knobs", "op %d has option %d; there are 0 … %d", op, k, n-1)
		}
	}
	v.time, v.effective = c.cost(func(op int32) dag.Option { return c.problem.Curve(op).Options[p.Choice[op]] })
	if err := differs("price_w", p.Price, v.price); err != nil {
		return err
	}
	if err := differs("time_s", p.Time, v.time); err != nil {
		return err
	}
	if p.Time > p.RelaxedTime {
		return violated("time_s", "%v is later than the relaxed time %v", p.Time, p.RelaxedTime)
	}
	h := &c.file.Header
	last := len(c.file.Points) - 1
	if i == 0 {
		if err := differs("relaxed_time_s", p.RelaxedTime, h.TMin); err != nil {
			return err
		}
	} else {
		before := &c.file.Points[i-1]
		if p.RelaxedTime <= before.RelaxedTime {
			return violated("relaxed_time_s", "%v is not later than the point before it, %v", p.RelaxedTime, before.RelaxedTime)
		}
		if p.Price >= before.Price {
			return violated("price_w", "%v is not less than that of the point before it, %v: no breakpoint", p.Price, before.Price)
		}
	}
	if i == last {
		if err := differs("relaxed_time_s", p.RelaxedTime, h.TMax); err != nil {
			return err
		}
		if p.Price != 0 {
			return violated("price_w", "%v at t_max, where it must be 0", p.Price)
		}
	}
	v.missing = c.exact.missing()
	if v.missing.Cmp(c.report.Inexact) > 0 {
		c.report.Inexact = v.missing
	}
	c.proved = append(c.proved, v)
	whole := h.LineGap == 0
	// Where flows are those of a coarser problem, other times may do as well.
	earliest := !whole && h.Quantum == 0 && i > 0 && i < last
	return c.exact.at(p.RelaxedTime, p.Flow, whole && i > 0, earliest)
}

// certificate returns what a flow proves, after checking that it is one; the
// flow through each op is left in c.through. That it is not negative is checked
// when it is read.
func (c *checker) certificate(flow []unit.Power) (base unit.Energy128, price unit.Power, err error) {
	g := c.problem.Graph
	sum := func(arcs []int32) (total unit.Power) {
		for _, a := range arcs {
			total = min(total+flow[a], unit.MaxFlow+1) // never overflows
		}
		return total
	}
	for op := range int32(g.Ops) {
		in, out := sum(g.In(op)), sum(g.Out(op))
		if in != out || in > unit.MaxFlow {
			return base, 0, violated("flow", "%v flows into op %d and %v out of it", in, op, out)
		}
		c.through[op] = in
		base = base.Add(c.exact.least(op, in))
	}
	for a, arc := range g.Arcs {
		if arc.From == dag.Source {
			price = min(price+flow[a], unit.MaxFlow+1)
		}
	}
	if price > unit.MaxFlow {
		return base, 0, violated("flow", "more than %v flows in all", unit.MaxFlow)
	}
	return base, price, nil
}

// costs checks the energies, now that all certificates are known.
func (c *checker) costs() error {
	points, blocking := c.file.Points, c.problem.BlockingPower
	leastEnergy := c.file.Header.TMax
	var lines unit.Ratio
	if c.file.Header.LineGap != 0 {
		lines = 1 // at least, if the points are not all there are
	}
	for i := len(points) - 1; i >= 0; i-- {
		p, v := &points[i], c.proved[i]
		// The certificates of the points between which the schedule's own time
		// lies: the last one not later than it, and the next.
		k := i
		for points[k].RelaxedTime > p.Time {
			k-- // ends: no schedule is faster than t_min, the first relaxed time
		}
		bound := c.proved[k].at(p.Time)
		if k < len(points)-1 {
			if next := c.proved[k+1].at(p.Time); next.Cmp(bound) > 0 {
				bound = next
			}
		}
		energy, err1 := c.energy(v.effective, v.time, unit.Nearest)
		effective, err2 := nanojoules(v.effective, unit.Nearest)
		least, err3 := c.energy(bound, v.time, unit.Down)
		if err := errors.Join(err1, err2, err3); err != nil {
			return &Violation{i, "energy_j", err.Error()}
		}
		for _, e := range []struct {
			field         string
			said, derived frontierfile.Nanojoules
		}{{"energy_j", p.Energy, energy}, {"effective_energy_j", p.Effective, effective}, {"bound_j", p.Bound, least}} {
			if err := differs(e.field, e.said, e.derived); err != nil {
				return atPoint(err, i)
			}
		}
		if energy < least {
			return &Violation{i, "bound_j", fmt.Sprintf("%v is more than the energy, %v", least, energy)}
		}
		if err := differs("gap", p.Gap, gap(energy, least)); err != nil {
			return atPoint(err, i)
		}
		if p.Gap > c.report.LargestGap {
			c.report.LargestGap, c.report.LargestGapAt = p.Gap, i
		}
		if p.Price <= blocking {
			leastEnergy = p.RelaxedTime
		}
		if i > 0 && c.file.Header.LineGap != 0 {
			lines = max(lines, lineGap(points[i-1].RelaxedTime, p.RelaxedTime, c.proved[i-1], v, blocking))
		}
	}
	c.report.GapAtTMin, c.report.Sweeps = points[0].Gap, c.exact.sweeps
	if err := differs("least_energy_time_s", c.file.Header.LeastEnergyTime, leastEnergy); err != nil {
		return err
	}
	return differs("line_gap", c.file.Header.LineGap, lines)
}

// gap returns energy/bound − 1 to the nearest part per thousand million, halves
// up; 0 where the bound is not positive.
func gap(energy, bound frontierfile.Nanojoules) unit.Ratio {
	if bound <= 0 {
		return 0
	}
	twice := big.NewInt(int64(energy - bound))
	twice.Mul(twice, big.NewInt(2e9)).Add(twice, big.NewInt(int64(bound)))
	twice.Div(twice, big.NewInt(2)).Div(twice, big.NewInt(int64(bound)))
	return unit.Ratio(twice.Int64())
}

// lineGap returns how far the line between two neighbouring points, each as high
// as its relaxed schedule may cost in total, lies above what both certificates
// prove, at most, as a fraction, rounded up to a part per thousand million.
//
// Line and certificates are straight, so that is at an end or where the
// certificates are equally high: at the time x for which
// (f.base − s.base) = (f.price − s.price)·x.
func lineGap(fast, slow unit.Time, f, s proof, blocking unit.Power) unit.Ratio {
	number := func(v int64) *big.Rat { return new(big.Rat).SetInt64(v) }
	energy := func(e unit.Energy128) *big.Rat { return new(big.Rat).SetInt(wide(e)) }
	proved := func(p proof, t *big.Rat) *big.Rat {
		v := new(big.Rat).Mul(number(int64(blocking-p.price)), t)
		return v.Add(v, energy(p.base))
	}
	most := unit.Ratio(0)
	above := func(t *big.Rat, p proof) {
		share := new(big.Rat).Sub(t, number(int64(fast)))
		share.Quo(share, number(int64(slow-fast)))
		left := proved(f, number(int64(fast)))
		left.Add(left, energy(f.missing))
		right := proved(s, number(int64(slow)))
		right.Add(right, energy(s.missing))
		line := right.Sub(right, left)
		line.Mul(line, share).Add(line, left)
		most = max(most, fractionUp(line, proved(p, t)))
	}
	above(number(int64(fast)), f)
	above(number(int64(slow)), s)
	if f.price != s.price {
		x := new(big.Rat).Quo(energy(f.base.Sub(s.base)), number(int64(f.price-s.price)))
		if x.Cmp(number(int64(fast))) > 0 && x.Cmp(number(int64(slow))) < 0 {
			above(x, f)
		}
	}
	return most
}

// fractionUp returns a/b − 1, rounded up; 1 where that is more, or b not positive.
func fractionUp(a, b *big.Rat) unit.Ratio {
	const one = 1_000_000_000
	if b.Sign() <= 0 {
		return one
	}
	v := new(big.Rat).Quo(a, b)
	v.Sub(v, big.NewRat(1, 1)).Mul(v, big.NewRat(one, 1))
	up := new(big.Int).Add(v.Num(), v.Denom())
	up.Sub(up, big.NewInt(1)).Div(up, v.Denom())
	if !up.IsInt64() {
		return one
	}
	return unit.Ratio(min(up.Int64(), one))
}

// wide returns e in femtojoules.
func wide(e unit.Energy128) *big.Int {
	const part = 1 << 62
	high, _ := e.DivInt(part, unit.Down)
	low, _ := e.Sub(unit.Product(part, unit.Time(high))).DivInt(1, unit.Down)
	return new(big.Int).Add(new(big.Int).Mul(big.NewInt(high), big.NewInt(part)), big.NewInt(low))
}
