package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Pipeline is what runs: the ops of one pipeline, in order, with every option
// that is known of each. It is immutable.
type Pipeline struct {
	Problem *dag.Problem
	Order   *pipeline.Order
	// Options holds, for each curve of Problem, the measured options by ascending
	// clock: all of them, or those on the curve and its top one where there are no
	// measurements at hand.
	Options [][]dag.Option
	// Complete says that Options are all that was measured.
	Complete bool
	// Blocking is what the GPUs of each rank draw together while they wait.
	Blocking    []unit.Power
	GPUsPerRank int
	// Stage and Instruction are those of each curve.
	Stage       []int
	Instruction []string

	first  []int32  // by rank: its first op; one more at the end
	rankOf []int32  // by op; −1 for ops that occupy no GPU, such as transfers
	names  []string // by op, in a job that is no pipeline
}

// New returns the pipeline that a frontier's header describes. m are the
// measurements that it was computed from, for the options that are not on its
// curves, or nil. It fails as characterize.Problem and Remeasured do.
func New(h *frontierfile.Header, m characterize.Measurements) (*Pipeline, error) {
	problem, order, err := characterize.Problem(h)
	if err != nil {
		return nil, err
	}
	order.Schedule = h.Schedule // an order that was written out lost its name
	p := &Pipeline{
		Problem: problem, Order: order, Complete: m != nil,
		Blocking: slices.Clone(h.BlockingPower), GPUsPerRank: h.GPUsPerRank,
	}
	for i := range h.Curves {
		c := &h.Curves[i]
		options := append(slices.Clone(problem.Curves[i].Options), problem.Curves[i].Top)
		if m != nil {
			if options, err = characterize.Remeasured(h, i, m); err != nil {
				return nil, err
			}
			for k := range options {
				o := &options[k]
				o.Effective = dag.Effective(o.Energy, c.BlockingPower, o.Time)
			}
		}
		p.Options = append(p.Options, byClock(options))
		p.Stage, p.Instruction = append(p.Stage, c.Stage), append(p.Instruction, c.Instruction)
	}
	if h.Graph != nil {
		for _, op := range h.Graph.Ops {
			p.names = append(p.names, op.Name)
		}
	}
	p.index()
	return p, nil
}

// byClock sorts options by ascending clock and drops repeats.
func byClock(options []dag.Option) []dag.Option {
	slices.SortFunc(options, func(a, b dag.Option) int {
		return cmp.Or(a.Knobs.Compare(b.Knobs), cmp.Compare(a.Time, b.Time), cmp.Compare(a.Energy, b.Energy))
	})
	return slices.CompactFunc(options, func(a, b dag.Option) bool { return a.Knobs == b.Knobs })
}

// index fills in what follows from the order.
func (p *Pipeline) index() {
	p.first = append(p.first, 0)
	for rank, actions := range p.Order.Ranks {
		for range actions {
			p.rankOf = append(p.rankOf, int32(rank))
		}
		p.first = append(p.first, int32(len(p.rankOf)))
	}
	for len(p.rankOf) < p.Problem.Graph.Ops {
		p.rankOf = append(p.rankOf, -1)
	}
}

// Ranks returns the number of ranks.
func (p *Pipeline) Ranks() int { return len(p.Blocking) }

// GPUs returns the number of GPUs of the pipeline.
func (p *Pipeline) GPUs() int { return len(p.Blocking) * p.GPUsPerRank }

// Rank returns the range of the ops of a rank, in execution order.
func (p *Pipeline) Rank(rank int) (from, to int32) { return p.first[rank], p.first[rank+1] }

// RankOf returns the rank of an op, −1 where it occupies no GPU. O(1).
func (p *Pipeline) RankOf(op int32) int { return int(p.rankOf[op]) }

// At returns the option of a curve at a clock, or, where that is not known, the
// one at the next higher known clock; ok is false where there is none.
func (p *Pipeline) At(curve int32, clockMHz int32) (o dag.Option, ok bool) {
	options := p.Options[curve]
	i, _ := slices.BinarySearchFunc(options, clockMHz, func(o dag.Option, clock int32) int {
		return cmp.Compare(o.Knobs.ClockMHz, clock)
	})
	if i == len(options) {
		return dag.Option{}, false
	}
	return options[i], true
}

// Unclocked says that no clock changes a curve's ops, as with transfers, loading
// data and the optimizer.
func (p *Pipeline) Unclocked(curve int32) bool {
	return len(p.Options[curve]) == 1 && p.Options[curve][0].Knobs.ClockMHz == 0
}

// Schedule is a pipeline with one option for each op. It is immutable.
type Schedule struct {
	*Pipeline
	// Name says what it is, for people.
	Name string
	// Option is the option of each op.
	Option []dag.Option
}

// Cost returns what the schedule takes without noise, latency or stragglers.
// O(ops + arcs).
func (s *Schedule) Cost() dag.Cost {
	start := make([]unit.Time, s.Problem.Graph.Ops)
	return s.Problem.Evaluate(start, func(op int32) dag.Option { return s.Option[op] })
}

