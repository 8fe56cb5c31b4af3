package characterize

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func written(t testing.TB, f *frontierfile.File) []byte {
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestMeasured compares with figures that an LP solver gave for the measured
// profiles, 1F1B, blocking powers as published; energies to the last digit given.
func TestMeasured(t *testing.T) {
	for _, tt := range []struct {
		profile         string
		blocking        unit.Power
		microbatches    int
		tMin, tMax      float64
		maxClock, bound float64 // J, at t_min
	}{
		{"gpt3-175b-a100-sxm.csv", 83_640_000, 12, 2.836511, 4.244164, 7338.997, 6160.4},
		{"gpt3-175b-a100-sxm.csv", 83_640_000, 96, 15.679429, 23.462091, 54019.670, 0.8618 * 54019.670},
		{"bloom-176b-a40.csv", 70_380_000, 96, 38.971661, 0, 0, 0},
	} {
		f := run(t, job(t, measured(t, tt.profile), 8, tt.microbatches, tt.blocking), Options{})
		h := &f.Header
		near := func(what string, got, want, within float64) {
			t.Helper()
			if want != 0 && math.Abs(got-want) > within {
				t.Errorf("%s, %d microbatches: %s is %v, want %v", tt.profile, tt.microbatches, what, got, want)
			}
		}
		near("t_min", h.TMin.Seconds(), tt.tMin, 1e-6)
		near("t_max", h.TMax.Seconds(), tt.tMax, 1e-6)
		near("energy at the top clock", h.MaxClockEnergy.Joules(), tt.maxClock, 1e-3)
		near("bound at t_min", f.Points[0].Bound.Joules(), tt.bound, 5e-5*tt.bound)
		if tt.microbatches == 12 {
			for seconds, want := range map[float64]float64{2.9: 5922.051, 3.1: 5628.303, 4.244164: 6050.534} {
				near("bound", relaxedEnergy(f, seconds), want, 1e-3)
			}
		}
		last := f.Points[len(f.Points)-1]
		if last.Gap != 0 || last.Price != 0 || last.Time != h.TMax {
			t.Errorf("last point %+v", last)
		}
		if n := len(written(t, f)); n > 5_000_000 {
			t.Errorf("%d bytes, want at most 5 MB", n)
		}
	}
}

// relaxedEnergy returns the total energy at a time between breakpoints, by the
// points' own times, energies of which are proven by their bounds.
func relaxedEnergy(f *frontierfile.File, seconds float64) float64 {
	blocking := 0.0
	for _, p := range f.Header.BlockingPower {
		blocking += p.Watts()
	}
	least := 0.0
	effective := f.Points[len(f.Points)-1].Effective.Joules() // exact at t_max
	for i := len(f.Points) - 2; i >= 0; i-- {
		slow := f.Points[i+1].RelaxedTime.Seconds()
		p := f.Points[i]
		least = effective + p.Price.Watts()*(slow-max(seconds, p.RelaxedTime.Seconds()))
		if p.RelaxedTime.Seconds() <= seconds {
			break
		}
		effective = least
	}
	if seconds > f.Header.TMax.Seconds() {
		least = f.Points[len(f.Points)-1].Effective.Joules()
	}
	return least + blocking*seconds
}

// TestSame has the same bytes come out whatever the number of cores.
func TestSame(t *testing.T) {
	for _, opt := range []Options{{}, {Points: 30}} {
		j := a100(t, 8)
		want := written(t, run(t, j, opt))
		for _, cores := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(cores)
			got := written(t, run(t, j, opt))
			runtime.GOMAXPROCS(before)
			if !bytes.Equal(got, want) {
				t.Errorf("%d cores give another file", cores)
			}
		}
	}
}

