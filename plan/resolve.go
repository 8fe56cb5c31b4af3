package plan

import (
	"fmt"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// candidate is a schedule that may become the plan.
type candidate struct {
	choice []int32
	cost   dag.Cost
}

// solved is the outcome of solving a request anew.
type solved struct {
	target
	candidate
	price unit.Power
}

// solve answers r from the job's problem alone. gap is how much a schedule of
// real options may cost over the relaxed optimum: a guess that saves work.
func solve(j *job, rounded rounding, r Request, gap frontierfile.Ratio) (*solved, error) {
	reserved, err := reserve(j.problem, j.blocking, r.Margin)
	if err != nil {
		return nil, err
	}
	s := &solver{
		p: j.problem, curve: newCurve(reserved), effort: r.Effort, round: rounded,
		start: make([]unit.Time, j.problem.Graph.Ops),
	}
	if r.Goal == AveragePower {
		return s.averagePower(r, gap)
	}
	return s.at(s.target(r))
}

// solver solves requests for one problem. curve is that of the problem whose
// times hold the margin; costs are those of p.
type solver struct {
	p      *dag.Problem
	curve  *curve
	effort round.Effort
	round  rounding
	start  []unit.Time
}

// target returns the point that a request comes down to. All but AveragePower
// can be said without a schedule at hand.
func (s *solver) target(r Request) target {
	c := s.curve
	asked := unit.MaxMakespan
	switch r.Goal {
	case Fastest:
		return target{time: c.tMin, limit: c.tMin, feasible: true}
	case LeastEnergy:
		t := c.leastEnergy()
		return target{time: t, limit: asked, feasible: true}
	case WithinTime:
		asked = r.Time
	default:
		asked = times(r.Factor, c.tMin)
	}
	switch {
	case asked < c.tMin:
		return target{time: c.tMin, limit: c.tMin, note: fmt.Sprintf(
			"no plan is as fast as %v: this is the fastest, %v", asked, c.tMin)}
	case r.Goal == Straggler && asked > c.tMax:
		return target{time: c.tMax, limit: asked, feasible: true, note: fmt.Sprintf(
			"the straggler takes %v, and beyond %v no op saves anything by being slower: this is that plan, and it waits", asked, c.tMax)}
	case r.Goal == Straggler:
		return target{time: asked, limit: asked, feasible: true}
	}
	if least := c.leastEnergy(); asked > least {
		return target{time: least, limit: asked, feasible: true, note: fmt.Sprintf(
			"an iteration of %v would use more energy: this is the plan of least energy", asked)}
	}
	return target{time: asked, limit: asked, feasible: true}
}

// at returns the plan for a target.
func (s *solver) at(t target) (*solved, error) {
	relaxed, err := frontier.At(s.curve.p, t.time)
	if err != nil {
		return nil, err
	}
	choice := s.round(s.curve.p, relaxed, s.effort)
	return &solved{target: t, candidate: s.candidate(choice), price: relaxed.Price}, nil
}

func (s *solver) candidate(choice []int32) candidate {
	return candidate{choice, s.p.EvaluateChoice(s.start, choice)}
}

// tries bounds how often averagePower aims anew.
const tries = 4

// averagePower returns the fastest plan it finds within the budget. Real options
// cost a little more than the relaxed optimum, so it aims below the budget: by
// gap at first, then by what the last try was above it.
func (s *solver) averagePower(r Request, gap frontierfile.Ratio) (*solved, error) {
	t, ok := s.curve.averagePower(r.Power)
	if !ok {
		plan, err := s.at(target{time: t, limit: unit.MaxMakespan})
		if err == nil {
			plan.note = fmt.Sprintf("no plan draws as little as %v: this one draws the least, %v", r.Power, averagePower(plan.cost))
		}
		return plan, err
	}
	below, _ := unit.Scale(r.Power, gap, unit.Up)
	aim := r.Power - below
	if aimed, ok := s.curve.averagePower(aim); ok {
		t = aimed
	}
	for range tries {
		plan, err := s.at(target{time: t, limit: unit.MaxMakespan, feasible: true})
		if err != nil || within(plan.cost, r.Power) {
			return plan, err
		}
		excess := averagePower(plan.cost) - r.Power
		aim -= excess + excess/4
		if t, ok = s.curve.averagePower(aim); !ok {
			break
		}
	}
	// At the breakpoints of the least average power all is as real as relaxed,
	// or nearly so.
	t, _ = s.curve.averagePower(0)
	plan, err := s.at(target{time: t, limit: unit.MaxMakespan, feasible: true})
	if err == nil && !within(plan.cost, r.Power) {
		plan.feasible = false
		plan.note = fmt.Sprintf("no plan found draws as little as %v: this one draws %v", r.Power, averagePower(plan.cost))
	}
	return plan, err
}

// reserve returns p with times that hold the margin: each option but an op's
// fastest takes longer by it, at the same effective energy. What keeps to a time
// with these, keeps to it while the ops that were slowed down take up to the
// margin longer than measured. The fastest option has none: where it is needed,
// nothing could be done about noise.
//
// Options keep their order and number: times rise strictly as before.
func reserve(p *dag.Problem, blocking []unit.Power, margin Ratio) (*dag.Problem, error) {
	if margin == 0 {
		return p, nil
	}
	curves := make([]dag.Curve, len(p.Curves))
	for i := range p.Curves {
		options := make([]dag.Option, len(p.Curves[i].Options))
		for k, o := range p.Curves[i].Options {
			if k < len(options)-1 {
				more, _ := unit.Scale(o.Time, margin, unit.Up) // at most o.Time
				o.Time += more
			}
			// So that NewCurve finds the effective energy that the option has.
			o.Energy = o.Effective - dag.Effective(0, blocking[i], o.Time)
			options[k] = o
		}
		var err error
		if curves[i], err = dag.NewCurve(options, blocking[i]); err != nil {
			return nil, fmt.Errorf("with a margin of %s: %w", margin.Percent(), err)
		}
	}
	r, err := dag.NewProblem(p.Graph, curves, p.CurveOf, p.BlockingPower)
	if err != nil {
		return nil, fmt.Errorf("with a margin of %s: %w", margin.Percent(), err)
	}
	return r, nil
}

// averagePower returns a schedule's energy over its time, rounded up.
func averagePower(c dag.Cost) unit.Power {
	if c.Time == 0 {
		return 0
	}
	v, _ := c.Energy.DivInt(int64(c.Time), unit.Up)
	return unit.Power(v)
}

// within says whether a schedule draws at most power on average.
func within(c dag.Cost, power unit.Power) bool {
	return c.Energy.Cmp(unit.Product(power, c.Time)) <= 0
}
