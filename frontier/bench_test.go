package frontier_test

import (
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

// different returns a problem of 1F1B whose stages all differ: those of the
// measured profile, over and over, each stretched by a factor of its own.
func different(t testing.TB, stages, microbatches int) *dag.Problem {
	rng := rand.New(rand.NewPCG(1, 2))
	options := readOptions(t, "gpt3-175b-a100-sxm.csv")
	stretched := make([]map[string][]dag.Option, stages)
	for stage := range stages {
		factor := 1 + rng.Int64N(100)
		stretched[stage] = map[string][]dag.Option{}
		for _, instruction := range []string{"forward", "backward"} {
			for _, o := range options[stage%8][instruction] {
				o.Time += o.Time * unit.Time(factor) / 1000
				o.Energy += o.Energy / 1000 * unit.Energy(factor)
				stretched[stage][instruction] = append(stretched[stage][instruction], o)
			}
		}
	}
	return build(t, microbatches, 83_640_000, stretched)
}

// BenchmarkCoarse walks the whole frontier with slopes rounded to a few watts.
func BenchmarkCoarse(b *testing.B) {
	p := different(b, 64, 256)
	for _, quantum := range []unit.Power{4 * watt, 8 * watt, 16 * watt, 32 * watt} {
		b.Run(quantum.String(), func(b *testing.B) {
			segments := 0
			for b.Loop() {
				segments = 0
				for range frontier.Solve(frontier.Coarsen(p, quantum)) {
					segments++
				}
			}
			b.ReportMetric(float64(segments), "segments")
		})
	}
}
