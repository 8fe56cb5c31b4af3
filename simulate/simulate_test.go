package simulate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// frontierOf returns the frontier of a profile on 1f1b.
func frontierOf(t testing.TB, p *profile.Profile, microbatches int, blocking unit.Power) *frontierfile.File {
	t.Helper()
	o, err := pipeline.Build("1f1b", pipeline.Size{Ranks: p.Stages(), Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(context.Background(), characterize.NewJob(p, o, blocking), characterize.Options{Points: 12})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func example(t testing.TB, microbatches int) (*frontierfile.File, *Pipeline) {
	t.Helper()
	p := jobs.ExampleProfile()
	f := frontierOf(t, p, microbatches, 84*unit.Watt)
	pipe, err := New(&f.Header, p)
	if err != nil {
		t.Fatal(err)
	}
	return f, pipe
}

func planOf(t testing.TB, f *frontierfile.File, r plan.Request) *plan.Plan {
	t.Helper()
	n, err := plan.New(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func replay(t testing.TB, o Options, members ...Member) *Iteration {
	t.Helper()
	n, err := Run(members, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPlanEnergy replays plans of real profiles: time and energy are the plan's.
func TestPlanEnergy(t *testing.T) {
	for _, name := range []string{"gpt3-175b-a100-sxm.csv", "bloom-176b-a40.csv"} {
		r, err := os.Open(shareddata.Shared(t, "data", "profiles", name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.Read(r, name, profile.Options{})
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		f := frontierOf(t, p, 12, 70380*unit.Watt/1000)
		for _, request := range []plan.Request{{Goal: plan.Fastest}, {Goal: plan.LeastEnergy}, {Goal: plan.Straggler, Factor: 12e8}} {
			request.Effort = round.Fast
			made := planOf(t, f, request)
			pipe, err := New(&f.Header, p)
			if err != nil {
				t.Fatal(err)
			}
			s, err := pipe.Plan(made)
			if err != nil {
				t.Fatal(err)
			}
			n := replay(t, Options{Until: made.WaitTime}, Member{Schedule: s})
			// Effective energies are rounded to a picojoule, each.
			if got, _ := n.Energy().Nanojoules(unit.Nearest); got-int64(made.WaitEnergy) > 1 || int64(made.WaitEnergy)-got > 1 {
				t.Errorf("%s %v: energy %d nJ, want %d", name, request.Goal, got, made.WaitEnergy)
			}
			if n.Timelines[0].Time != made.Time || n.Time != made.WaitTime {
				t.Errorf("%s %v: times %v, %v, want %v, %v", name, request.Goal, n.Timelines[0].Time, n.Time, made.Time, made.WaitTime)
			}
			causes, err := n.Timelines[0].Causes(n.Time)
			if err != nil {
				t.Fatal(err)
			}
			if causes.Intrinsic.Sign() < 0 || causes.Extrinsic.Sign() < 0 {
				t.Errorf("%s %v: bloat %v J and %v J", name, request.Goal, causes.Intrinsic.Joules(), causes.Extrinsic.Joules())
			}
			if sum := causes.Needed.Add(causes.Intrinsic).Add(causes.Extrinsic); sum.Cmp(causes.Total) != 0 || causes.Total.Cmp(n.Energy()) != 0 {
				t.Errorf("%s %v: causes do not add up", name, request.Goal)
			}
			if got, _ := causes.Intrinsic.Nanojoules(unit.Nearest); request.Goal == plan.Fastest && abs(got-int64(made.Energy-made.Bound)) > 2 {
				t.Errorf("%s: intrinsic bloat %d nJ, want energy - bound = %d", name, got, made.Energy-made.Bound)
			}
		}
	}
}

func abs(v int64) int64 { return max(v, -v) }

// randomSchedule draws a small pipeline with random options on any schedule.
func randomSchedule(t *rapid.T) *Schedule {
	schedules := pipeline.Schedules()
	kind := schedules[rapid.IntRange(0, len(schedules)-1).Draw(t, "schedule")]
	size := kind.Example
	order, err := pipeline.Build(kind.Name, size)
	if err != nil {
		t.Fatal(err)
	}
	g, err := order.Graph()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	p := &Pipeline{Order: order, GPUsPerRank: 2}
	total := unit.Power(0)
	for range order.Ranks {
		p.Blocking = append(p.Blocking, unit.Power(rng.Int64N(100_000_000)))
		total += p.Blocking[len(p.Blocking)-1]
	}
	var curves []dag.Curve
	var ofOp []int32
	for rank, a := range order.All() {
		var options []dag.Option
		time, energy := 1+rng.Int64N(1_000_000), 1+rng.Int64N(1e9)
		for k := range int32(3) {
			options = append(options, dag.Option{Knobs: dag.Knobs{ClockMHz: 1000 + 100*k}, Time: unit.Time(time), Energy: unit.Energy(energy)})
			time -= rng.Int64N(time)
			energy += rng.Int64N(1e8)
		}
		c, err := dag.NewCurve(options, p.Blocking[rank])
		if err != nil {
			t.Fatal(err)
		}
		ofOp, curves = append(ofOp, int32(len(curves))), append(curves, c)
		p.Options, p.Stage, p.Instruction = append(p.Options, byClock(options)), append(p.Stage, int(a.Stage)), append(p.Instruction, a.Kind.Instruction())
	}
	if p.Problem, err = dag.NewProblem(g, curves, ofOp, total); err != nil {
		t.Fatal(err)
	}
	p.index()
	s := &Schedule{Pipeline: p}
	for op := range ofOp {
		o := p.Options[op][rng.IntN(len(p.Options[op]))]
		o.Effective = dag.Effective(o.Energy, p.Blocking[p.RankOf(int32(op))], o.Time)
		s.Option = append(s.Option, o)
	}
	return s
}

func randomOptions(t *rapid.T, pipelines int) Options {
	o := Options{
		P2P: unit.Time(rapid.Int64Range(0, 100_000).Draw(t, "p2p")), Noise: plan.Ratio(rapid.Int64Range(0, int64(MaxNoise)).Draw(t, "noise")),
		Load: unit.Time(rapid.Int64Range(0, 50_000).Draw(t, "load")), Optimizer: unit.Time(rapid.Int64Range(0, 500_000).Draw(t, "optimizer")),
	}
	last := unit.Time(0)
	for range rapid.IntRange(0, 4).Draw(t, "slowdowns") {
		last += unit.Time(rapid.Int64Range(0, 1_000_000).Draw(t, "from"))
		o.Slow = append(o.Slow, Slowdown{
			From: last, Pipeline: rapid.IntRange(All, pipelines-1).Draw(t, "pipeline"), Rank: All,
			Factor: plan.Ratio(rapid.Int64Range(1e9, 3e9).Draw(t, "factor")),
		})
	}
	return o
}

// TestConservation: busy, fixed and blocked fill each rank's iteration, whatever
// the conditions, and energies add up.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := randomSchedule(t), randomSchedule(t)
		o := randomOptions(t, 2)
		if rapid.Bool().Draw(t, "switch") {
			o.Switch, _ = ParseSwitchTable("1100=20us,1000:1200=90us,*=5us")
		}
		if rapid.Bool().Draw(t, "blocking") {
			o.Blocking, _ = ParsePowerTable("1000=30,1200=60")
		}
		sim, err := NewSimulator([]Member{{Schedule: a}, {Schedule: b, Copies: 3}}, o)
		if err != nil {
			t.Fatal(err)
		}
		begin := unit.Time(0)
		for range 3 {
			n := sim.Next()
			if n.Begin != begin {
				t.Fatalf("begins at %v, want %v", n.Begin, begin)
			}
			begin += n.Time
			for _, line := range n.Timelines {
				for r, u := range line.Ranks {
					filled := unit.Time(0)
					for span := range line.Spans(r, n.Time) {
						if span.Start != filled {
							t.Fatalf("rank %d: a span starts at %v, the one before ended at %v", r, span.Start, filled)
						}
						filled += span.Duration
					}
					if filled != n.Time {
						t.Fatalf("rank %d: spans fill %v of %v", r, filled, n.Time)
					}
					if u.Busy+u.Fixed+u.Blocked != n.Time || u.After > u.Blocked || u.After < 0 {
						t.Fatalf("rank %d: busy %v + fixed %v + blocked %v is not %v", r, u.Busy, u.Fixed, u.Blocked, n.Time)
					}
					from, to := line.Schedule.Rank(r)
					end := unit.Time(0)
					for op := from; op < to; op++ {
						if line.Start[op] < end {
							t.Fatalf("op %d starts at %v, before %v", op, line.Start[op], end)
						}
						end = line.Start[op] + line.Duration[op]
					}
				}
				g := line.Schedule.Problem.Graph
				for _, arc := range g.Arcs[:g.Dependencies] {
					need := line.Start[arc.From] + line.Duration[arc.From]
					if line.Schedule.RankOf(arc.From) != line.Schedule.RankOf(arc.To) {
						need += o.P2P
					}
					if line.Start[arc.To] < need {
						t.Fatalf("op %d starts at %v, before op %d allows it at %v", arc.To, line.Start[arc.To], arc.From, need)
					}
				}
			}
		}
	})
}

// TestMoreIsNeverFaster: on the same order, more latency, loading, optimizer time
// or slowdown never shortens an iteration, and a straggler never lowers what
// others wait.
func TestMoreIsNeverFaster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := []Member{{Schedule: randomSchedule(t)}, {Schedule: randomSchedule(t)}}
		o := randomOptions(t, 2)
		more := o
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			more.P2P += unit.Time(rapid.Int64Range(0, 100_000).Draw(t, "more"))
		case 1:
			more.Load += unit.Time(rapid.Int64Range(0, 100_000).Draw(t, "more"))
		case 2:
			more.Optimizer += unit.Time(rapid.Int64Range(0, 100_000).Draw(t, "more"))
		case 3:
			more.Until = unit.Time(rapid.Int64Range(0, 10_000_000).Draw(t, "more"))
		case 4:
			rank := rapid.IntRange(0, members[1].Schedule.Ranks()-1).Draw(t, "rank")
			o.Slow = nil
			more.Slow = []Slowdown{{Pipeline: 1, Rank: rank, Factor: plan.Ratio(rapid.Int64Range(1e9, 4e9).Draw(t, "factor"))}}
		}
		less, slow := must(t, members, o), must(t, members, more)
		if slow.Time < less.Time {
			t.Fatalf("faster with more: %v instead of %v", slow.Time, less.Time)
		}
		if more.Load != o.Load || more.Optimizer != o.Optimizer || more.P2P != o.P2P && len(o.Slow) > 0 {
			return // other work than before, or work that comes when its rank is slower
		}
		for d, line := range slow.Timelines {
			for r := range line.Ranks {
				slowed := len(more.Slow) > 0 && more.P2P == o.P2P && more.Until == o.Until && d == 1 && r == more.Slow[0].Rank
				if before := less.Timelines[d].Ranks[r].Blocked; line.Ranks[r].Blocked < before && !slowed {
					t.Fatalf("pipeline %d, rank %d: blocked %v, before %v", d, r, line.Ranks[r].Blocked, before)
				}
			}
		}
	})
}

func must(t *rapid.T, members []Member, o Options) *Iteration {
	n, err := Run(members, o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWithoutOptions: a replay is what dag.Problem.Evaluate says, times and all.
func TestWithoutOptions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomSchedule(t)
		n := must(t, []Member{{Schedule: s}}, Options{})
		start := make([]unit.Time, len(s.Option))
		want := s.Problem.Evaluate(start, func(op int32) dag.Option { return s.Option[op] })
		if n.Time != want.Time {
			t.Fatalf("time %v, want %v", n.Time, want.Time)
		}
		for op, at := range start {
			if n.Timelines[0].Start[op] != at {
				t.Fatalf("op %d starts at %v, want %v", op, n.Timelines[0].Start[op], at)
			}
		}
		// Σe' is rounded to a picojoule an op, which is at most half of it.
		off, _ := n.Energy().Sub(want.Energy).Picojoules(unit.Up)
		if off > unit.Energy(len(s.Option)) || -off > unit.Energy(len(s.Option)) {
			t.Fatalf("energy differs by %v", off)
		}
	})
}

// TestStraggler: what waits for a straggler costs its own energy and the waiting.
func TestStraggler(t *testing.T) {
	f, pipe := example(t, 8)
	s, err := pipe.Plan(planOf(t, f, plan.Request{Goal: plan.Fastest}))
	if err != nil {
		t.Fatal(err)
	}
	alone := replay(t, Options{}, Member{Schedule: s})
	own, line := alone.Energy(), *alone.Timelines[0]
	n := replay(t, Options{Slow: []Slowdown{{Pipeline: 1, Rank: All, Factor: 12e8}}}, Member{Schedule: s, Copies: 7}, Member{Schedule: s})
	late := n.Time - line.Time
	if want := scale(line.Time, 12e8); n.Time < want || n.Time > want+unit.Time(len(s.Option)) {
		t.Errorf("the straggler takes %v, want about %v", n.Time, want)
	}
	sum := n.Timelines[0].Sum()
	if want := own.Add(unit.Product(pipe.Problem.BlockingPower, late)); sum.Energy().Cmp(want) != 0 {
		t.Errorf("a pipeline that waits uses %v J, want %v", sum.Energy().Joules(), want.Joules())
	}
	if sum.After != late*unit.Time(pipe.Ranks()) {
		t.Errorf("waits %v for the straggler, want %v on each rank", sum.After, late)
	}
	other := n.Timelines[1].Sum()
	if got := times(sum.Energy(), 7).Add(other.Energy()); got.Cmp(n.Energy()) != 0 {
		t.Error("the job's energy is not the sum over its pipelines")
	}
}

// TestNoAllocation: an iteration allocates nothing, whatever is simulated.
func TestNoAllocation(t *testing.T) {
	_, pipe := example(t, 8)
	blocking, _ := ParsePowerTable("810=50,1410=84")
	latency, _ := ParseSwitchTable("15ms")
	sim, err := NewSimulator([]Member{{Schedule: pipe.MaxClocks()}}, Options{
		P2P: 1000, Noise: 1e7, Load: 1000, Optimizer: 1000, Blocking: blocking, Switch: latency,
		Slow: []Slowdown{{From: 1e9, Pipeline: All, Rank: 2, Factor: 15e8}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5, func() { sim.Next() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCalibration predicts published runs of real GPUs with an overhead fitted on
// one of them, within 0.5 % on average and 1.5 % at worst.
func TestCalibration(t *testing.T) {
	for _, name := range []string{"bloom-3b-a40-pp8-m128.jsonl", "gpt3-xl-a100-pp4-m128.jsonl"} {
		b, err := os.ReadFile(shareddata.Shared(t, "data", "runs", name))
		if err != nil {
			t.Fatal(err)
		}
		runs, err := ReadRuns(bytes.NewReader(b), name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Calibrate(runs)
		if err != nil {
			t.Fatal(err)
		}
		e := c.Errors()
		t.Logf("%s: overhead %v; mean %.4f %%, max %.4f %%, uncalibrated %.3f %%", name, c.Overhead, 100*e.Others, 100*e.Max, 100*e.Uncalibrated)
		if e.Others > 0.005 || e.Max > 0.015 || !e.Fits() || c.Plan != 0 {
			t.Errorf("%s: off by %.3f %% on average, %.3f %% at worst", name, 100*e.Others, 100*e.Max)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	noisy := Options{P2P: 1000, Noise: 1e7, Slow: []Slowdown{{Pipeline: All, Rank: 2, Factor: 12e8}}}
	noisy.Blocking, _ = ParsePowerTable("810=50,1410=84")
	noisy.Switch, _ = ParseSwitchTable("15ms")
	for name, o := range map[string]Options{"plain": {}, "everything": noisy} {
		b.Run(name, func(b *testing.B) {
			f, pipe := example(b, 96)
			s, err := pipe.Plan(planOf(b, f, plan.Request{Goal: plan.LeastEnergy}))
			if err != nil {
				b.Fatal(err)
			}
			sim, err := NewSimulator([]Member{{Schedule: s}}, o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				sim.Next()
			}
			b.ReportMetric(float64(len(s.Option))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}
