package characterize

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// BenchmarkBreakpoint compares what a breakpoint of each schedule's frontier costs
// with one of 1F1B with as many ops on as many ranks, on the A100 profile: both are
// solved in turn.
// "ratio" is the quotient of the two.
func BenchmarkBreakpoint(b *testing.B) {
	m := measured(b, "gpt3-175b-a100-sxm.csv")
	for _, s := range pipeline.Schedules() {
		b.Run(s.Name, func(b *testing.B) {
			const ops = 1536
			o := ofOps(b, s, m.Stages(), ops)
			p := problemOf(b, m, o)
			ranks := len(o.Ranks)
			like, err := pipeline.Build("1f1b", pipeline.Size{Ranks: ranks, Microbatches: (o.Ops() + ranks) / (2 * ranks)})
			if err != nil {
				b.Fatal(err)
			}
			base := problemOf(b, m.firstStages(ranks), like)
			var spent, baseSpent time.Duration
			var points, basePoints int
			for b.Loop() {
				start := time.Now()
				for range frontier.Solve(p) {
					points++
				}
				middle := time.Now()
				for range frontier.Solve(base) {
					basePoints++
				}
				spent, baseSpent = spent+middle.Sub(start), baseSpent+time.Since(middle)
			}
			each := float64(spent.Nanoseconds()) / float64(points)
			baseEach := float64(baseSpent.Nanoseconds()) / float64(basePoints)
			b.ReportMetric(each, "ns/breakpoint")
			b.ReportMetric(each/baseEach, "ratio")
			b.ReportMetric(float64(points)/float64(b.N), "breakpoints")
			b.ReportMetric(float64(o.Ops()), "ops")
		})
	}
}

// ofOps returns a schedule's order of so many stages with about so many ops.
func ofOps(t testing.TB, s pipeline.Schedule, stages, ops int) *pipeline.Order {
	ranks := stages / s.Example.Chunks
	if s.Placement == pipeline.Bidirectional {
		ranks = stages
	}
	for microbatches := ops / (3 * stages); ; microbatches++ {
		o, err := pipeline.Build(s.Name, pipeline.Size{Ranks: ranks, Chunks: s.Example.Chunks, Microbatches: microbatches})
		if err == nil && o.Ops() >= ops {
			return o
		}
		if microbatches > ops {
			t.Fatal(err)
		}
	}
}

// firstStages returns the table of the first stages alone.
func (t table) firstStages(n int) table {
	first := table{}
	for s := range n {
		for _, instruction := range []string{"forward", "backward"} {
			k := strconv.Itoa(s) + "," + instruction
			first[k] = t[k]
		}
	}
	return first
}

func problemOf(t testing.TB, m table, o *pipeline.Order) *dag.Problem {
	rules, err := derive.Parse("split-backward,recompute,overlap")
	if err != nil {
		t.Fatal(err)
	}
	j := Job{Measurements: m, Order: o, GPUsPerRank: 1, BlockingPower: slices.Repeat([]unit.Power{83_640_000}, len(o.Ranks))}
	for _, r := range rules {
		if slices.Contains(o.Instructions(), r.Instruction) {
			j.Terms.Derived = append(j.Terms.Derived, r.String())
		}
	}
	p, _, err := j.problem()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
