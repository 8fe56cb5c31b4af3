package baseline

import (
	"bytes"
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

func measured(t testing.TB, name string) *profile.Profile {
	t.Helper()
	r, err := os.Open(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := profile.Read(r, name, profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func job(t testing.TB, p *profile.Profile, schedule string, microbatches int, blocking unit.Power) (*frontierfile.File, *simulate.Pipeline) {
	t.Helper()
	order, err := pipeline.Build(schedule, pipeline.Size{Ranks: p.Stages(), Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(context.Background(), characterize.NewJob(p, order, blocking), characterize.Options{Points: 3})
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := simulate.New(&f.Header, p)
	if err != nil {
		t.Fatal(err)
	}
	return f, pipe
}

func synthetic(seed uint64, stages int) *profile.Profile {
	return profile.Synthetic(profile.SyntheticConfig{Seed: seed, Stages: stages, MinMHz: 1110})
}

// TestPublishedRows: what the published algorithm expects is what was published,
// within 0.3 points; docs/compare.md has the rows with more microbatches.
func TestPublishedRows(t *testing.T) {
	for _, name := range []string{"gpt3-175b-a100-sxm", "bloom-176b-a40"} {
		t.Run(name, func(t *testing.T) { checkPublished(t, name) })
	}
}

func checkPublished(t *testing.T, name string) {
	p := measured(t, name+".csv")
	w, err := NewWorkload(name, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := FiguresOf(p.SHA256, ""); !ok {
		t.Errorf("%s: its hash is not known", name)
	}
	for _, m := range []int{12} {
		_, pipe := job(t, p, "1f1b", m, w.Blocking)
		r := PublishedEnds(pipe, w.Tau)[0]
		if r.Schedule == nil {
			t.Fatal(r.Note)
		}
		expected := 100 * (1 - r.Planned/pipe.MaxClocks().Cost().Energy.Joules())
		t.Logf("%s, %d microbatches: expected %.2f, published %.2f", name, m, expected, w.Published.Intrinsic[m])
		if math.Abs(expected-w.Published.Intrinsic[m]) > reproduced {
			t.Errorf("%s, %d microbatches: %.2f %%, published were %.2f %%", name, m, expected, w.Published.Intrinsic[m])
		}
	}
}

// TestNeverWorse: no baseline uses less energy than this Perseus at its time, nor
// less than the bound there.
func TestNeverWorse(t *testing.T) {
	check := func(name string, p *profile.Profile, schedule string, m int) {
		f, pipe := job(t, p, schedule, m, 80*unit.Watt)
		c, err := Compare(f, pipe, CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range c.Lines {
			if l.Schedule == nil {
				continue
			}
			if l.Worse || l.Ours.Time > l.Cost.Time || l.Ours.Energy.Cmp(l.Cost.Energy) > 0 {
				t.Errorf("%s, %s: %s, %s uses %v J in %v, this Perseus %v J in %v", name, schedule, l.Method, l.Setting,
					l.Cost.Energy.Joules(), l.Cost.Time, l.Ours.Energy.Joules(), l.Ours.Time)
			}
			if l.Ours.Gap() < 0 {
				t.Errorf("%s: below the bound", name)
			}
		}
	}
	check("a100", measured(t, "gpt3-175b-a100-sxm.csv"), "1f1b", 4)
	check("a40", measured(t, "bloom-176b-a40.csv"), "1f1b", 2)
	for seed := range uint64(4) {
		check("synthetic", synthetic(seed, 3), []string{"1f1b", "gpipe"}[seed%2], 4)
	}
}

// TestCut compares the iterative graph cut with brute force: at each iteration
// time it is the least cost of any whole durations.
func TestCut(t *testing.T) {
	for range 20 { // the cuts that slow an op down are rare
		rapid.Check(t, checkCut)
	}
}

func checkCut(t *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(t, "ops")
	// In this one (Wheatstone's bridge) the best cut may slow op 2 down.
	arcs := []dag.Arc{{From: 0, To: 2}, {From: 0, To: 3}, {From: 1, To: 4}, {From: 2, To: 4}}
	if bridge := rapid.Bool().Draw(t, "bridge"); bridge {
		n = 5
	} else {
		arcs = nil
	}
	random := arcs == nil
	for to := int32(1); to < int32(n); to++ {
		for from := range to {
			if random && rapid.Bool().Draw(t, "arc") {
				arcs = append(arcs, dag.Arc{From: from, To: to})
			}
		}
	}
	g, err := dag.NewGraph(n, arcs)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{p: &simulate.Pipeline{Problem: &dag.Problem{Graph: g}}}
	for op := range n {
		o := publishedOp{min: rapid.Int64Range(0, 3).Draw(t, "min"), candidates: []candidate{{}}}
		o.max = o.min + rapid.Int64Range(0, 3).Draw(t, "span")
		slope := int64(0)
		for range o.max - o.min {
			slope += rapid.Int64Range(0, 5).Draw(t, "rise")
			o.slope = append([]int64{slope}, o.slope...) // rises as the duration falls
		}
		c.ops = append(c.ops, o)
		c.p.Problem.CurveOf = append(c.p.Problem.CurveOf, int32(op))
	}
	c.prepare()
	cost := func(d []int64) (sum int64) {
		for op, v := range d {
			for k := v; k < c.ops[op].max; k++ {
				sum += c.ops[op].slope[k-c.ops[op].min]
			}
		}
		return sum
	}
	best := bruteForce(c, cost)
	last := int64(-1)
	for {
		c.critical()
		if got := cost(c.duration); got != best[c.makespan] {
			t.Fatalf("time %d: cost %d with %v, the least is %d", c.makespan, got, c.duration, best[c.makespan])
		}
		last = c.makespan
		if _, ok := c.cut(); !ok {
			break
		}
	}
	for time := range best {
		if time < last {
			t.Fatalf("stopped at %d, but %d is possible", last, time)
		}
	}
}

// bruteForce returns the least cost with a makespan of at most each possible time.
func bruteForce(c *cutter, cost func([]int64) int64) map[int64]int64 {
	g := c.p.Problem.Graph
	d := make([]int64, g.Ops)
	start := make([]unit.Time, g.Ops)
	least := map[int64]int64{}
	var try func(op int)
	try = func(op int) {
		if op == g.Ops {
			time := int64(g.Starts(start, func(op int32) unit.Time { return unit.Time(d[op]) }))
			if v, ok := least[time]; !ok || cost(d) < v {
				least[time] = cost(d)
			}
			return
		}
		for d[op] = c.ops[op].min; d[op] <= c.ops[op].max; d[op]++ {
			try(op + 1)
		}
	}
	try(0)
	for t := range least {
		for u, v := range least {
			if u < t && v < least[t] {
				least[t] = v
			}
		}
	}
	return least
}

// TestFit finds the exponential that made the points.
func TestFit(t *testing.T) {
	for _, want := range []Exponential{{A: 15184, B: -0.15, C: 10.9}, {A: 3829, B: -0.02, C: 13.4}, {A: 50, B: -0.5, C: -3}} {
		var c []candidate
		for u := int64(80); u >= 40; u -= 3 {
			c = append(c, candidate{units: u, cost: want.At(float64(u))})
		}
		got, ok := fitExponential(c)
		if !ok || got.Worst > 1e-6*math.Abs(want.At(40))+1e-9 {
			t.Errorf("%+v fitted as %+v", want, got)
		}
	}
	rising := []candidate{{units: 3, cost: 3}, {units: 2, cost: 2}, {units: 1, cost: 1}}
	if _, ok := fitExponential(rising); ok {
		t.Error("cost that rises with time was fitted")
	}
}

// TestCandidates follows the published program's filter: beaten in both time and
// energy, then one a unit, the one of the most energy.
func TestCandidates(t *testing.T) {
	o := func(us, mj int64) dag.Option {
		return dag.Option{Time: unit.Time(us) * unit.Microsecond, Energy: unit.Energy(mj) * unit.Joule / 1000}
	}
	got := candidates([]dag.Option{o(1100, 900), o(1900, 500), o(1950, 600), o(3000, 400), o(1200, 800)}, 10*unit.Watt, unit.Millisecond)
	if len(got) != 2 || got[0].units != 3 || got[1].units != 1 || got[1].option.Energy != 900*unit.Joule/1000 {
		t.Fatalf("%+v", got)
	}
	if want := 0.9 - 10*0.001; math.Abs(got[1].cost-want) > 1e-12 {
		t.Errorf("cost %v, want %v", got[1].cost, want)
	}
}

// TestEnvelope: the outer envelope is at top clocks, the rest costs no time where
// the last stage is the heaviest, and saves energy.
func TestEnvelope(t *testing.T) {
	for seed := range uint64(5) {
		_, p := job(t, synthetic(seed, 4), "1f1b", 6, 80*unit.Watt)
		r, top := Envelope(p), p.MaxClocks()
		op := 0
		for rank, a := range p.Order.All() {
			outer := rank == 3 || a.Kind == pipeline.Forward && a.Microbatch == 0 || a.Kind == pipeline.Backward && a.Microbatch == 5
			if outer && r.Schedule.Option[op].Knobs != top.Option[op].Knobs {
				t.Errorf("seed %d: %v of the envelope runs at %v", seed, a, r.Schedule.Option[op].Knobs)
			}
			op++
		}
		if r.Note == "" && r.Cost.Time > top.Cost().Time*1001/1000 {
			t.Errorf("seed %d: %v instead of %v", seed, r.Cost.Time, top.Cost().Time)
		}
		if r.Cost.Energy.Cmp(top.Cost().Energy) >= 0 {
			t.Errorf("seed %d: saves nothing", seed)
		}
	}
	_, p := job(t, profile.Synthetic(profile.SyntheticConfig{Stages: 4, SplitBackward: true, MinMHz: 1110}), "zb-h1", 8, 80*unit.Watt)
	if r := Envelope(p); r.Schedule != nil || r.Note == "" {
		t.Error("zb-h1 has an envelope")
	}
}

// TestZeus checks both families against their definitions.
func TestZeus(t *testing.T) {
	_, p := job(t, synthetic(1, 4), "1f1b", 6, 80*unit.Watt)
	for _, r := range Global(p) {
		for _, o := range r.Schedule.Option {
			if o.Knobs != r.Schedule.Option[0].Knobs {
				t.Fatalf("%s: %v and %v", r.Setting, o.Knobs, r.Schedule.Option[0].Knobs)
			}
		}
	}
	if n := len(Global(p)); n != len(p.Options[0]) {
		t.Errorf("%d clocks, want %d", n, len(p.Options[0]))
	}
	for _, r := range PerStage(p) {
		var slowest unit.Time
		op := 0
		for _, a := range p.Order.All() {
			if a.Kind == pipeline.Forward {
				slowest = max(slowest, r.Schedule.Option[op].Time)
			}
			op++
		}
		op = 0
		clock := map[int32]int32{}
		for _, a := range p.Order.All() {
			o := r.Schedule.Option[op]
			if before, ok := clock[a.Stage]; ok && before != o.Knobs.ClockMHz {
				t.Fatalf("%s: stage %d has two clocks", r.Setting, a.Stage)
			}
			clock[a.Stage] = o.Knobs.ClockMHz
			if a.Kind == pipeline.Forward {
				for _, slower := range p.Options[p.Problem.CurveOf[op]] {
					if slower.Knobs.ClockMHz < o.Knobs.ClockMHz && slower.Time < o.Time {
						t.Fatalf("%s: stage %d could be lower at no loss", r.Setting, a.Stage)
					}
				}
			}
			op++
		}
	}
}

// TestTexts: what people and programs read has what the issue names.
func TestTexts(t *testing.T) {
	p := synthetic(1, 4)
	f, pipe := job(t, p, "1f1b", 6, 80*unit.Watt)
	c, err := Compare(f, pipe, CompareOptions{Noise: 1e7, Margins: []plan.Ratio{1e7}, Iterations: 5, Pipelines: 3})
	if err != nil {
		t.Fatal(err)
	}
	var text, json bytes.Buffer
	if err := c.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteJSON(&json); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"max clocks", "zeus-global", "zeus-per-stage", "envpipe", "perseus-published", "under noise", "3 pipelines, 12 GPUs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	for _, want := range []string{`"method": "envpipe"`, `"saving_percent"`, `"perseus_energy_j"`, `"noise"`} {
		if !strings.Contains(json.String(), want) {
			t.Errorf("the JSON lacks %s", want)
		}
	}
	if _, err := NewWorkload("unknown", p, 0); err == nil {
		t.Error("a workload without blocking power")
	}
	w, err := NewWorkload("synthetic", p, 80*unit.Watt)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Emulate(context.Background(), w, 12e8, round.Fast)
	if err != nil {
		t.Fatal(err)
	}
	if r := l.Rows[0]; r.GPUs != 512 || r.Saving <= 0 || r.Straggler <= r.Saving {
		t.Errorf("%+v", r)
	}
}

func BenchmarkPublished(b *testing.B) {
	_, p := job(b, measured(b, "gpt3-175b-a100-sxm.csv"), "1f1b", 12, 83_640*unit.Watt/1000)
	for b.Loop() {
		PublishedEnds(p, Tau)
	}
}
