package frontier_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// measured returns a problem of 1F1B on a profile of the reference data.
func measured(t testing.TB, profile string, blocking unit.Power, microbatches int) *dag.Problem {
	t.Helper()
	f, err := os.Open(shareddata.Shared(t, "data", "profiles", profile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	options := map[string][]dag.Option{}
	stages := 0
	for _, row := range rows[1:] {
		clock, _ := strconv.Atoi(row[2])
		time, err1 := unit.ParseTime(row[3])
		energy, err2 := unit.ParseEnergy(row[4])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		key := row[0] + row[1]
		options[key] = append(options[key], dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}, Time: time, Energy: energy})
		stage, _ := strconv.Atoi(row[0])
		stages = max(stages, stage+1)
	}
	return build(t, stages, microbatches, blocking, func(stage int, instruction string) []dag.Option {
		return options[strconv.Itoa(stage)+instruction]
	})
}

// build returns a problem of 1F1B with the given options.
func build(t testing.TB, stages, microbatches int, blocking unit.Power, options func(stage int, instruction string) []dag.Option) *dag.Problem {
	t.Helper()
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: stages, Chunks: 1, Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	g, err := order.Graph()
	if err != nil {
		t.Fatal(err)
	}
	var curves []dag.Curve
	for stage := range stages {
		for _, instruction := range []string{"forward", "backward"} {
			c, err := dag.NewCurve(options(stage, instruction), blocking)
			if err != nil {
				t.Fatal(err)
			}
			curves = append(curves, c)
		}
	}
	var curveOf []int32
	for _, rank := range order.Ranks {
		for _, a := range rank {
			k := 2 * a.Stage
			if a.Kind == pipeline.Backward {
				k++
			}
			curveOf = append(curveOf, k)
		}
	}
	p, err := dag.NewProblem(g, curves, curveOf, unit.Power(stages)*blocking)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
