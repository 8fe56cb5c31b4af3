package characterize

import (
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// Problem returns the problem that a frontier was computed from, and the order
// of its ops, from the file's header alone. The problem's curves are those of
// h.Curves, in their order. It fails where the header contradicts itself or the
// rules, with an error that names the field. O(ops + options).
func Problem(h *frontierfile.Header) (*dag.Problem, *pipeline.Order, error) {
	// A false size is an error before it is much memory.
	if len(h.BlockingPower) != h.Ranks {
		return nil, nil, fmt.Errorf("blocking_power_w: %d values for %d ranks", len(h.BlockingPower), h.Ranks)
	}
	if h.Graph != nil {
		return graphOf(h)
	}
	if int64(h.Stages)*int64(h.Microbatches) > int64(h.Ops) {
		return nil, nil, fmt.Errorf("ops: %d are not enough for %d stages and %d microbatches", h.Ops, h.Stages, h.Microbatches)
	}
	order, err := orderOf(h)
	if err != nil {
		return nil, nil, err
	}
	if n := len(order.Ranks); n != h.Ranks {
		return nil, nil, fmt.Errorf("ranks: the header has %d, but the schedule makes it %d", h.Ranks, n)
	}
	g, ofOp, err := keyed(order, h)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range []struct {
		field     string
		have, say int
	}{
		{"stages", order.Stages, h.Stages},
		{"ops", g.Ops, h.Ops},
		{"arcs", len(g.Arcs), h.Arcs},
	} {
		if n.have != n.say {
			return nil, nil, fmt.Errorf("%s: the header has %d, but the schedule makes it %d", n.field, n.say, n.have)
		}
	}
	p, err := tabled(h, g, ofOp)
	return p, order, err
}

// tabled returns the problem of a graph whose ops have the given keys in the
// header's option table.
func tabled(h *frontierfile.Header, g *dag.Graph, ofOp []frontierfile.Key) (*dag.Problem, error) {
	curves := make([]dag.Curve, len(h.Curves))
	byKey := make(map[frontierfile.Key]int32, len(h.Curves))
	for i := range h.Curves {
		var err error
		if curves[i], err = curveOf(&h.Curves[i]); err != nil {
			return nil, fmt.Errorf("options[%d]: %w", i, err)
		}
		byKey[h.Curves[i].Key()] = int32(i)
	}
	index := make([]int32, len(ofOp))
	for op, k := range ofOp {
		i, ok := byKey[k]
		if !ok {
			return nil, fmt.Errorf("options: those of %v are missing", k)
		}
		index[op] = i
	}
	return dag.NewProblem(g, curves, index, sum(h.BlockingPower))
}

// orderOf returns the order that a header describes.
func orderOf(h *frontierfile.Header) (*pipeline.Order, error) {
	if h.Order != nil {
		o, err := pipeline.FromActions(h.Order)
		if err == nil {
			o.Schedule = h.Schedule
		}
		return o, err
	}
	return pipeline.Build(h.Schedule, pipeline.Size{
		Ranks: h.Ranks, Chunks: h.Chunks, Microbatches: h.Microbatches, Group: h.Group,
	})
}

// curveOf returns the curve of an entry of the option table, which has to be a
// curve already: a Pareto front, slowest first.
func curveOf(c *frontierfile.Curve) (dag.Curve, error) {
	curve, err := dag.NewCurve(append(slices.Clone(c.Options), c.Top), c.BlockingPower)
	if err == nil && (!slices.Equal(curve.Options, c.Options) || curve.Top != c.Top) {
		err = fmt.Errorf("not the Pareto front of an op with the option of its highest clock on top")
	}
	return curve, err
}

func sum(powers []unit.Power) (total unit.Power) {
	for _, p := range powers {
		if total += p; total > unit.MaxPower || p < 0 {
			return -1 // NewProblem refuses it
		}
	}
	return total
}

// inRange returns an error where a schedule's energy may be beyond what a file
// can hold, 4 GJ.
func inRange(p *dag.Problem, l frontierfile.Landmarks) error {
	const most = 4_000_000_000_000_000_000
	highest := make([]unit.Energy128, len(p.Curves))
	for i := range p.Curves {
		e := max(p.Curves[i].Top.Effective, -p.Curves[i].Top.Effective)
		for _, o := range p.Curves[i].Options {
			e = max(e, o.Effective, -o.Effective)
		}
		highest[i] = e.Widen()
	}
	total := unit.Product(p.BlockingPower, max(l.TMax, l.MaxClockTime))
	for _, i := range p.CurveOf {
		total = total.Add(highest[i])
	}
	if v, ok := total.Nanojoules(unit.Up); !ok || v > most {
		return fmt.Errorf("an iteration may use %.3g J; a frontier holds energies up to 4 GJ", total.Joules())
	}
	return nil
}
