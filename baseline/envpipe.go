package baseline

import (
	"fmt"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Envelope returns EnvPipe's schedule (Choi et al., "EnvPipe:
// Performance-preserving DNN Training Framework for Saving Energy", ATC 2023): the
// outer envelope, that is all of the last stage, the first forward and the last
// backward of each other stage, runs at the top clock, and everything else at the
// clock of its least energy. While the critical path leaves the envelope, the ops
// on it that have the lowest clock are sped up by one step ("balanced"). Of
// several critical paths the one is taken that stays on a rank as long as it can,
// from the end backwards, as their program finds it from receive times.
//
// It is defined for pipelines of forwards and backwards with one stage a rank;
// for others, and where ops of the path are at the top clock already while it
// still leaves the envelope, Note says so. O(steps · ops).
func Envelope(p *simulate.Pipeline) Result {
	for rank, actions := range p.Order.Ranks {
		for _, a := range actions {
			if !a.Kind.Fixed() && (a.Kind != pipeline.Forward && a.Kind != pipeline.Backward || int(a.Stage) != rank) {
				return Result{Method: EnvPipe, Setting: "envelope", Note: "not defined for this pipeline: it needs forwards and backwards, one stage a rank"}
			}
		}
	}
	e := &envelope{p: p, m: makespans{p, make([]unit.Time, p.Problem.Graph.Ops)}}
	e.prepare()
	steps, stuck := 0, false
	for ; steps < maxEnvelopeSteps; steps++ {
		time := e.m.of(e.option)
		if e.criticalPath(time) {
			break
		}
		if stuck = !e.speedUp(); stuck {
			break
		}
	}
	s := &simulate.Schedule{Pipeline: p, Option: e.option}
	r := result(EnvPipe, "envelope", s)
	switch {
	case stuck:
		r.Note = "the critical path leaves the outer envelope although all of it is at top clocks: the last stage is not the heaviest"
	case steps == maxEnvelopeSteps:
		r.Note = fmt.Sprintf("not done after %d steps", steps)
	}
	return r
}

const maxEnvelopeSteps = 200_000

type envelope struct {
	p      *simulate.Pipeline
	m      makespans
	outer  []bool // by op
	at     []int  // by op: index among its curve's options
	option []dag.Option
	path   []int32
}

func (e *envelope) prepare() {
	op, last := 0, int32(e.p.Order.Stages-1)
	for _, a := range e.p.Order.All() {
		outer := a.Stage == last || a.Kind == pipeline.Forward && a.Microbatch == 0 ||
			a.Kind == pipeline.Backward && int(a.Microbatch) == e.p.Order.Size.Microbatches-1
		options := e.p.Options[e.p.Problem.CurveOf[op]]
		k := len(options) - 1
		if !outer {
			k = 0
			for i, o := range options {
				if o.Energy < options[k].Energy {
					k = i
				}
			}
		}
		// Nothing can be done about fixed work on the path.
		e.outer, e.at, e.option = append(e.outer, outer || a.Kind.Fixed()), append(e.at, k), append(e.option, options[k])
		op++
	}
	for ; op < e.p.Problem.Graph.Ops; op++ { // transfers
		options := e.p.Options[e.p.Problem.CurveOf[op]]
		k := len(options) - 1
		e.outer, e.at, e.option = append(e.outer, true), append(e.at, k), append(e.option, options[k])
	}
}

// criticalPath finds a path that takes the whole time and says whether it is in
// the envelope.
func (e *envelope) criticalPath(time unit.Time) (inside bool) {
	g, start := e.p.Problem.Graph, e.m.start
	op := int32(-1)
	_, sinks := g.Sources()
	for a := sinks; a < len(g.Arcs); a++ {
		if last := g.Arcs[a].From; start[last]+e.option[last].Time == time {
			op = last
			break
		}
	}
	e.path, inside = e.path[:0], true
	for op >= 0 {
		e.path = append(e.path, op)
		inside = inside && e.outer[op]
		before := dag.Source
		for _, a := range g.In(op) {
			f := g.Arcs[a].From
			if f < 0 || start[f]+e.option[f].Time != start[op] {
				continue
			}
			if before < 0 || e.p.RankOf(f) == e.p.RankOf(op) {
				before = f
			}
		}
		op = before
	}
	return inside
}

// speedUp raises the ops of the path that have its lowest clock by a step. It
// returns false where none can be.
func (e *envelope) speedUp() bool {
	const none = int32(1<<31 - 1)
	lowest := none
	for _, op := range e.path {
		if e.at[op] < e.top(op) {
			lowest = min(lowest, e.option[op].Knobs.ClockMHz)
		}
	}
	for _, op := range e.path {
		if e.at[op] < e.top(op) && e.option[op].Knobs.ClockMHz == lowest {
			e.at[op]++
			e.option[op] = e.p.Options[e.p.Problem.CurveOf[op]][e.at[op]]
		}
	}
	return lowest != none
}

func (e *envelope) top(op int32) int { return len(e.p.Options[e.p.Problem.CurveOf[op]]) - 1 }
