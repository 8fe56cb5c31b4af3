package profile_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// The digest was printed by this test on linux/amd64; it must be the same on
// every machine. It changes only with the model, and then on purpose.
func TestSyntheticDigits(t *testing.T) {
	for _, c := range []struct {
		config profile.SyntheticConfig
		digest string
	}{
		{profile.SyntheticConfig{}, "9f42807b73a085da7d30cf5a780b86500c6616f2e93decc93ceff0f36f685fe3"},
		{profile.SyntheticConfig{Seed: 7, Stages: 3, Repeats: 2, SplitBackward: true}, "b31bb7a3f1a8694a9f31214664647f93321e736141009cf63d376a6582f2dc43"},
	} {
		p := profile.Synthetic(c.config)
		if p.SHA256 != c.digest {
			t.Errorf("%+v has digest %s", c.config, p.SHA256)
		}
	}
}

// What Synthetic returns is what is read from the file that it writes.
func TestSyntheticRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := profile.Synthetic(profile.SyntheticConfig{
			Seed:          rapid.Uint64().Draw(t, "seed"),
			Stages:        rapid.IntRange(0, 5).Draw(t, "stages"),
			Repeats:       rapid.IntRange(0, 3).Draw(t, "repeats"),
			Spread:        rapid.IntRange(-1, 500).Draw(t, "spread"),
			Noise:         rapid.IntRange(-1, 20_000).Draw(t, "noise"),
			StepMHz:       rapid.Int32Range(5, 300).Draw(t, "step"),
			Memory:        rapid.IntRange(-1, 1000).Draw(t, "memory"),
			Forward:       unit.Time(rapid.Int64Range(1e5, 1e9).Draw(t, "forward")),
			SplitBackward: rapid.Bool().Draw(t, "split"),
		})
		checkOptions(t, p)
		var b bytes.Buffer
		if err := p.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		q, err := profile.Read(bytes.NewReader(b.Bytes()), "p.csv", profile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameProfile(t, p, q)
		if p.SHA256 != q.SHA256 || p.Report.Bytes != q.Report.Bytes || p.Report.Rows != q.Report.Rows {
			t.Fatalf("%+v and %+v", p, q)
		}
	})
}

// Values far outside what a field allows are taken as the nearest allowed one.
func TestSyntheticExtremes(t *testing.T) {
	const most = 1 << 30
	p := profile.Synthetic(profile.SyntheticConfig{
		Stages: 1, Repeats: -5, MinMHz: -5, MaxMHz: most, StepMHz: 500, Forward: most * unit.Second, Embedding: most, Head: most, Spread: most,
		Noise: most, Static: most * unit.Watt, Dynamic: most * unit.Watt, KneeMHz: most, KneeVoltage: most, Memory: most,
	})
	checkOptions(t, p)
	p = profile.Synthetic(profile.SyntheticConfig{
		Stages: -1, Repeats: -1, MinMHz: -1, MaxMHz: -1, StepMHz: -1, Forward: -1, Embedding: -1, Head: -1, Spread: -1,
		Noise: -1, Static: -1, Dynamic: -1, KneeMHz: -1, KneeVoltage: -1, Memory: -1,
	})
	checkOptions(t, p)
}

