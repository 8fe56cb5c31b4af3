package plan

import (
	"bytes"
	"os"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// BenchmarkPlan is perseus plan on the frontier of 8 stages and 96 microbatches
// of the measured A100 profile: reading the file, finding the plan and writing
// it as CSV. At effort fast the slowest plan is the one at the file's end.
func BenchmarkPlan(b *testing.B) {
	text, err := os.ReadFile(shareddata.Shared(b, "data", "profiles", "gpt3-175b-a100-sxm.csv"))
	if err != nil {
		b.Fatal(err)
	}
	measured, err := profile.Read(bytes.NewReader(text), "profile", profile.Options{})
	if err != nil {
		b.Fatal(err)
	}
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 8, Microbatches: 96})
	if err != nil {
		b.Fatal(err)
	}
	f, err := characterize.Run(b.Context(), characterize.NewJob(measured, order, 83_640_000*unit.Microwatt), characterize.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name    string
		request Request
	}{
		{"fast/t_min", Request{Goal: Fastest, Effort: round.Fast}},
		{"fast/t_max", Request{Goal: Straggler, Factor: 3 * One, Effort: round.Fast}},
		{"normal/t_min", Request{Goal: Fastest, Effort: round.Normal}},
		{"normal/1.1", Request{Goal: Slowdown, Factor: 11 * One / 10, Effort: round.Normal}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				f, err := frontierfile.Read(bytes.NewReader(file.Bytes()), "frontier")
				if err != nil {
					b.Fatal(err)
				}
				n, err := New(f)
				if err != nil {
					b.Fatal(err)
				}
				p, err := n.Make(bench.request)
				if err != nil {
					b.Fatal(err)
				}
				var out bytes.Buffer
				if err := p.WriteCSV(&out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