// TestStop ends the context at some points of the walk, and before it.
func TestStop(t *testing.T) {
	for _, opt := range []Options{{}, {Epsilon: 1}} {
		for _, after := range []int{0, 1, 5, 40} {
			ctx, cancel := context.WithCancel(context.Background())
			calls := 0
			o := opt
			o.Progress = func(p Progress) {
				if calls++; calls > after+1 {
					t.Errorf("call %d after the end at %d", calls, after)
				}
				if calls == after {
					cancel()
				}
				if p.At < p.Fast || p.At >= p.Slow || p.Points < 1 || opt.Epsilon == 0 && p.Points != calls+1 {
					t.Errorf("call %d: %+v", calls, p)
				}
			}
			if after == 0 {
				cancel()
			}
			f, err := Run(ctx, a100(t, 8), o)
			if f != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("ended after %d: %v", after, err)
			}
			cancel()
		}
	}
}

func TestProblem(t *testing.T) {
	for _, s := range pipeline.Schedules() {
		j := a100(t, 1)
		o, err := pipeline.Build(s.Name, s.Example)
		if err != nil {
			t.Fatal(err)
		}
		j.Order = o
		j.Measurements = same{a100(t, 1).Measurements, o.Stages}
		j.BlockingPower = nil
		for r := range o.Ranks {
			j.BlockingPower = append(j.BlockingPower, unit.Power(80+r%2)*unit.Watt)
		}
		f := run(t, j, Options{})
		p, order, err := Problem(&f.Header)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		want, h, err := j.problem()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s: another problem", s.Name)
		}
		if !reflect.DeepEqual(order.Ranks, o.Ranks) || h.Schedule != s.Name {
			t.Errorf("%s: another order", s.Name)
		}
	}
}

// same gives every stage and instruction the options of stage 0's forward.
type same struct {
	Measurements
	stages int
}

func (s same) Stages() int { return s.stages }

func (s same) Options(int, string) ([]dag.Option, error) {
	return s.Measurements.Options(0, "forward")
}