// The defaults are a plausible GPU: energy per op is least in the middle of the
// grid, with the waiting power taken off it is least at a lower clock, still well
// inside, and the top clock draws 400 to 600 W.
func TestSyntheticIsPlausible(t *testing.T) {
	for seed := range uint64(20) {
		p := profile.Synthetic(profile.SyntheticConfig{Seed: seed})
		if got := p.Instructions(); !slices.Equal(got, []string{"backward", "forward"}) || p.Stages() != 8 || p.HasRepeats() {
			t.Fatalf("%v, %d stages", got, p.Stages())
		}
		for stage := range 8 {
			for _, instruction := range p.Instructions() {
				options := options(t, p, stage, instruction)
				least := slices.MinFunc(options, func(a, b dag.Option) int { return int(min(1, max(-1, a.Energy-b.Energy))) })
				curve, err := dag.NewCurve(options, 83_640_000)
				if err != nil {
					t.Fatal(err)
				}
				top := options[len(options)-1]
				low, high := options[0].Knobs.ClockMHz, top.Knobs.ClockMHz
				if f := least.Knobs.ClockMHz; len(options) != 41 || f < low+(high-low)/6 || f > high-(high-low)/4 {
					t.Errorf("seed %d, stage %d, %s: %d clocks, least energy at %d MHz", seed, stage, instruction, len(options), f)
				}
				if f := curve.Slowest().Knobs.ClockMHz; f < low+(high-low)/10 || f > least.Knobs.ClockMHz {
					t.Errorf("seed %d, stage %d, %s: least effective energy at %d MHz, least energy at %d MHz", seed, stage, instruction, f, least.Knobs.ClockMHz)
				}
				if w := top.Energy.Joules() / top.Time.Seconds(); w < 400 || w > 600 {
					t.Errorf("seed %d, stage %d, %s: %.0f W", seed, stage, instruction, w)
				}
				if len(curve.Hull) < 5 {
					t.Errorf("seed %d, stage %d, %s: %d vertices", seed, stage, instruction, len(curve.Hull))
				}
			}
		}
	}
}

// The saving at unchanged time that the default gives with eight stages in
// 1F1B, from below: every op of a stage as slow as its share of the critical
// stage's time allows.
func TestSyntheticSaving(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{})
	const microbatches, blocking = 12, 83_640_000
	pair := func(stage int, pick func(c *dag.Curve) dag.Option) (time unit.Time, energy float64) {
		for _, instruction := range p.Instructions() {
			c, err := dag.NewCurve(options(t, p, stage, instruction), blocking)
			if err != nil {
				t.Fatal(err)
			}
			o := pick(&c)
			time += o.Time
			energy += o.Effective.Joules()
		}
		return time, energy
	}
	top := func(c *dag.Curve) dag.Option { return c.Top }
	critical, _ := pair(7, top)
	var all, saved, total float64
	var span unit.Time
	for stage := range 8 {
		time, energy := pair(stage, top)
		span += time
		all += energy
		best := energy
		for i := range 41 { // the same step down from the top for both ops
			slower, less := pair(stage, func(c *dag.Curve) dag.Option { return c.Options[max(0, len(c.Options)-1-i)] })
			if slower <= critical && less < best {
				best = less
			}
		}
		saved += energy - best
	}
	iteration := span.Seconds() + float64(microbatches-1)*critical.Seconds()
	total = microbatches*all + 8*83.64*iteration
	if share := microbatches * saved / total; share < 0.07 || share > 0.15 {
		t.Errorf("saves %.1f %%", 100*share)
	}
}

// Without noise, time is as the formula says and falls with the clock.
func TestSyntheticWithoutNoise(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 1, Noise: -1, Spread: -1, Embedding: -1, Head: -1, MinMHz: 705, StepMHz: 705})
	// Forward: 50 ms at 1410 MHz, 15 % of it memory; at half the clock 50·(0.15 + 2·0.85).
	// Energy: 485 W at the top; below the knee 100 W and 385 W·(0.15 + 0.85·0.69²).
	want := []dag.Option{
		option(705, 92_500*unit.Microsecond, 9_250*unit.Joule/1000+unit.Energy(385*50*(150_000+850*476.1)*1e3)),
		option(1410, 50*unit.Millisecond, 24_250*unit.Joule/1000),
	}
	got := options(t, p, 0, "forward")
	for i := range want {
		if d := got[i].Energy - want[i].Energy; got[i].Knobs != want[i].Knobs || got[i].Time != want[i].Time || d > 1e7 || d < -1e7 {
			t.Errorf("got %v, %v, %v; want %v, %v, %v", got[i].Knobs, got[i].Time, got[i].Energy, want[i].Knobs, want[i].Time, want[i].Energy)
		}
	}
	if p.Report.Ops[0].Rises != 0 {
		t.Errorf("report %+v", p.Report)
	}
}

func TestSyntheticReport(t *testing.T) {
	want := []string{
		"synthetic profile: 656 rows, 8 stages, backward and forward",
		"stages 0–7: backward and forward: 41 clocks, 810–1410 MHz",
	}
	p := profile.Synthetic(profile.SyntheticConfig{})
	if got := p.Report.Lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}
