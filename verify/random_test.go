package verify

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
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
		job := characterize.NewJob(p, profile.Units{}, o, 0)
		for r := range job.BlockingPower {
			job.BlockingPower[r] = unit.Watt * unit.Power(rapid.IntRange(0, 80).Draw(t, "blocking"))
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
