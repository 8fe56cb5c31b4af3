package characterize

import (
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// certificate says that no schedule with makespan at most T has a Σe' below
// base − price·T, and that at the point's own time some relaxed schedule has one
// of at most missing more.
type certificate struct {
	base    unit.Energy128
	price   unit.Power
	missing unit.Energy128
}

func (c certificate) at(t unit.Time) unit.Energy128 { return c.base.Sub(unit.Product(c.price, t)) }

// certify returns the certificate of a flow, as dag.Problem.Bound does. Only ops
// whose flow differs from the flow before are evaluated.
func (c *collector) certify(flow []unit.Power) certificate {
	g := c.problem.Graph
	if c.through == nil {
		c.through, c.least = make([]unit.Power, g.Ops), make([]unit.Energy128, g.Ops)
		for op := range c.through {
			c.through[op] = -1
		}
	}
	for op := range int32(g.Ops) {
		var through unit.Power
		for _, a := range g.In(op) {
			through += flow[a]
		}
		if through == c.through[op] {
			continue
		}
		least := c.problem.Curve(op).Least(through)
		c.base = c.base.Add(least).Sub(c.least[op])
		c.through[op], c.least[op] = through, least
	}
	var price unit.Power
	from, to := g.Sources()
	for _, f := range flow[from:to] {
		price += f
	}
	return certificate{base: c.base, price: price, missing: c.missing(c.through)}
}

// missing returns how far the certificate of a flow may fall short of the relaxed
// frontier where that flow is optimal: as prices are multiples of the quantum, or
// of a microwatt, each op's time is one that costs the least for some flow not
// further than slack from its own, and by the op's own flow the two ends of these
// times are the dearest. O(ops·options), nothing for a whole frontier.
func (c *collector) missing(through []unit.Power) (sum unit.Energy128) {
	if c.whole {
		return sum
	}
	slack := (c.quantum+1)/2 + unit.Microwatt
	for op, flow := range through {
		options := c.problem.Curve(int32(op)).Options
		cost := func(o dag.Option, flow unit.Power) unit.Energy128 {
			return o.Effective.Widen().Add(unit.Product(flow, o.Time))
		}
		// Options are slowest first.
		short, long := options[0], options[0]
		for _, o := range options[1:] {
			if cost(o, flow+slack).Cmp(cost(short, flow+slack)) <= 0 {
				short = o
			}
			if cost(o, flow-slack).Cmp(cost(long, flow-slack)) < 0 {
				long = o
			}
		}
		dearest := cost(short, flow)
		if v := cost(long, flow); v.Cmp(dearest) > 0 {
			dearest = v
		}
		sum = sum.Add(dearest.Sub(c.least[op]))
	}
	return sum
}

// boundAt returns the bound of Σe' at makespan t: the better one of the
// certificates of the two points between whose relaxed times t lies.
func boundAt(relaxed []unit.Time, certificates []certificate, t unit.Time) unit.Energy128 {
	i, found := slices.BinarySearch(relaxed, t)
	if !found {
		i-- // relaxed[i] ≤ t: no schedule is faster than the first point
	}
	bound := certificates[max(i, 0)].at(t)
	if i+1 < len(relaxed) {
		if next := certificates[i+1].at(t); next.Cmp(bound) > 0 {
			bound = next
		}
	}
	return bound
}
