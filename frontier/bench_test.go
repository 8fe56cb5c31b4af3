package frontier_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// BenchmarkSolve walks the whole frontier, without a solution per segment.
func BenchmarkSolve(b *testing.B) {
	gpt3 := func(m int) func(testing.TB) *dag.Problem {
		return func(t testing.TB) *dag.Problem { return measured(t, "gpt3-175b-a100-sxm.csv", 83_640_000, m) }
	}
	cases := []struct {
		name string
		make func(testing.TB) *dag.Problem
	}{
		{"gpt3/8x12", gpt3(12)},
		{"gpt3/8x96", gpt3(96)},
		{"gpt3/8x512", gpt3(512)},
		{"gpt3/8x2048", gpt3(2048)},
		{"bloom/8x96", func(t testing.TB) *dag.Problem { return measured(t, "bloom-176b-a40.csv", 70_380_000, 96) }},
		{"different/16x64", func(t testing.TB) *dag.Problem { return different(t, 16, 64) }},
		{"different/32x128", func(t testing.TB) *dag.Problem { return different(t, 32, 128) }},
		{"different/64x256", func(t testing.TB) *dag.Problem { return different(t, 64, 256) }},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			p := c.make(b)
			b.ReportAllocs()
			segments := 0
			for b.Loop() {
				segments = 0
				for range frontier.Solve(p) {
					segments++
				}
			}
			b.ReportMetric(float64(segments), "segments")
		})
	}
}

// different returns a problem of 1F1B whose stages all differ, as they do where
// every GPU is profiled by itself.
func different(t testing.TB, stages, microbatches int) *dag.Problem {
	rng := rand.New(rand.NewPCG(1, uint64(stages)))
	const clocks = 40
	options := map[string][]dag.Option{}
	for stage := range stages {
		for i, instruction := range []string{"forward", "backward"} {
			scale := (0.05 + 0.045*float64(i)) * (0.9 + 0.2*rng.Float64())
			memory := 0.1 + 0.2*rng.Float64()
			power := 300 + 80*rng.Float64()
			for k := range clocks {
				clock := 1410 - 15*k
				x := float64(clock) / 1410
				time := scale * (memory + (1-memory)/x) * (1 + 0.002*rng.Float64())
				watts := 90 + power*math.Pow(x, 2.4)*(1+0.002*rng.Float64())
				key := fmt.Sprint(stage, instruction)
				options[key] = append(options[key], dag.Option{
					Knobs:  dag.Knobs{ClockMHz: int32(clock)},
					Time:   unit.Time(time * 1e9),
					Energy: unit.Energy(time * watts * 1e12),
				})
			}
		}
	}
	return build(t, stages, microbatches, 80_000_000, func(stage int, instruction string) []dag.Option {
		return options[fmt.Sprint(stage, instruction)]
	})
}
