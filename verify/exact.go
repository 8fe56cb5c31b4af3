package verify

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// exactness shows that certificates are tight: that a schedule with relaxed op
// times costs what they prove.
//
// A relaxed time t of an op costs the lower convex hull of the op's options at
// t. By complementary slackness, a relaxed schedule of makespan T costs base −
// price·T where each op's time is such that hull(t) + flow·t is the least there
// is, no op waits on an arc with flow, and the ops on arcs with flow to the sink
// end at T. As prices are rounded, "the least there is" has to hold for some flow
// not further than slack from the op's own. At that flow the shortest or the
// longest such time is the dearest, as costs are convex; by how much, summed over
// ops, is what a point's certificate may fall short of the frontier.
type exactness struct {
	problem *dag.Problem
	slack   unit.Power

	// For each op the times allowed by the present flow and by the one before,
	// and the present flow, −1 where there is none yet.
	now, before []interval
	// narrow is as now, for flows not further than the rounding of an exact slope.
	narrow    []interval
	flow      []unit.Power
	leastCost []unit.Energy128
	missed    []unit.Energy128 // by the dearest allowed time, now
	// tight says of each arc whether it has flow, now or before.
	tightNow, tightBefore []bool

	start, end []unit.Time
	sweeps     int // most that a point needed
}

// interval is the times from low to high.
type interval struct{ low, high unit.Time }

func newExactness(p *dag.Problem, quantum unit.Power) exactness {
	ops, arcs := p.Graph.Ops, len(p.Graph.Arcs)
	x := exactness{
		problem: p,
		slack:   (quantum+1)/2 + unit.Microwatt,
		now:     make([]interval, ops), before: make([]interval, ops), narrow: make([]interval, ops),
		flow: make([]unit.Power, ops), leastCost: make([]unit.Energy128, ops), missed: make([]unit.Energy128, ops),
		tightNow: make([]bool, arcs), tightBefore: make([]bool, arcs),
		start: make([]unit.Time, ops), end: make([]unit.Time, ops),
	}
	for op := range x.flow {
		x.flow[op] = -1
	}
	return x
}

// least returns the least e' + flow·t of an op's options, and notes which times
// cost the least for some flow within the slack.
func (x *exactness) least(op int32, flow unit.Power) unit.Energy128 {
	if x.flow[op] == flow {
		return x.leastCost[op]
	}
	options := x.problem.Curve(op).Options
	least := cheapest(options, 2*flow)
	x.flow[op], x.leastCost[op] = flow, cost(least.option, flow)
	x.now[op] = interval{cheapest(options, 2*(flow+x.slack)).shortest, cheapest(options, 2*(flow-x.slack)).longest}
	x.narrow[op] = interval{cheapest(options, 2*flow+1).shortest, cheapest(options, 2*flow-1).longest}
	x.missed[op] = unit.Energy128{}
	for _, o := range options {
		if o.Time == x.now[op].low || o.Time == x.now[op].high {
			if v := cost(o, flow).Sub(x.leastCost[op]); v.Cmp(x.missed[op]) > 0 {
				x.missed[op] = v
			}
		}
	}
	return x.leastCost[op]
}

func cost(o dag.Option, flow unit.Power) unit.Energy128 {
	return o.Effective.Widen().Add(unit.Product(flow, o.Time))
}

// cheap is the option that costs least, and the shortest and the longest time of
// those that cost as little.
type cheap struct {
	option            dag.Option
	shortest, longest unit.Time
}

// cheapest returns what costs least where time costs half of twice, so that there
// are flows between two microwatts.
func cheapest(options []dag.Option, twice unit.Power) (c cheap) {
	var least unit.Energy128
	for i, o := range options {
		v := o.Effective.Widen().Add(o.Effective.Widen()).Add(unit.Product(twice, o.Time))
		switch order := v.Cmp(least); {
		case i == 0 || order < 0:
			least, c = v, cheap{o, o.Time, o.Time}
		case order == 0:
			c.shortest, c.longest = min(c.shortest, o.Time), max(c.longest, o.Time)
		}
	}
	return c
}

