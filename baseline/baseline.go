package baseline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Method is a way of planning.
type Method string

// The methods.
const (
	MaxClocks Method = "max clocks"
	ZeusAll   Method = "zeus-global"
	ZeusStage Method = "zeus-per-stage"
	EnvPipe   Method = "envpipe"
	Published Method = "perseus-published"
)

// Result is what a method plans.
type Result struct {
	Method Method
	// Setting says which of the method's schedules it is, as in "fastest, 1410
	// MHz".
	Setting  string
	Schedule *simulate.Schedule
	Cost     dag.Cost
	// Planned is the energy in joules that the method itself expects, where it
	// reckons with something else than the measurements, and PlannedTime the time;
	// 0 elsewhere.
	Planned     float64
	PlannedTime unit.Time
	// Note says what a reader has to know, as that the method does not apply.
	Note string
}

func result(m Method, setting string, s *simulate.Schedule) Result {
	s.Name = string(m) + ", " + setting
	return Result{Method: m, Setting: setting, Schedule: s, Cost: s.Cost()}
}

// All returns the results of all methods, in the order of the constants: for
// those that offer a choice, the fastest schedule and the one of least energy.
// tau is the published Perseus' unit of time, which is what costs most; see
// PublishedFrontier.
func All(p *simulate.Pipeline, tau unit.Time) []Result {
	results := []Result{result(MaxClocks, "all", p.MaxClocks())}
	for _, family := range []func(*simulate.Pipeline) []Result{Global, PerStage} {
		results = append(results, ends(family(p))...)
	}
	results = append(results, Envelope(p))
	return append(results, PublishedEnds(p, tau)...)
}

// ends returns the fastest and the least-energy one of a family, with settings
// that say so; one where they are the same.
func ends(family []Result) []Result {
	if len(family) == 0 {
		return nil
	}
	fastest := slices.MinFunc(family, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Cost.Time, b.Cost.Time), a.Cost.Energy.Cmp(b.Cost.Energy))
	})
	least := slices.MinFunc(family, func(a, b Result) int {
		return cmp.Or(a.Cost.Energy.Cmp(b.Cost.Energy), cmp.Compare(a.Cost.Time, b.Cost.Time))
	})
	if fastest.Setting == least.Setting {
		return []Result{fastest}
	}
	fastest.Setting, least.Setting = "fastest, "+fastest.Setting, "least energy, "+least.Setting
	return []Result{fastest, least}
}

// clocks returns all clocks at which ops were measured, highest first.
func clocks(p *simulate.Pipeline) []int32 {
	var all []int32
	for curve, options := range p.Options {
		if p.Unclocked(int32(curve)) {
			continue
		}
		for _, o := range options {
			all = append(all, o.Knobs.ClockMHz)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	return all
}

// Global returns Zeus with one clock for all GPUs: the schedule at each clock, the
// highest first (Zeus, NSDI 2023; ZeusGlobal in Perseus, SOSP 2024, section 6.4,
// where the knob is a power limit). Clocks at which some op was not measured are
// left out; with a frontier file alone, ops whose clock is not in it take the
// next higher one that is.
func Global(p *simulate.Pipeline) []Result {
	var family []Result
	for _, clock := range clocks(p) {
		if clock == 0 {
			continue // that of ops of a fixed time
		}
		s, ok := at(p, func(int32) int32 { return clock })
		if ok {
			family = append(family, result(ZeusAll, fmt.Sprintf("%d MHz", clock), s))
		}
	}
	return family
}

// at returns the schedule with each curve at a clock, but for ops that have none.
func at(p *simulate.Pipeline, clock func(curve int32) int32) (*simulate.Schedule, bool) {
	options := make([]dag.Option, len(p.Options))
	for curve := range options {
		if one := p.Options[curve]; len(one) == 1 && one[0].Knobs.ClockMHz == 0 {
			options[curve] = one[0]
			continue
		}
		if p.Unclocked(int32(curve)) {
			options[curve] = p.Options[curve][0]
			continue
		}
		want := clock(int32(curve))
		o, ok := p.At(int32(curve), want)
		if !ok || p.Complete && o.Knobs.ClockMHz != want {
			return nil, false
		}
		options[curve] = o
	}
	s := &simulate.Schedule{Pipeline: p, Option: make([]dag.Option, p.Problem.Graph.Ops)}
	for op, curve := range p.Problem.CurveOf {
		s.Option[op] = options[curve]
	}
	return s, true
}

// PerStage returns Zeus with a clock for each stage, balanced: for each clock of
// the stage whose forward is heaviest, highest first, every other stage gets the
// lowest clock at which its forward is no slower than the heaviest one
// (ZeusPerStage, Perseus, SOSP 2024, section 6.4). It is empty for pipelines
// without forwards of their own.
func PerStage(p *simulate.Pipeline) []Result {
	forward := map[int]int32{} // by stage: the curve of its forwards
	for curve, name := range p.Instruction {
		if p.Stage[curve] >= p.Order.Stages {
			return nil // a graph, which has none
		}
		if name == pipeline.Forward.Instruction() {
			if _, ok := forward[p.Stage[curve]]; !ok {
				forward[p.Stage[curve]] = int32(curve)
			}
		}
	}
	if len(forward) < p.Order.Stages {
		return nil
	}
	heaviest := 0
	for s := range p.Order.Stages {
		if p.Problem.Curves[forward[s]].Top.Time > p.Problem.Curves[forward[heaviest]].Top.Time {
			heaviest = s
		}
	}
	var family []Result
	for _, clock := range slices.Backward(p.Options[forward[heaviest]]) {
		ofStage := make([]int32, p.Order.Stages)
		for s := range ofStage {
			options := p.Options[forward[s]]
			ofStage[s] = options[len(options)-1].Knobs.ClockMHz
			for _, o := range options {
				if o.Time <= clock.Time {
					ofStage[s] = o.Knobs.ClockMHz
					break
				}
			}
		}
		ofStage[heaviest] = clock.Knobs.ClockMHz
		s, ok := at(p, func(curve int32) int32 { return ofStage[p.Stage[curve]] })
		if ok {
			family = append(family, result(ZeusStage, fmt.Sprintf("heaviest stage at %d MHz", clock.Knobs.ClockMHz), s))
		}
	}
	return family
}

// milliseconds returns a unit of time for people.
func milliseconds(t unit.Time) string { return strings.TrimSuffix((1000*t).String(), "s") + " ms" }

// makespans evaluates schedules over and over without allocating.
type makespans struct {
	p     *simulate.Pipeline
	start []unit.Time
}

func (m *makespans) of(option []dag.Option) unit.Time {
	return m.p.Problem.Graph.Starts(m.start, func(op int32) unit.Time { return option[op].Time })
}
