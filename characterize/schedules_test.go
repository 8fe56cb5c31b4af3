package characterize

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// invented gives each stage and instruction options of its own, two or, for those
// in one, one.
type invented struct {
	stages int
	one    []string
}

func (v invented) Stages() int { return v.stages }

func (v invented) Options(stage int, instruction string) ([]dag.Option, error) {
	h := fnv.New32a()
	fmt.Fprint(h, stage, instruction)
	n := int64(h.Sum32())
	slow := dag.Option{Knobs: dag.Knobs{ClockMHz: 1000}, Time: unit.Time(40+n%17) * unit.Millisecond, Energy: unit.Energy(12+n%5) * 1e12}
	fast := dag.Option{Knobs: dag.Knobs{ClockMHz: 1400}, Time: unit.Time(27+n%11) * unit.Millisecond, Energy: unit.Energy(17+n%7) * 1e12}
	if slices.Contains(v.one, instruction) {
		return []dag.Option{fast}, nil
	}
	return []dag.Option{slow, fast}, nil
}

// small is a small size of each schedule.
func small(t testing.TB, s pipeline.Schedule) *pipeline.Order {
	for _, z := range []pipeline.Size{{Ranks: 2, Microbatches: 2}, {Ranks: 2, Chunks: 2, Microbatches: 2}, {Ranks: 2, Chunks: 2, Microbatches: 4}} {
		if o, err := pipeline.Build(s.Name, z); err == nil {
			return o
		}
	}
	t.Fatalf("%s has no small size", s.Name)
	return nil
}

// terms returns a job that has everything a pipeline may have besides.
func terms(t testing.TB, schedule string, size pipeline.Size) Job {
	o, err := pipeline.Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	j := Job{
		Measurements: invented{stages: o.Stages}, GPUsPerRank: 1,
		Profile: frontierfile.Profile{SHA256: strings.Repeat("0", 64), TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"},
		Order:   o.WithFixed(pipeline.Fixed{Load: true, Optimizer: true, ReduceGrad: true}),
		Terms: frontierfile.Terms{
			Fixed:        []frontierfile.Fixed{{Instruction: "load", Time: 3 * unit.Millisecond}, {Instruction: "optimizer", Time: 7 * unit.Millisecond}, {Instruction: "reduce-gradient", Time: 11 * unit.Millisecond}},
			TransferTime: unit.Millisecond, Caps: []frontierfile.Cap{{Rank: 1, MHz: 1399}},
			OpFactors: []frontierfile.OpFactors{{Stage: 0, Microbatch: 0, Instruction: "forward", Factors: frontierfile.Factors{Time: frontierfile.One * 9 / 8, Energy: frontierfile.One / 2}}},
		},
	}
	j.BlockingPower = slices.Repeat([]unit.Power{60 * unit.Watt}, len(o.Ranks))
	j.BlockingPower[1] = 75 * unit.Watt
	for m := range o.Size.Microbatches {
		f := frontierfile.One + frontierfile.Ratio(m)*frontierfile.One/7
		j.Terms.MicrobatchFactors = append(j.Terms.MicrobatchFactors, frontierfile.Factors{Time: f, Energy: frontierfile.One})
	}
	return j
}

// TestEverySchedule compares the frontier of each schedule at a small size, plain
// and with everything that a job may have besides, with all schedules of options
// that there are, and with an independent solution of the relaxed problem.
func TestEverySchedule(t *testing.T) {
	for _, s := range pipeline.Schedules() {
		for _, with := range []string{"plain", "terms"} {
			t.Run(s.Name+"/"+with, func(t *testing.T) {
				o := small(t, s)
				j := Job{Order: o, GPUsPerRank: 1}
				j.BlockingPower = slices.Repeat([]unit.Power{60 * unit.Watt}, len(o.Ranks))
				j.BlockingPower[1] = 75 * unit.Watt
				if with == "terms" {
					j = terms(t, s.Name, o.Size)
				}
				v := invented{stages: o.Stages}
				var f *frontierfile.File
				var p *dag.Problem
				for _, one := range []string{"", "weight-gradient", "forward", "input-gradient"} {
					v.one = append(v.one, one)
					j.Measurements = v
					f = run(t, j, Options{})
					var err error
					if p, _, err = Problem(&f.Header); err != nil {
						t.Fatal(err)
					}
					if bits.Len(uint(count(p))) <= 17 {
						break
					}
				}
				compare(t, f, p)
			})
		}
	}
}

// count returns how many schedules of options there are, up to some number.
func count(p *dag.Problem) int {
	n := 1
	for op := range int32(p.Graph.Ops) {
		n = min(n*len(p.Curve(op).Options), 1<<40)
	}
	return n
}

// compare tries all schedules of a problem.
func compare(t *testing.T, f *frontierfile.File, p *dag.Problem) {
	n := count(p)
	if n > 1<<17 {
		t.Fatalf("%d schedules are too many to try", n)
	}
	start := make([]unit.Time, p.Graph.Ops)
	choice := make([]int, p.Graph.Ops)
	var costs []dag.Cost
	for i := range n {
		for op := range choice {
			k := len(p.Curve(int32(op)).Options)
			choice[op], i = i%k, i/k
		}
		costs = append(costs, p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Options[choice[op]] }))
	}
	slices.SortFunc(costs, func(a, b dag.Cost) int {
		if a.Time != b.Time {
			return int(a.Time - b.Time)
		}
		return a.Effective.Cmp(b.Effective)
	})
	if costs[0].Time != f.Header.TMin {
		t.Errorf("t_min is %v, want %v", f.Header.TMin, costs[0].Time)
	}
	slowest := slices.MinFunc(costs, func(a, b dag.Cost) int { return a.Effective.Cmp(b.Effective) })
	last := f.Points[len(f.Points)-1]
	if got, _ := slowest.Effective.Nanojoules(unit.Nearest); int64(last.Effective) != got {
		t.Errorf("least Σe' is %v, want %v", last.Effective, slowest.Effective.Joules())
	}
	certificates := make([]certificate, len(f.Points))
	i := 0
	for point, err := range f.Walk() {
		if err != nil {
			t.Fatal(err)
		}
		base, price := p.Bound(point.Flow)
		certificates[i] = certificate{base: base, price: price}
		// The best of all schedules that are as fast.
		best := unit.Energy128{}
		for k, c := range costs {
			if c.Time > point.Time {
				break
			}
			if k == 0 || c.Effective.Cmp(best) < 0 {
				best = c.Effective
			}
		}
		least, _ := best.Nanojoules(unit.Down)
		if int64(point.Effective) < least {
			t.Errorf("point %d: Σe' is %v, but no schedule has less than %v", i, point.Effective, best.Joules())
		}
		// An independent optimum of the relaxed problem is as good as the certificate.
		r := reference.Solve(p, point.RelaxedTime)
		otherBase, otherPrice := p.Bound(r.Flow)
		here, there := certificates[i].at(point.RelaxedTime), certificate{base: otherBase, price: otherPrice}.at(point.RelaxedTime)
		if d := here.Sub(there).Joules(); d > 1e-6 || d < -1e-6 {
			t.Errorf("point %d: relaxed optimum %v J, want %v J", i, here.Joules(), there.Joules())
		}
		i++
	}
	for _, c := range costs {
		for k := range certificates {
			if certificates[k].at(c.Time).Cmp(c.Effective) > 0 {
				t.Fatalf("certificate %d proves more than a schedule of %v needs", k, c.Time)
			}
		}
	}
}
