package characterize

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
	"github.com/perseus-energy/perseus/verify"
)

// synthetic returns a job whose stages all differ, and its profile's text.
func synthetic(t testing.TB, ranks, microbatches int) (Job, []byte) {
	var text bytes.Buffer
	if err := profile.Synthetic(profile.SyntheticConfig{Stages: ranks}).WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(bytes.NewReader(text.Bytes()), "P.csv", profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := pipeline.Build("1f1b", pipeline.Size{Ranks: ranks, Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	return NewJob(p, o, 84*unit.Watt), text.Bytes()
}

// TestCoarse has frontiers of chosen points of coarse problems verified, with each
// breakpoint's solution taken and with few.
func TestCoarse(t *testing.T) {
	for few, size := range map[int][2]int{1 << 20: {3, 5}, 0: {4, 7}, 100: {8, 12}} {
		j, text := synthetic(t, size[0], size[1])
		for _, opt := range []Options{{Points: 12}, {Points: 50}, {Epsilon: 200_000}, {Points: 5, Epsilon: 100}} {
			for _, quantum := range []unit.Power{0, 100_000, 8 * unit.Watt, 60 * unit.Watt} {
				p, h, err := j.problem()
				if err != nil {
					t.Fatal(err)
				}
				h.Landmarks = landmarks(p)
				f, err := chosenPoints(context.Background(), p, h, opt, quantum, few)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%v few %d points %d epsilon %v quantum %v", size, few, opt.Points, opt.Epsilon, quantum)
				if opt.Points == 0 && f.Header.LineGap > opt.Epsilon+1 {
					t.Errorf("%s: lines off by %v", name, f.Header.LineGap)
				}
				if opt.Epsilon == 0 && f.Header.Quantum != quantum {
					t.Errorf("%s: quantum %v", name, f.Header.Quantum)
				}
				if opt.Points != 0 && len(f.Points) > opt.Points {
					t.Errorf("%s: %d points", name, len(f.Points))
				}
				if _, err := verify.Read(bytes.NewReader(written(t, f)), "F.json", text); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// BenchmarkChosen reports how far the lines between 50 points are off, in
// millionths.
func BenchmarkChosen(b *testing.B) {
	for _, size := range [][2]int{{16, 64}, {32, 128}, {64, 256}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			j, _ := synthetic(b, size[0], size[1])
			for b.Loop() {
				f := run(b, j, Options{Points: 50})
				b.ReportMetric(f.Header.LineGap.Float()*1e6, "ppm")
			}
		})
	}
}

// TestChosenOfSmoothStages has pipelines whose breakpoints lie as close together
// as the rounding of slopes allows.
func TestChosenOfSmoothStages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	for _, seed := range []uint64{27, 34} {
		rng := rand.New(rand.NewPCG(seed, 1))
		var text bytes.Buffer
		text.WriteString("stage,instruction,frequency,time,energy\n")
		for stage := range 128 {
			for work, instruction := range []string{"forward", "backward"} {
				factor := float64(work+1) * (0.9 + 0.2*rng.Float64())
				for k := range 8 {
					x := float64(k)
					fmt.Fprintf(&text, "%d,%s,%d,%.9f,%.6f\n", stage, instruction, 1400-15*k,
						0.01*factor*(1+0.05*x), 3*factor*(1-0.05*x+0.005*x*x))
				}
			}
		}
		p, err := profile.Read(bytes.NewReader(text.Bytes()), "P.csv", profile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := pipeline.Build("gpipe", pipeline.Size{Ranks: 128, Microbatches: 8})
		if err != nil {
			t.Fatal(err)
		}
		j := NewJob(p, o, 80*unit.Watt)
		f := run(t, j, Options{Epsilon: 500_000})
		if _, err := verify.Read(bytes.NewReader(written(t, f)), "F.json", text.Bytes()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
