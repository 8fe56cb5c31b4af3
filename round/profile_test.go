package round_test

import (
	"encoding/csv"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

const stages = 8

// pipeline returns the problem of a measured profile on a 1F1B pipeline of 8
// stages, built without the packages that other code uses for it.
func pipeline(t testing.TB, name, blocking string, microbatches int) *dag.Problem {
	t.Helper()
	file, err := os.Open(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	power, err := unit.ParsePower(blocking)
	if err != nil {
		t.Fatal(err)
	}
	var measured [2 * stages][]dag.Option
	for _, row := range rows[1:] {
		stage, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		k := 2 * stage
		if row[1] == "backward" {
			k++
		}
		var o dag.Option
		clock, err := strconv.Atoi(row[2])
		if err != nil {
			t.Fatal(err)
		}
		o.Knobs.ClockMHz = int32(clock)
		if o.Time, err = unit.ParseTime(row[3]); err != nil {
			t.Fatal(err)
		}
		if o.Energy, err = unit.ParseEnergy(row[4]); err != nil {
			t.Fatal(err)
		}
		measured[k] = append(measured[k], o)
	}
	var curves []dag.Curve
	for _, m := range measured {
		c, err := dag.NewCurve(m, power)
		if err != nil {
			t.Fatal(err)
		}
		curves = append(curves, c)
	}
	var of []int32
	var arcs []dag.Arc
	op := make(map[[3]int]int32) // by stage, 0 or 1 for backward, microbatch
	for stage := range stages {
		warmup := min(stages-stage-1, microbatches)
		var order [][3]int
		for m := range microbatches {
			order = append(order, [3]int{stage, 0, m})
			if m >= warmup {
				order = append(order, [3]int{stage, 1, m - warmup})
			}
		}
		for m := microbatches - warmup; m < microbatches; m++ {
			order = append(order, [3]int{stage, 1, m})
		}
		for i, a := range order {
			op[a] = int32(len(of))
			of = append(of, int32(2*stage+a[1]))
			if i > 0 {
				arcs = append(arcs, dag.Arc{From: op[order[i-1]], To: op[a]})
			}
		}
	}
	for stage := range stages - 1 {
		for m := range microbatches {
			arcs = append(arcs,
				dag.Arc{From: op[[3]int{stage, 0, m}], To: op[[3]int{stage + 1, 0, m}]},
				dag.Arc{From: op[[3]int{stage + 1, 1, m}], To: op[[3]int{stage, 1, m}]})
		}
	}
	g, err := dag.NewGraph(len(of), arcs)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.NewProblem(g, curves, of, power*stages)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var profiles = []struct {
	name, file, blocking string
	fast                 float64   // gap allowed at t_min, in percent
	found                []float64 // and after a short search, at 1, 1.02 and 1.05 times t_min
}{
	{"a100", "gpt3-175b-a100-sxm.csv", "83.64", 0.3, []float64{0.115, 0.105, 0.060}},
	{"a40", "bloom-176b-a40.csv", "70.38", 0.7, []float64{0.102, 0.33, 0.100}},
}

// gap returns by how many percent the schedule's energy exceeds the bound at the
// time asked.
func gap(t testing.TB, p *dag.Problem, s *frontier.Solution, choice []int32) float64 {
	t.Helper()
	c := evaluate(p, choice)
	if c.Time > s.Time {
		t.Fatalf("a schedule of %v where %v was asked for", c.Time, s.Time)
	}
	base, price := p.Bound(s.Flow)
	waiting := unit.Product(p.BlockingPower, s.Time)
	bound := base.Sub(unit.Product(price, s.Time)).Add(waiting).Joules()
	return (c.Effective.Add(waiting).Joules()/bound - 1) * 100
}

func TestProfiles(t *testing.T) {
	for _, x := range profiles {
		t.Run(x.name, func(t *testing.T) {
			p := pipeline(t, x.file, x.blocking, 12)
			least := fastest(p)
			for i, percent := range []unit.Time{100, 102, 105} {
				s := solution(reference.Solve(p, least*percent/100))
				fast := gap(t, p, s, round.Round(p, s, round.Fast))
				if i == 0 && fast > x.fast {
					t.Errorf("%d%%: gap %.4f%% > %.2f%% with fast effort", percent, fast, x.fast)
				}
				choice := round.Round(p, s, round.Fast)
				round.Search(p, s, 1_000_000, choice) // a tenth of normal effort
				if found := gap(t, p, s, choice); found > x.found[i] || found > fast {
					t.Errorf("%d%%: gap %.4f%% > %.3f%% after a search, %.4f%% before", percent, found, x.found[i], fast)
				}
			}
		})
	}
}

// TestSameEverywhere rounds with one core and with more, and in one goroutine.
func TestSameEverywhere(t *testing.T) {
	p := pipeline(t, profiles[0].file, profiles[0].blocking, 4)
	s := solution(reference.Solve(p, fastest(p)*103/100))
	one := round.Round(p, s, round.Fast)
	many := slices.Clone(one)
	round.Search(p, s, 200_000, many)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	round.Search(p, s, 200_000, one)
	if !slices.Equal(one, many) {
		t.Errorf("schedules differ with the number of cores")
	}
	small := pipeline(t, profiles[0].file, profiles[0].blocking, 2)
	s = solution(reference.Solve(small, fastest(small)*103/100))
	if !slices.Equal(round.Alone(small, s, round.Normal), round.Round(small, s, round.Normal)) {
		t.Errorf("schedules differ with the number of goroutines")
	}
}

func BenchmarkFast(b *testing.B) {
	p := pipeline(b, profiles[0].file, profiles[0].blocking, 96)
	s := solution(reference.Solve(p, fastest(p)*103/100))
	r := round.NewRounder(p)
	var choice []int32
	for b.Loop() {
		choice = r.Round(s, round.Fast, choice)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.Graph.Ops), "ns/op-decision")
}

func BenchmarkNormal(b *testing.B) {
	for _, microbatches := range []int{12, 96} {
		b.Run(strconv.Itoa(microbatches), func(b *testing.B) {
			p := pipeline(b, profiles[0].file, profiles[0].blocking, microbatches)
			s := solution(reference.Solve(p, fastest(p)*103/100))
			for b.Loop() {
				round.Round(p, s, round.Normal)
			}
		})
	}
}
