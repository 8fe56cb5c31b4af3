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
	if int64(h.Stages)*int64(h.Microbatches) > int64(h.Ops) {
		return nil, nil, fmt.Errorf("ops: %d are not enough for %d stages and %d microbatches", h.Ops, h.Stages, h.Microbatches)
	}
	order, err := orderOf(h)
	if err != nil {
		return nil, nil, err
	}
	g, err := order.Graph()
	if err != nil {
		return nil, nil, err
	}
	for _, n := range []struct {
		field     string
		have, say int
	}{
		{"ranks", len(order.Ranks), h.Ranks},
		{"stages", order.Stages, h.Stages},
		{"ops", g.Ops, h.Ops},
		{"arcs", len(g.Arcs), h.Arcs},
	} {
		if n.have != n.say {
			return nil, nil, fmt.Errorf("%s: the header has %d, but the schedule makes it %d", n.field, n.say, n.have)
		}
	}
	curves := make([]dag.Curve, len(h.Curves))
	for i := range h.Curves {
		if curves[i], err = curveOf(&h.Curves[i]); err != nil {
			return nil, nil, fmt.Errorf("options[%d]: %w", i, err)
		}
	}
	byKey := make(map[key]int32, len(h.Curves))
	for i, c := range h.Curves {
		byKey[key{int32(c.Stage), c.Instruction, c.BlockingPower}] = int32(i)
	}
	ofOp := make([]int32, 0, g.Ops)
	for rank, a := range order.All() {
		k := keyOf(a, h.BlockingPower[rank])
		i, ok := byKey[k]
		if !ok {
			return nil, nil, fmt.Errorf("options: those of %v are missing", k)
		}
		ofOp = append(ofOp, i)
	}
	p, err := dag.NewProblem(g, curves, ofOp, sum(h.BlockingPower))
	return p, order, err
}

// orderOf returns the order that a header describes.
func orderOf(h *frontierfile.Header) (*pipeline.Order, error) {
	if h.Order != nil {
		return pipeline.FromActions(h.Order)
	}
	return pipeline.Build(h.Schedule, pipeline.Size{
		Ranks: h.Ranks, Chunks: h.Chunks, Microbatches: h.Microbatches,
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

// key tells curves apart.
type key struct {
	stage       int32
	instruction string
	blocking    unit.Power
}

func keyOf(a pipeline.Action, blocking unit.Power) key {
	return key{a.Stage, a.Kind.Instruction(), blocking}
}

func (k key) String() string {
	return fmt.Sprintf("stage %d, %s, on GPUs that wait at %v", k.stage, k.instruction, k.blocking)
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
