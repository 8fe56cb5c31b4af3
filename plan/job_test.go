package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// measurements holds options by stage and instruction.
type measurements struct {
	stages  int
	options map[string][]dag.Option
}

func (m measurements) Stages() int { return m.stages }

func (m measurements) Options(stage int, instruction string) ([]dag.Option, error) {
	if o, ok := m.options[fmt.Sprint(stage, instruction)]; ok {
		return o, nil
	}
	return nil, fmt.Errorf("no %s on stage %d", instruction, stage)
}

// drawFrontier returns the frontier of a small random job: up to 4 ranks and 5
// microbatches of some schedule, up to 6 clocks an op, in no order of time or
// energy, with blocking powers under and over what the ops draw.
func drawFrontier(t *rapid.T) *frontierfile.File {
	size := pipeline.Size{Ranks: rapid.IntRange(1, 4).Draw(t, "ranks"), Microbatches: rapid.IntRange(1, 5).Draw(t, "microbatches")}
	schedule := rapid.SampledFrom([]string{"1f1b", "gpipe", "zb-h1", "gpipe-forward"}).Draw(t, "schedule")
	order, err := pipeline.Build(schedule, size)
	if err != nil {
		t.Skip(err)
	}
	job := characterize.Job{Order: order, GPUsPerRank: 1, Profile: frontierfile.Profile{SHA256: fmt.Sprintf("%064x", 1), TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"}}
	most := rapid.SampledFrom([]int64{200, 2000}).Draw(t, "most blocking")
	for range order.Ranks {
		job.BlockingPower = append(job.BlockingPower, unit.Power(rapid.Int64Range(0, most).Draw(t, "blocking"))*unit.Watt)
	}
	m := measurements{order.Stages, map[string][]dag.Option{}}
	for _, a := range order.All() {
		key := fmt.Sprint(a.Stage, a.Kind.Instruction())
		if _, ok := m.options[key]; ok {
			continue
		}
		n := rapid.IntRange(1, 6).Draw(t, "clocks")
		for k := range n {
			m.options[key] = append(m.options[key], dag.Option{
				Knobs:  dag.Knobs{ClockMHz: int32(900 + 15*k)},
				Time:   unit.Time(rapid.Int64Range(1, 1000).Draw(t, "time")) * unit.Millisecond / 7,
				Energy: unit.Energy(rapid.Int64Range(1, 1000).Draw(t, "energy")) * unit.Joule / 13,
			})
		}
	}
	job.Measurements = m
	f, err := characterize.Run(t.Context(), job, characterize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// exampleFrontier returns the frontier of a synthetic model of 4 stages.
func exampleFrontier(t testing.TB) *frontierfile.File {
	t.Helper()
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 6})
	if err != nil {
		t.Fatal(err)
	}
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 4, StepMHz: 60})
	f, err := characterize.Run(t.Context(), characterize.Job{
		Measurements: p, Order: order, GPUsPerRank: 1, BlockingPower: slices.Repeat([]unit.Power{84 * unit.Watt}, 4),
		Profile: frontierfile.Profile{SHA256: p.SHA256, TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"},
	}, characterize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// quick returns a planner that rounds by the fast pass, whatever the effort.
func quick(t rapid.TB, f *frontierfile.File) *Planner {
	t.Helper()
	n := planner(t, f)
	n.round = func(p *dag.Problem, s *frontier.Solution, _ round.Effort) []int32 {
		return round.Round(p, s, round.Fast)
	}
	return n
}

func planner(t rapid.TB, f *frontierfile.File) *Planner {
	t.Helper()
	n, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