func TestProblemErrors(t *testing.T) {
	good := run(t, a100(t, 2), Options{}).Header
	for _, tt := range []struct {
		name, want string
		change     func(h *frontierfile.Header)
	}{
		{"schedule", "unknown schedule", func(h *frontierfile.Header) { h.Schedule = "2f2b" }},
		{"ranks", "blocking_power_w: 8 values for 4 ranks", func(h *frontierfile.Header) { h.Ranks = 4 }},
		{"stages", "stages: the header has 7, but the schedule makes it 8", func(h *frontierfile.Header) { h.Stages = 7 }},
		{"ops", "ops: the header has 33, but the schedule makes it 32", func(h *frontierfile.Header) { h.Ops++ }},
		{"few ops", "ops: 3 are not enough for 8 stages and 2 microbatches", func(h *frontierfile.Header) { h.Ops = 3 }},
		{"arcs", "arcs: the header has", func(h *frontierfile.Header) { h.Arcs++ }},
		{"options", "options: those of stage 7, forward, on GPUs that wait at 83.64W are missing", func(h *frontierfile.Header) { h.Curves = h.Curves[:15] }},
		{"blocking power", "are missing", func(h *frontierfile.Header) { h.BlockingPower = append([]unit.Power{1}, h.BlockingPower[1:]...) }},
		{"front", "options[3]: not the Pareto front", func(h *frontierfile.Header) { h.Curves[3].Options = slices.Repeat(h.Curves[3].Options, 2) }},
		{"no options", "options[2]: not the Pareto front", func(h *frontierfile.Header) { h.Curves[2].Options = nil }},
		{"order", "rank 0, action 1", func(h *frontierfile.Header) { h.Order = make([][]string, 8); h.Order[0] = []string{"0X0"} }},
		{"many microbatches", "ops: 32 are not enough", func(h *frontierfile.Header) { h.Microbatches = 1 << 40 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := good
			h.Curves = append([]frontierfile.Curve{}, good.Curves...)
			tt.change(&h)
			if _, _, err := Problem(&h); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestRunErrors(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(j *Job, o *Options)
	}{
		{"ranks", "2 blocking powers for 8 ranks", func(j *Job, _ *Options) { j.BlockingPower = j.BlockingPower[:2] }},
		{"GPUs", "0 GPUs per rank", func(j *Job, _ *Options) { j.GPUsPerRank = 0 }},
		{"stages", "the profile has 7 stages and the schedule 8", func(j *Job, _ *Options) { j.Measurements = same{j.Measurements, 7} }},
		{"no options", "an op has no option", func(j *Job, _ *Options) { j.Measurements = table{"7,": nil} }},
		{"negative power", "blocking power -0.000001W is outside", func(j *Job, _ *Options) { j.BlockingPower[3] = -1 }},
		{"too much energy", "a frontier holds energies up to 4 GJ", func(j *Job, _ *Options) {
			j.Order, j.BlockingPower = a100(t, 96).Order, slices.Repeat([]unit.Power{2e7 * unit.Watt}, 8)
		}},
		{"two points", "2 points; at least 3", func(_ *Job, o *Options) { o.Points = 2 }},
		{"negative points", "-1 points; at least 3", func(_ *Job, o *Options) { o.Points = -1 }},
		{"negative epsilon", "is negative", func(_ *Job, o *Options) { o.Epsilon = -1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, o := a100(t, 2), Options{}
			if tt.name == "no options" {
				j.Measurements = same{j.Measurements, 8}
			}
			tt.change(&j, &o)
			if tt.name == "no options" {
				j.Measurements = same{table{}, 8}
			}
			if f, err := Run(context.Background(), j, o); f != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestOneTime is a job that can only take one time.
func TestOneTime(t *testing.T) {
	j := a100(t, 3)
	options, err := j.Measurements.Options(0, "forward")
	if err != nil {
		t.Fatal(err)
	}
	j.Measurements = same{table{"0,forward": options[:1]}, 8}
	for _, opt := range []Options{{}, {Points: 3}, {Epsilon: 5}} {
		f := run(t, j, opt)
		if len(f.Points) != 1 || f.Header.TMin != f.Header.TMax || f.Header.LeastEnergyTime != f.Header.TMin || f.Points[0].Gap != 0 {
			t.Errorf("%d points, %+v", len(f.Points), f.Header.Landmarks)
		}
	}
}

func TestChosen(t *testing.T) {
	j := a100(t, 12)
	whole := run(t, j, Options{})
	breakpoint := map[unit.Time]bool{}
	for _, p := range whole.Points {
		breakpoint[p.RelaxedTime] = true
	}
	check := func(f *frontierfile.File) {
		t.Helper()
		if f.Header.Landmarks != whole.Header.Landmarks {
			t.Errorf("landmarks %+v, want %+v", f.Header.Landmarks, whole.Header.Landmarks)
		}
		for i, p := range f.Points {
			if !breakpoint[p.RelaxedTime] {
				t.Errorf("point %d at %v is no breakpoint", i, p.RelaxedTime)
			}
		}
	}
	before := frontierfile.Ratio(math.MaxInt64)
	for _, n := range []int{3, 4, 10, 50, 200} {
		f := run(t, j, Options{Points: n})
		check(f)
		if len(f.Points) > n || f.Header.LineGap >= before {
			t.Errorf("%d of %d points, lines off by %v", len(f.Points), n, f.Header.LineGap)
		}
		before = f.Header.LineGap
	}
	if f := run(t, j, Options{Points: 10_000}); len(f.Points) != len(whole.Points) || f.Header.LineGap != 0 {
		t.Errorf("%d of %d points, lines off by %v", len(f.Points), len(whole.Points), f.Header.LineGap)
	}
	for _, epsilon := range []frontierfile.Ratio{1_000, 100_000, 10_000_000} {
		f := run(t, j, Options{Epsilon: epsilon})
		check(f)
		// The solver's prices are whole microwatts, the certificates are exact.
		if f.Header.LineGap > epsilon+1 {
			t.Errorf("lines off by %v, want %v", f.Header.LineGap, epsilon)
		}
		fewer := run(t, j, Options{Epsilon: epsilon, Points: len(f.Points)})
		if !bytes.Equal(written(t, fewer), written(t, f)) {
			t.Errorf("with as many points as needed anyway, another file")
		}
	}
}

func TestWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		if want.BitLen() > 124 {
			t.Skip("more than a sum of energies")
		}
		if got := wide(unit.Product(unit.Power(a), unit.Time(b))); got.Cmp(want) != 0 {
			t.Fatalf("%d·%d = %v, want %v", a, b, got, want)
		}
	})
}
