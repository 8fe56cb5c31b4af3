package frontier_test

import (
	"encoding/csv"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// readOptions returns the options of each stage of a profile of the reference
// data, by instruction.
func readOptions(t testing.TB, profile string) []map[string][]dag.Option {
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
	var options []map[string][]dag.Option
	for _, row := range rows[1:] {
		stage, err1 := strconv.Atoi(row[0])
		clock, err2 := strconv.Atoi(row[2])
		time, err3 := unit.ParseTime(row[3])
		energy, err4 := unit.ParseEnergy(row[4])
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		for len(options) <= stage {
			options = append(options, map[string][]dag.Option{})
		}
		o := dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}, Time: time, Energy: energy}
		options[stage][row[1]] = append(options[stage][row[1]], o)
	}
	return options
}

// measured returns a problem of 1F1B on a profile of the reference data.
func measured(t testing.TB, profile string, blocking unit.Power, microbatches int) *dag.Problem {
	t.Helper()
	return build(t, microbatches, blocking, readOptions(t, profile))
}

// build returns a problem of 1F1B with the given options of each stage.
func build(t testing.TB, microbatches int, blocking unit.Power, options []map[string][]dag.Option) *dag.Problem {
	t.Helper()
	stages := len(options)
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: stages, Chunks: 1, Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	g, err := order.Graph()
	if err != nil {
		t.Fatal(err)
	}
	var curves []dag.Curve
	for _, stage := range options {
		for _, instruction := range []string{"forward", "backward"} {
			c, err := dag.NewCurve(stage[instruction], blocking)
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