// Plan returns the schedule of a plan that was made for this pipeline. It fails
// where the plan is of another one.
func (p *Pipeline) Plan(from *plan.Plan) (*Schedule, error) {
	s := &Schedule{Pipeline: p, Name: from.Request.Goal.String(), Option: make([]dag.Option, 0, p.Problem.Graph.Ops)}
	if len(from.Ranks) != len(p.Order.Ranks) {
		return nil, fmt.Errorf("the plan has %d ranks, but the pipeline has %d", len(from.Ranks), len(p.Order.Ranks))
	}
	for rank, ops := range from.Ranks {
		if len(ops) != len(p.Order.Ranks[rank]) {
			return nil, fmt.Errorf("rank %d: the plan has %d ops, but the pipeline has %d", rank, len(ops), len(p.Order.Ranks[rank]))
		}
		for i := range ops {
			o, a := &ops[i], p.Order.Ranks[rank][i]
			if want := p.OpName(int32(len(s.Option))); o.Stage != a.Stage || o.Microbatch != a.Microbatch || o.Instruction != want {
				return nil, fmt.Errorf("rank %d, op %d: the plan has stage %d, microbatch %d, %s, but the pipeline runs stage %d, microbatch %d, %s there",
					rank, i, o.Stage, o.Microbatch, o.Instruction, a.Stage, a.Microbatch, want)
			}
			s.Option = append(s.Option, dag.Option{
				Knobs: o.Knobs, Time: o.Time, Energy: o.Energy,
				Effective: dag.Effective(o.Energy, p.Blocking[rank], o.Time),
			})
		}
	}
	for op := len(s.Option); op < p.Problem.Graph.Ops; op++ {
		c := p.Problem.Curve(int32(op))
		if len(c.Options) > 1 {
			return nil, fmt.Errorf("op %d occupies no GPU and has several options: a plan does not say which it takes", op)
		}
		s.Option = append(s.Option, c.Options[0])
	}
	return s, nil
}

// OpName returns an op's instruction, or its own name in a job that is no pipeline.
func (p *Pipeline) OpName(op int32) string {
	switch rank := p.RankOf(op); {
	case p.names != nil:
		return p.names[op]
	case rank < 0:
		return p.Instruction[p.Problem.CurveOf[op]]
	default:
		return p.Order.Ranks[rank][op-p.first[rank]].Kind.Instruction()
	}
}

// Choice returns the schedule of a choice of options on the problem's curves, as
// packages round and frontierfile give it.
func (p *Pipeline) Choice(name string, choice []int32) *Schedule {
	s := &Schedule{Pipeline: p, Name: name, Option: make([]dag.Option, len(choice))}
	for op, k := range choice {
		s.Option[op] = p.Problem.Curve(int32(op)).Options[k]
	}
	return s
}

// MaxClocks returns the schedule with every op at its top clock.
func (p *Pipeline) MaxClocks() *Schedule {
	s := &Schedule{Pipeline: p, Name: "maximum clocks", Option: make([]dag.Option, p.Problem.Graph.Ops)}
	for op := range s.Option {
		s.Option[op] = p.Problem.Curve(int32(op)).Top
	}
	return s
}

// Clocks returns the schedule with fixed clocks: one for all stages, or one for
// each. It fails where an op was not measured at its clock, naming the nearest.
func (p *Pipeline) Clocks(mhz []int32) (*Schedule, error) {
	if len(mhz) != 1 && len(mhz) != p.Order.Stages {
		return nil, fmt.Errorf("%d clocks for %d stages: give one for all, or one for each", len(mhz), p.Order.Stages)
	}
	s := &Schedule{Pipeline: p, Name: "fixed clocks", Option: make([]dag.Option, p.Problem.Graph.Ops)}
	for op, curve := range p.Problem.CurveOf {
		if p.Unclocked(curve) {
			s.Option[op] = p.Problem.Curves[curve].Top
			continue
		}
		clock := mhz[min(p.Stage[curve], len(mhz)-1)]
		o, ok := p.At(curve, clock)
		if !ok || o.Knobs.ClockMHz != clock {
			return nil, p.unknownClock(curve, clock)
		}
		s.Option[op] = o
	}
	return s, nil
}

func (p *Pipeline) unknownClock(curve, clock int32) error {
	nearest := p.Options[curve][0].Knobs.ClockMHz
	for _, o := range p.Options[curve] {
		if max(o.Knobs.ClockMHz-clock, clock-o.Knobs.ClockMHz) < max(nearest-clock, clock-nearest) {
			nearest = o.Knobs.ClockMHz
		}
	}
	why := "was not measured"
	if !p.Complete {
		why = "is not in the frontier, which keeps only clocks that are useful (the profile has all)"
	}
	return fmt.Errorf("%d MHz: stage %d, %s %s at that clock; the nearest is %d MHz",
		clock, p.Stage[curve], p.Instruction[curve], why, nearest)
}
