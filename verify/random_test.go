package verify

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

// TestRandom has the frontiers of random jobs verified: few and equal times and
// energies, so that many things tie, one option only, negative effective energy,
// blocking powers that differ by rank, all schedules.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schedules := pipeline.Schedules()
		s := schedules[rapid.IntRange(0, len(schedules)-1).Draw(t, "schedule")]
		size := pipeline.Size{
			Ranks: rapid.IntRange(1, 4).Draw(t, "ranks"), Chunks: rapid.IntRange(0, 2).Draw(t, "chunks"),
			Microbatches: rapid.IntRange(1, 9).Draw(t, "microbatches"),
		}
		o, err := pipeline.Build(s.Name, size)
		if err != nil {
			t.Skip(err)
		}
		var text bytes.Buffer
		text.WriteString("stage,instruction,frequency,time,energy\n")
		step := rapid.SampledFrom([]int64{1, 1000, 5_000_000}).Draw(t, "step")
		instructions := map[string]bool{}
		for _, a := range o.All() {
			instructions[a.Kind.Instruction()] = true
		}
		for stage := range o.Stages {
			for instruction := range instructions {
				for i := range rapid.IntRange(1, 6).Draw(t, "options") {
					time := 10_000_000 + step*rapid.Int64Range(0, 6).Draw(t, "time")
					power := rapid.Int64Range(50, 60).Draw(t, "power")
					fmt.Fprintf(&text, "%d,%s,%d,%se-9,%se-12\n", stage, instruction, 1000+100*i, fmt.Sprint(time), fmt.Sprint(time*power*1000))
				}
			}
		}
		p, err := profile.Read(bytes.NewReader(text.Bytes()), "P.csv", profile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		job := characterize.NewJob(p, o, 0)
		for r := range job.BlockingPower {
			job.BlockingPower[r] = unit.Watt * unit.Power(rapid.IntRange(0, 80).Draw(t, "blocking"))
		}
		if rapid.Bool().Draw(t, "terms") {
			randomTerms(t, &job)
		}
		var opt characterize.Options
		if rapid.Bool().Draw(t, "chosen") {
			opt.Points = rapid.IntRange(3, 9).Draw(t, "points")
		}
		f, err := characterize.Run(context.Background(), job, opt)
		if err != nil {
			t.Fatal(err)
		}
		var written bytes.Buffer
		if _, err := f.WriteTo(&written); err != nil {
			t.Fatal(err)
		}
		copied := written.String()
		if _, err := Read(&written, "F.json", text.Bytes()); err != nil {
			t.Fatalf("%v\n%s\n%s", err, text.String(), copied)
		}
		if opt.Points != 0 && len(f.Points) > opt.Points {
			t.Fatalf("%d points, want at most %d", len(f.Points), opt.Points)
		}
		if strings.Contains(copied, "NaN") {
			t.Fatal("NaN")
		}
	})
}

// randomTerms gives a job caps, factors, transfers and ops of a fixed time.
func randomTerms(t *rapid.T, job *characterize.Job) {
	o := job.Order
	terms := &job.Terms
	factor := rapid.SampledFrom([]frontierfile.Ratio{frontierfile.One, frontierfile.One / 3, frontierfile.One * 7 / 5, 2*frontierfile.One + 1})
	factors := func() frontierfile.Factors {
		return frontierfile.Factors{Time: factor.Draw(t, "time factor"), Energy: factor.Draw(t, "energy factor")}
	}
	for r := range o.Ranks {
		if rapid.IntRange(0, 2).Draw(t, "capped") == 0 {
			terms.Caps = append(terms.Caps, frontierfile.Cap{Rank: r, MHz: int32(rapid.IntRange(1000, 1700).Draw(t, "cap"))})
		}
	}
	if rapid.Bool().Draw(t, "unequal") {
		for range o.Size.Microbatches {
			terms.MicrobatchFactors = append(terms.MicrobatchFactors, factors())
		}
	}
	for _, a := range o.All() {
		if rapid.IntRange(0, 19).Draw(t, "own") == 0 {
			terms.OpFactors = append(terms.OpFactors, frontierfile.OpFactors{
				Stage: int(a.Stage), Microbatch: int(a.Microbatch), Instruction: a.Kind.Instruction(), Factors: factors(),
			})
		}
	}
	terms.TransferTime = unit.Time(rapid.SampledFrom([]int64{0, 1, 300_000}).Draw(t, "transfer"))
	add := pipeline.Fixed{Load: rapid.Bool().Draw(t, "load"), ReduceGrad: rapid.Bool().Draw(t, "reduce"), Optimizer: rapid.Bool().Draw(t, "optimizer")}
	for _, f := range []struct {
		wanted bool
		kind   pipeline.Kind
	}{{add.Load, pipeline.Load}, {add.Optimizer, pipeline.Optimizer}, {add.ReduceGrad, pipeline.ReduceGrad}} {
		if f.wanted {
			terms.Fixed = append(terms.Fixed, frontierfile.Fixed{Instruction: f.kind.Instruction(), Time: unit.Time(rapid.Int64Range(1, 1e8).Draw(t, "fixed"))})
		}
	}
	job.Order = o.WithFixed(add)
}
