package baseline

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Tau is the published unit of time.
const Tau = unit.Millisecond

// publishedOp is what published Perseus knows of a kind of op.
type publishedOp struct {
	candidates []candidate // slowest first
	min, max   int64       // durations in units
	// slope[d−min−1] is what it costs to go from d to d−1 units, in nJ: not
	// negative, and rising as d falls, as the exponential's are.
	slope []int64
	fit   Exponential
}

// Step is a schedule of the published frontier.
type Step struct {
	// Units is the planned iteration time in units of τ, Cost the planned Σe' in
	// joules, by the fitted curves.
	Units int64
	Cost  float64

	solver *cutter
}

// Schedule returns the clocks that published Perseus takes for the step: for each
// op the slowest one that is not slower than planned, in whole units.
func (s *Step) Schedule() *simulate.Schedule { return s.solver.schedule(s.solver.duration) }

func (c *cutter) schedule(duration []int64) *simulate.Schedule {
	out := &simulate.Schedule{Pipeline: c.p, Option: make([]dag.Option, len(duration))}
	for op, d := range duration {
		o := &c.ops[c.p.Problem.CurveOf[op]]
		// Candidates are slowest first: the first one that fits, or the fastest.
		k, _ := slices.BinarySearchFunc(o.candidates, d, func(a candidate, d int64) int { return cmp.Compare(d, a.units) })
		out.Option[op] = o.candidates[min(k, len(o.candidates)-1)].option
	}
	return out
}

// PublishedFrontier walks the frontier as published Perseus does (Chung et al.,
// SOSP 2024, sections 4.2 and 4.3, after Phillips and Dessouky, 1977), slowest
// first, in steps of τ: exponentials are fitted to each op's options in whole
// units of τ; all ops start at their slowest; then, over and over, the critical
// ops' activity-on-arc graph gets as capacities what a unit of time more or less
// costs, a minimum cut is found, the ops cut forwards are sped up by a unit and
// those cut backwards slowed down by one, until a cut has no finite cost.
//
// The flow of one round is kept for the next, in which it is feasible; that
// saves time and changes no cut's cost. A step is valid until the next one. It
// fails where an op's curve cannot be fitted.
//
// O(steps · (ops + augmenting paths)).
func PublishedFrontier(p *simulate.Pipeline, tau unit.Time) (iter.Seq[*Step], error) {
	c := &cutter{p: p}
	for curve, options := range p.Options {
		o := publishedOp{candidates: candidates(options, blockingOf(p, int32(curve)), tau)}
		o.min, o.max = o.candidates[len(o.candidates)-1].units, o.candidates[0].units
		if o.min < o.max {
			var ok bool
			if o.fit, ok = fit(o.candidates); !ok {
				return nil, fmt.Errorf("stage %d, %s: no exponential fits its %d options", p.Stage[curve], p.Instruction[curve], len(o.candidates))
			}
		}
		for d := o.min + 1; d <= o.max; d++ {
			o.slope = append(o.slope, max(0, int64(math.Round(1e9*(o.fit.At(float64(d-1))-o.fit.At(float64(d)))))))
		}
		c.ops = append(c.ops, o)
	}
	c.prepare()
	return func(yield func(*Step) bool) {
		s := &Step{solver: c}
		for op := range c.duration {
			s.Cost += c.ops[p.Problem.CurveOf[op]].cost(c.duration[op])
		}
		for {
			c.critical()
			s.Units = c.makespan
			if !yield(s) {
				return
			}
			change, ok := c.cut()
			if !ok {
				return
			}
			s.Cost += change
		}
	}, nil
}

// fit returns the exponential, or the line through two candidates as one that is
// nearly straight.
func fit(c []candidate) (Exponential, bool) {
	if len(c) == 2 {
		c = append(slices.Clone(c), candidate{units: (c[0].units + c[1].units) / 2, cost: (c[0].cost + c[1].cost) / 2})
		slices.SortFunc(c, func(a, b candidate) int { return cmp.Compare(b.units, a.units) })
	}
	return fitExponential(c)
}

func (o *publishedOp) cost(d int64) float64 {
	if o.min == o.max {
		return o.candidates[0].cost
	}
	return o.fit.At(float64(d))
}

// blockingOf returns what the GPUs of a curve's rank draw while they wait: nothing
// for ops that occupy none.
func blockingOf(p *simulate.Pipeline, curve int32) unit.Power {
	op := slices.Index(p.Problem.CurveOf, curve)
	if rank := p.RankOf(int32(op)); rank >= 0 {
		return p.Blocking[rank]
	}
	return 0
}

// PublishedEnds returns the fastest schedule of published Perseus and the one that
// it expects to use the least energy. Where its curves cannot be fitted, it
// returns one result without a schedule, whose Note says so.
func PublishedEnds(p *simulate.Pipeline, tau unit.Time) []Result {
	steps, err := PublishedFrontier(p, tau)
	if err != nil {
		return []Result{{Method: Published, Setting: "τ = " + milliseconds(tau), Note: err.Error()}}
	}
	power := p.Problem.BlockingPower.Watts()
	var fastest, least published
	for s := range steps {
		energy := s.Cost + float64(power*(unit.Time(s.Units)*tau).Seconds())
		fastest.set(s, energy)
		if least.duration == nil || energy <= least.energy {
			least.set(s, energy)
		}
	}
	r := []Result{fastest.result("fastest", tau)}
	if !slices.Equal(fastest.duration, least.duration) {
		r = append(r, least.result("least energy", tau))
	}
	return r
}

// published is a step that is kept.
type published struct {
	solver   *cutter
	duration []int64
	energy   float64 // planned, in joules
	units    int64   // planned time
}

func (k *published) set(s *Step, energy float64) {
	k.solver, k.duration, k.energy, k.units = s.solver, append(k.duration[:0], s.solver.duration...), energy, s.Units
}

func (k *published) result(setting string, tau unit.Time) Result {
	r := result(Published, fmt.Sprintf("%s, τ = %s", setting, milliseconds(tau)), k.solver.schedule(k.duration))
	r.Planned, r.PlannedTime = k.energy, unit.Time(k.units)*tau
	return r
}
