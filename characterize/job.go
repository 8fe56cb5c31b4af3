package characterize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
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
	// Terms are what the job has besides; those of a graph are made from Graph.
	Terms frontierfile.Terms
	// Graph is the job where it is no pipeline; then all fields but Profile stay
	// empty.
	Graph *dagfile.File
}

// NewJob returns the job of running the order on GPUs that were profiled, each
// of which draws the power blocking while it waits.
func NewJob(p *profile.Profile, order *pipeline.Order, blocking unit.Power) Job {
	j := Job{
		Measurements: p,
		Profile: frontierfile.Profile{
			SHA256:        p.SHA256,
			TimeUnit:      cmp.Or(p.Units.Time, "s"),
			EnergyUnit:    cmp.Or(p.Units.Energy, "J"),
			FrequencyUnit: cmp.Or(p.Units.Frequency, "MHz"),
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
	if j.Graph != nil {
		return j.graphProblem()
	}
	o := j.Order
	h := frontierfile.Header{
		Schedule: o.Schedule,
		Ranks:    len(o.Ranks), Chunks: chunks(o), Microbatches: o.Size.Microbatches, Group: o.Size.Group,
		Stages: o.Stages, GPUsPerRank: j.GPUsPerRank,
		BlockingPower: j.BlockingPower, Profile: j.Profile, Terms: j.Terms,
	}
	// Package verify derives these two by itself; the others it takes from here.
	if o.Schedule != "gpipe" && o.Schedule != "1f1b" || len(j.Terms.Fixed) > 0 {
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
	g, ofOp, err := keyed(o, &h)
	if err != nil {
		return nil, h, err
	}
	h.Ops, h.Arcs = g.Ops, len(g.Arcs)
	derived, err := rules(&h.Terms)
	if err != nil {
		return nil, h, err
	}

	index := map[frontierfile.Key]int32{}
	for _, k := range ofOp {
		index[k] = 0
	}
	sorted := slices.SortedFunc(maps.Keys(index), frontierfile.Key.Compare)
	curves := make([]dag.Curve, len(sorted))
	for i, k := range sorted {
		index[k] = int32(i)
		options, err := j.options(k, derived)
		if err != nil {
			return nil, h, err
		}
		if curves[i], err = dag.NewCurve(options, k.BlockingPower); err != nil {
			return nil, h, fmt.Errorf("%v: %w", k, err)
		}
		h.Curves = append(h.Curves, frontierfile.NewCurve(k, &curves[i]))
	}
	curveOf := make([]int32, len(ofOp))
	for op, k := range ofOp {
		curveOf[op] = index[k]
	}
	p, err := dag.NewProblem(g, curves, curveOf, sum(j.BlockingPower))
	return p, h, err
}

// keyed returns the graph of an order, with transfers if the header's terms have
// any, and the key of each op's options.
func keyed(o *pipeline.Order, h *frontierfile.Header) (*dag.Graph, []frontierfile.Key, error) {
	k, err := newKeys(&h.Terms, h.BlockingPower, o.Size.Microbatches)
	if err != nil {
		return nil, nil, err
	}
	if err := k.check(o); err != nil {
		return nil, nil, err
	}
	var g *dag.Graph
	if h.TransferTime > 0 {
		g, _, err = o.GraphWithTransfers()
	} else {
		g, err = o.Graph()
	}
	if err != nil {
		return nil, nil, err
	}
	ofOp := make([]frontierfile.Key, 0, g.Ops)
	for rank, a := range o.All() {
		ofOp = append(ofOp, k.of(rank, a))
	}
	for len(ofOp) < g.Ops {
		ofOp = append(ofOp, transfer())
	}
	return g, ofOp, nil
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
