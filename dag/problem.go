package dag

import (
	"fmt"

	"github.com/perseus-energy/perseus/unit"
)

// Problem is a graph of ops, each with a curve. It is immutable.
type Problem struct {
	Graph *Graph
	// Curves are the different curves; CurveOf gives each op's, as an index.
	Curves  []Curve
	CurveOf []int32
	// BlockingPower is what all GPUs together draw while they wait: Σ_r P_r.
	BlockingPower unit.Power
}

// NewProblem returns the problem after checking that it is in range: each op has
// a curve, and sums of times and of slopes stay within unit.MaxMakespan and
// unit.MaxFlow, so that no arithmetic on it can overflow. The parts are kept.
func NewProblem(g *Graph, curves []Curve, curveOf []int32, blocking unit.Power) (*Problem, error) {
	if len(curveOf) != g.Ops {
		return nil, fmt.Errorf("%d ops have %d curves", g.Ops, len(curveOf))
	}
	if blocking < 0 || blocking > unit.MaxPower {
		return nil, fmt.Errorf("blocking power %v of all ranks is outside 0 … %v", blocking, unit.MaxPower)
	}
	var span unit.Time
	var steepest unit.Power
	for op, k := range curveOf {
		if k < 0 || int(k) >= len(curves) {
			return nil, fmt.Errorf("op %d: there is no curve %d", op, k)
		}
		c := &curves[k]
		// The slowest time counts also for an op that is faster in every schedule.
		if span += max(c.Slowest().Time, c.Top.Time); span > unit.MaxMakespan {
			return nil, fmt.Errorf("the ops' times add up to more than %v", unit.MaxMakespan)
		}
		if n := len(c.Slope); n > 0 {
			if steepest += c.Slope[n-1]; steepest > unit.MaxFlow {
				return nil, fmt.Errorf("the ops' slopes add up to more than %v: options lie too close in time", unit.MaxFlow)
			}
		}
	}
	return &Problem{Graph: g, Curves: curves, CurveOf: curveOf, BlockingPower: blocking}, nil
}

// Curve returns the curve of op.
func (p *Problem) Curve(op int32) *Curve { return &p.Curves[p.CurveOf[op]] }

// Starts fills start with the earliest start of each op, given each op's time,
// and returns the makespan. O(ops + arcs).
func (g *Graph) Starts(start []unit.Time, time func(op int32) unit.Time) (makespan unit.Time) {
	clear(start)
	for _, op := range g.order {
		end := start[op] + time(op)
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 {
				start[to] = max(start[to], end)
			} else {
				makespan = max(makespan, end)
			}
		}
	}
	return makespan
}

// Cost is what a schedule takes.
type Cost struct {
	// Time is the makespan and Effective Σe'.
	Time      unit.Time
	Effective unit.Energy128
	// Energy is Effective + Time·Σ_r P_r: all that the GPUs use in the iteration.
	Energy unit.Energy128
}

// Evaluate returns the cost of running each op by its given option. start is
// filled with the ops' earliest starts. O(ops + arcs).
func (p *Problem) Evaluate(start []unit.Time, option func(op int32) Option) Cost {
	var c Cost
	c.Time = p.Graph.Starts(start, func(op int32) unit.Time { return option(op).Time })
	for op := range int32(p.Graph.Ops) {
		c.Effective = c.Effective.Add(option(op).Effective.Widen())
	}
	c.Energy = c.Effective.Add(unit.Product(p.BlockingPower, c.Time))
	return c
}

// EvaluateChoice is Evaluate where each op's option is given as an index in its
// curve's options.
func (p *Problem) EvaluateChoice(start []unit.Time, choice []int32) Cost {
	return p.Evaluate(start, func(op int32) Option { return p.Curve(op).Options[choice[op]] })
}

// Bound returns the certificate of a flow: no schedule with makespan at most T
// has a Σe' below the value base − price·T. flow gives each arc's flow; it must
// be feasible (not negative, conserved at every op), and how it was found does
// not matter. The value holds for the options themselves, not only for their
// convex hull, and is evaluated on them. O(ops·options + arcs).
func (p *Problem) Bound(flow []unit.Power) (base unit.Energy128, price unit.Power) {
	for op := range int32(p.Graph.Ops) {
		var through unit.Power
		for _, a := range p.Graph.In(op) {
			through += flow[a]
		}
		base = base.Add(p.Curve(op).Least(through))
	}
	from, to := p.Graph.Sources()
	for _, f := range flow[from:to] {
		price += f
	}
	return base, price
}

// Least returns min over the options of e' + flow·t: the least cost of an op
// where time costs flow. O(options).
func (c *Curve) Least(flow unit.Power) unit.Energy128 {
	least := c.Options[0].Effective.Widen().Add(unit.Product(flow, c.Options[0].Time))
	for _, o := range c.Options[1:] {
		if v := o.Effective.Widen().Add(unit.Product(flow, o.Time)); v.Cmp(least) < 0 {
			least = v
		}
	}
	return least
}