// missing returns by how much the certificate of the present flow may fall short
// of the frontier.
func (x *exactness) missing() (sum unit.Energy128) {
	for _, v := range x.missed {
		sum = sum.Add(v)
	}
	return sum
}

// maxSweeps bounds the search for a relaxed schedule. Measured frontiers need a
// few tens.
const maxSweeps = 20_000

// at shows that there is a relaxed schedule with makespan t for which the
// certificate of the flow is tight, and, if both is true, that of the flow
// before as well; if earliest is true, also that a nanosecond sooner there is
// none. Each op's flow was given to least.
func (x *exactness) at(t unit.Time, flow []unit.Power, both, earliest bool) error {
	for a, f := range flow {
		x.tightNow[a] = f > 0
	}
	if err := x.search(t, both); err != nil {
		return err
	}
	if err := x.check(t, both); err != nil {
		return err
	}
	if earliest {
		wide := x.now
		x.now = x.narrow
		sooner := x.search(t-1, both) == nil && x.check(t-1, both) == nil
		x.now = wide
		if sooner {
			return violated("relaxed_time_s", "%v is not where the certificate begins to be tight", t)
		}
	}
	copy(x.before, x.now)
	copy(x.tightBefore, x.tightNow)
	return nil
}

// allowed returns the times that an op may take.
func (x *exactness) allowed(op int32, both bool) interval {
	v := x.now[op]
	if both {
		v.low, v.high = max(v.low, x.before[op].low), min(v.high, x.before[op].high)
	}
	return v
}

func (x *exactness) tight(arc int32, both bool) bool {
	return x.tightNow[arc] || both && x.tightBefore[arc]
}

// search finds the earliest starts and ends that meet all lower limits that ops
// set each other, by sweeps in the order of the graph and against it until
// nothing moves. If there is a schedule at all, this is one: it is the earliest.
func (x *exactness) search(t unit.Time, both bool) error {
	g := x.problem.Graph
	clear(x.start)
	clear(x.end)
	order := g.Order()
	for sweep := 1; sweep <= maxSweeps; sweep++ {
		moved := false
		raise := func(v *unit.Time, to unit.Time) {
			if to > *v {
				*v, moved = to, true
			}
		}
		for _, op := range order {
			raise(&x.end[op], x.start[op]+x.allowed(op, both).low)
			for _, a := range g.Out(op) {
				if to := g.Arcs[a].To; to >= 0 {
					raise(&x.start[to], x.end[op])
				} else if x.tight(a, both) {
					raise(&x.end[op], t)
				}
			}
		}
		for i := len(order) - 1; i >= 0; i-- {
			op := order[i]
			for _, a := range g.Out(op) {
				if to := g.Arcs[a].To; to >= 0 && x.tight(a, both) {
					raise(&x.end[op], x.start[to])
				}
			}
			raise(&x.start[op], x.end[op]-x.allowed(op, both).high)
			if x.end[op] > t {
				return violated("relaxed_time_s", "the certificates are not tight at %v: op %d would end at %v", t, op, x.end[op])
			}
		}
		if !moved {
			x.sweeps = max(x.sweeps, sweep)
			return nil
		}
	}
	return violated("relaxed_time_s", "no relaxed schedule of %v is found in %d sweeps", t, maxSweeps)
}

// check is all that has to be believed of the schedule that was found.
func (x *exactness) check(t unit.Time, both bool) error {
	for op := range int32(x.problem.Graph.Ops) {
		takes, v := x.end[op]-x.start[op], x.allowed(op, both)
		if x.start[op] < 0 || x.end[op] > t || takes < v.low || takes > v.high {
			return violated("flow", "the certificates are not tight at %v: op %d cannot take %v", t, op, takes)
		}
	}
	for a, arc := range x.problem.Graph.Arcs {
		from, to := unit.Time(0), t
		if arc.From != dag.Source {
			from = x.end[arc.From]
		}
		if arc.To != dag.Sink {
			to = x.start[arc.To]
		}
		if from > to || from < to && x.tight(int32(a), both) {
			return violated("flow", "the certificates are not tight at %v: arc %d waits from %v to %v", t, a, from, to)
		}
	}
	return nil
}
