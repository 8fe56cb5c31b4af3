package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// The golden files in testdata are what the functions wrote for small made-up
// data, checked by looking at them; go test ./report -update writes them again.
var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; go test ./report -update writes it again:\n%s", path, got)
	}
}

func small(t testing.TB, stages, repeats, noise int) (*frontierfile.File, *profile.Profile) {
	t.Helper()
	p := profile.Synthetic(profile.SyntheticConfig{Stages: stages, StepMHz: 100, Repeats: repeats, Noise: noise})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: stages, Microbatches: 4})
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(t.Context(), characterize.NewJob(p, order, 84*unit.Watt), characterize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, p
}

// TestPlotGolden holds how a plot looks: braille, plain and coloured.
func TestPlotGolden(t *testing.T) {
	var curve []XY
	for i := range 60 {
		x := 2.8 + float64(i)/40
		curve = append(curve, XY{x, 5600 + 900*math.Exp(-3*(x-2.8)) + 250*(x-3.2)*(x-3.2)})
	}
	named := []Mark{{XY{2.84, 7340}, "top", '×'}, {curve[0], "fastest", '●'}}
	for name, o := range map[string]PlotOptions{
		"plot.txt":       {Width: 78, Height: 18},
		"plot-ascii.txt": {Width: 60, Height: 12, ASCII: true},
		"plot-color.txt": {Width: 40, Height: 8, Color: true},
	} {
		var b bytes.Buffer
		if err := Plot(&b, curve, named, o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

// TestPlotFits draws anything: no line is wider than asked, and there are as
// many as asked.
func TestPlotFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.SampledFrom([]float64{0, 1e-9, -1e-9, 1e15}))
		point := rapid.Custom(func(t *rapid.T) XY { return XY{value.Draw(t, "x"), value.Draw(t, "y")} })
		curve := rapid.SliceOfN(point, 1, 20).Draw(t, "curve")
		o := PlotOptions{Width: rapid.IntRange(40, 120).Draw(t, "width"), Height: rapid.IntRange(8, 40).Draw(t, "height"), ASCII: rapid.Bool().Draw(t, "ascii")}
		var b bytes.Buffer
		if err := Plot(&b, curve, []Mark{{curve[0], "", 'x'}}, o); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != o.Height {
			t.Fatalf("%d lines, want %d", len(lines), o.Height)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > o.Width {
				t.Fatalf("%d columns, want at most %d: %q", n, o.Width, line)
			}
			if o.ASCII && len(line) != utf8.RuneCountInString(line) {
				t.Fatalf("not plain: %q", line)
			}
		}
		if strings.Count(b.String(), "x") == 0 {
			t.Fatal("the mark is missing")
		}
	})
}

func TestPlotWithoutPoints(t *testing.T) {
	var b bytes.Buffer
	if err := Plot(&b, nil, nil, PlotOptions{}); err != nil || b.Len() > 0 {
		t.Errorf("drew %q, %v", &b, err)
	}
}

// TestText checks the numbers of the text against the file.
func TestText(t *testing.T) {
	f, _ := small(t, 4, 1, 0)
	var b bytes.Buffer
	if err := WriteText(&b, f, TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	h := &f.Header
	first, last := f.Points[0], f.Points[len(f.Points)-1]
	for _, want := range []string{
		"1f1b: 4 stages on 4 ranks of 1 GPU, 4 microbatches, 32 ops",
		Seconds(h.MaxClockTime) + "  " + Joules(h.MaxClockEnergy),
		Seconds(first.Time) + "    ×1.000  " + Joules(first.Energy) + "  " + Percent(share(first.Energy, h.MaxClockEnergy)),
		Seconds(last.Time), "straggler ×1.5", "saved without being any slower", "all ops at their top clocks",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &b)
		}
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > 101 {
			t.Errorf("wider than 100: %q", line)
		}
	}
}

// TestBalanced checks that balanced stages, where nothing waits, are called that.
func TestBalanced(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 1, StepMHz: 100})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 1, Microbatches: 3})
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(t.Context(), characterize.NewJob(p, order, 84*unit.Watt), characterize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteText(&b, f, TextOptions{Width: 80}); err != nil || !strings.Contains(b.String(), "the stages are balanced") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// TestSVG checks that the picture is well-formed and has no number that is none.
func TestSVG(t *testing.T) {
	f, _ := small(t, 4, 1, 0)
	var b bytes.Buffer
	if err := WriteSVG(&b, f, `<"title"> & more`); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, &b)
		}
	}
	if s := b.String(); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || !strings.Contains(s, "saved, no slower") {
		t.Errorf("%s", s)
	}
}

// TestIntervals checks that intervals lie about their savings, are wider where
// measurements are noisier, and come out the same for the same seed.
func TestIntervals(t *testing.T) {
	width := func(noise int) float64 {
		f, p := small(t, 3, 7, noise)
		rows, err := Savings(f)
		if err != nil {
			t.Fatal(err)
		}
		r := Resampling{Resamples: 200, Level: 0.9, Seed: 3}
		intervals, err := Intervals(f, p, r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Intervals(f, p, r)
		if err != nil || !slices.Equal(intervals, again) {
			t.Errorf("other intervals the second time, %v", err)
		}
		var sum float64
		for i, v := range intervals {
			at := rows[i].Plan.Saving.Float()
			if v.Low > v.High || v.High-v.Low > 0.2 || at < v.Low-0.03 || at > v.High+0.03 || v.Level != 0.9 || v.Resamples != 200 {
				t.Errorf("saving %v, interval %+v", at, v)
			}
			sum += v.High - v.Low
		}
		return sum
	}
	quiet, loud := width(500), width(20_000)
	if quiet <= 0 || loud < 3*quiet {
		t.Errorf("width %v with little noise, %v with much", quiet, loud)
	}
}

func TestIntervalErrors(t *testing.T) {
	f, p := small(t, 2, 2, 0)
	other := profile.Synthetic(profile.SyntheticConfig{Stages: 2, Seed: 9})
	for want, r := range map[string]Resampling{
		"level 0":      {Resamples: 10},
		"level 100":    {Resamples: 10, Level: 1},
		"level NaN":    {Resamples: 10, Level: math.NaN()},
		"resamples 0":  {Level: 0.9},
		"resamples -1": {Resamples: -1, Level: 0.9},
	} {
		if _, err := Intervals(f, p, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	graph := *f
	graph.Header.Graph = &frontierfile.Graph{}
	if _, err := Intervals(&graph, p, Resampling{Resamples: 1, Level: 0.5}); err == nil || !strings.Contains(err.Error(), "a graph was not measured") {
		t.Errorf("got %v", err)
	}
	if _, err := Intervals(f, other, Resampling{Resamples: 1, Level: 0.5}); err == nil || !strings.Contains(err.Error(), "another profile") {
		t.Errorf("got %v", err)
	}
}

func TestQuantile(t *testing.T) {
	v := []float64{1, 2, 4}
	for q, want := range map[float64]float64{0: 1, 0.25: 1.5, 0.5: 2, 0.75: 3, 1: 4} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 2.8365107: "2.83651", 7338.997: "7339.00", 1234567: "1234567", 0.00012345678: "0.000123457",
		-15.5: "-15.5000", math.Inf(1): "+Inf",
	} {
		if got := Significant(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if got := Percent(-0.00001); got != "0.00 %" {
		t.Errorf("got %s", got)
	}
	if got := Count(1, "microbatch") + Count(2, "microbatch") + Count(0, "rank"); got != "1 microbatch2 microbatches0 ranks" {
		t.Errorf("got %s", got)
	}
}
