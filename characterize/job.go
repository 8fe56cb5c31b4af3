package characterize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// Measurements gives the options of ops; *profile.Profile does.
type Measurements interface {
	// Stages returns how many stages the model has.
	Stages() int
	// Options returns the measured options of an instruction of a stage.
	Options(stage int, instruction string) ([]dag.Option, error)
}

// Job is what a frontier is computed from.
type Job struct {
	Measurements Measurements
	// Profile says where the measurements are from; it goes into the file.
	Profile frontierfile.Profile
	Order   *pipeline.Order
	// GPUsPerRank is how many GPUs run each op; the measurements are those of
	// all of them together.
	GPUsPerRank int
	// BlockingPower is what the GPUs of each rank draw together while they wait.
	BlockingPower []unit.Power
}

// NewJob returns the job of running the order on GPUs that were profiled, each
// of which draws the power blocking while it waits. units are those with which
// the profile was read.
func NewJob(p *profile.Profile, units profile.Units, order *pipeline.Order, blocking unit.Power) Job {
	j := Job{
		Measurements: p,
		Profile: frontierfile.Profile{
			SHA256:        p.SHA256,
			TimeUnit:      cmp.Or(units.Time, "s"),
			EnergyUnit:    cmp.Or(units.Energy, "J"),
			FrequencyUnit: cmp.Or(units.Frequency, "MHz"),
			SkippedRows:   p.Report.Skipped,
		},
		Order:       order,
		GPUsPerRank: p.GPUsPerStage,
	}
	ofRank := unit.Power(-1) // refused later
	if blocking >= 0 && blocking <= unit.MaxPower/unit.Power(p.GPUsPerStage) {
		ofRank = blocking * unit.Power(p.GPUsPerStage)
	}
	j.BlockingPower = slices.Repeat([]unit.Power{ofRank}, len(order.Ranks))
	return j
}

// problem returns the job's problem and the header that describes it.
func (j *Job) problem() (*dag.Problem, frontierfile.Header, error) {
	o := j.Order
	h := frontierfile.Header{
		Schedule: o.Schedule,
		Ranks:    len(o.Ranks), Chunks: chunks(o), Microbatches: o.Size.Microbatches,
		Stages: o.Stages, GPUsPerRank: j.GPUsPerRank,
		BlockingPower: j.BlockingPower, Profile: j.Profile,
	}
	// Package verify derives these two by itself; the others it takes from here.
	if o.Schedule != "gpipe" && o.Schedule != "1f1b" {
		h.Order = o.ToActions()
	}
	if len(j.BlockingPower) != len(o.Ranks) {
		return nil, h, fmt.Errorf("%d blocking powers for %d ranks", len(j.BlockingPower), len(o.Ranks))
	}
	if j.GPUsPerRank < 1 {
		return nil, h, fmt.Errorf("%d GPUs per rank; at least one is needed", j.GPUsPerRank)
	}
	if n := j.Measurements.Stages(); n != o.Stages {
		return nil, h, fmt.Errorf("the profile has %d stages and the schedule %d: ranks are stages / chunks", n, o.Stages)
	}
	g, err := o.Graph()
	if err != nil {
		return nil, h, err
	}
	h.Ops, h.Arcs = g.Ops, len(g.Arcs)

	keys := map[key]int32{}
	for rank, a := range o.All() {
		keys[keyOf(a, j.BlockingPower[rank])] = 0
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.instruction, b.instruction), cmp.Compare(a.blocking, b.blocking))
	})
	curves := make([]dag.Curve, len(sorted))
	for i, k := range sorted {
		keys[k] = int32(i)
		measured, err := j.Measurements.Options(int(k.stage), k.instruction)
		if err != nil {
			return nil, h, err
		}
		if curves[i], err = dag.NewCurve(measured, k.blocking); err != nil {
			return nil, h, fmt.Errorf("%v: %w", k, err)
		}
		h.Curves = append(h.Curves, frontierfile.Curve{
			Stage: int(k.stage), Instruction: k.instruction, BlockingPower: k.blocking,
			Options: curves[i].Options, Top: curves[i].Top,
		})
	}
	ofOp := make([]int32, 0, g.Ops)
	for rank, a := range o.All() {
		ofOp = append(ofOp, keys[keyOf(a, j.BlockingPower[rank])])
	}
	p, err := dag.NewProblem(g, curves, ofOp, sum(j.BlockingPower))
	return p, h, err
}

// chunks returns the most stages that a rank of o has.
func chunks(o *pipeline.Order) (most int) {
	for _, actions := range o.Ranks {
		stages := map[int32]bool{}
		for _, a := range actions {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				stages[p.Stage] = true
			}
		}
		most = max(most, len(stages))
	}
	return most
}
