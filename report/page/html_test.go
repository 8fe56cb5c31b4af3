package page

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// small returns a frontier of a synthetic job, and its profile.
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

func rate(t testing.TB, s string) *Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// contents returns a report with all that there is.
func contents(t testing.TB, f *frontierfile.File, p *profile.Profile) *Contents {
	t.Helper()
	c, err := New(f, Options{
		Profile: p, Request: plan.Request{Goal: plan.Fastest, Effort: round.Fast}, Published: true,
		Prices: Prices{Money: rate(t, "0.12"), Carbon: rate(t, "380"), Currency: "EUR"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func written(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHTML: the page holds what it is to hold, needs nothing from elsewhere, and
// has the same bytes again.
func TestHTML(t *testing.T) {
	f, p := small(t, 4, 2, 3)
	page := written(t, contents(t, f, p).WriteHTML)
	for _, want := range []string{
		"<!doctype html>", "zeus-global", "zeus-per-stage", "envpipe", "perseus-published", "intrinsic bloat",
		"a day on 10,000 GPUs", "EUR", "CO₂", "No row was left out", "straggler", `role="status"`, f.Header.Profile.SHA256,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "ZgotmplZ", "NaN", "Inf ", "<no value>"} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if again := written(t, contents(t, f, p).WriteHTML); again != page {
		t.Error("the same report has other bytes")
	}
}

// TestHTMLEscapes: what a user brings is text, wherever it stands.
func TestHTMLEscapes(t *testing.T) {
	f, p := small(t, 2, 0, 0)
	evil := `</title></script><script>alert(1)</script><img src=x onerror='a("b")'>`
	q := *p
	q.Report.Name = evil
	c, err := New(f, Options{Title: evil, Profile: &q, Request: plan.Request{Effort: round.Fast}, Prices: Prices{Money: rate(t, "1"), Currency: `<b>"&`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*string{&c.Before.Schedule.Name, &c.After.Schedule.Name} {
		*s = evil
	}
	page := written(t, c.WriteHTML)
	for _, bad := range []string{"<script>alert", "<img", "<b>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if got := strings.Count(page, "</script>"); got != 3 {
		t.Errorf("%d ends of scripts, want 3", got)
	}
	picture := &Picture{Title: evil, Text: evil, Width: 9, Height: 9, shapes: []shape{label{text: evil, size: 9, fill: ink, halo: panel}}}
	if svg := written(t, picture.WriteSVG); strings.Contains(svg, "<script") || strings.Contains(svg, "<img") {
		t.Errorf("the picture has markup of its title: %s", svg)
	}
}

// TestReportGoals makes reports of every goal, with and without a profile.
func TestReportGoals(t *testing.T) {
	f, p := small(t, 3, 0, 0)
	for _, r := range []plan.Request{
		{Goal: plan.Fastest},
		{Goal: plan.LeastEnergy},
		{Goal: plan.Straggler, Factor: 2 * plan.One},
		{Goal: plan.Slowdown, Factor: plan.One},
		{Goal: plan.WithinTime, Time: 1},
		{Goal: plan.AveragePower, Power: 1},
	} {
		r.Effort = round.Fast
		for _, profiled := range []*profile.Profile{nil, p} {
			c, err := New(f, Options{Request: r, Profile: profiled})
			if err != nil {
				t.Fatal(r.Goal, err)
			}
			page := written(t, c.WriteHTML)
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf ") {
				t.Errorf("%v: a number that is none", r.Goal)
			}
			if waits := strings.Contains(page, "While it waits for a straggler"); waits != (r.Goal == plan.Straggler) {
				t.Errorf("%v: says that it waits: %t", r.Goal, waits)
			}
		}
	}
}

func TestReportErrors(t *testing.T) {
	f, p := small(t, 2, 0, 0)
	other := *p
	other.SHA256 = strings.Repeat("0", 64)
	for want, o := range map[string]Options{
		"another profile": {Profile: &other},
		"--pue 0.5":       {Prices: Prices{Overhead: plan.One / 2}},
		"--gpus -1":       {Prices: Prices{GPUs: -1}},
		"--currency":      {Prices: Prices{Currency: strings.Repeat("x", 17)}},
		"factor of at":    {Request: plan.Request{Goal: plan.Straggler}},
	} {
		o.Request.Effort = round.Fast
		if _, err := New(f, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, bad := range []string{"", "-1", "1e9", "0,12", "x", "NaN"} {
		if r, err := ParseRate(bad); err == nil {
			t.Errorf("rate %q is %v", bad, r)
		}
	}
}

// TestPictures: each is well-formed SVG that needs nothing else, and a PNG of its
// size in which something is drawn; the same picture has the same bytes.
func TestPictures(t *testing.T) {
	f, p := small(t, 4, 0, 0)
	c := contents(t, f, p)
	again := c.Pictures()
	for i, picture := range c.Pictures() {
		svg := written(t, picture.WriteSVG)
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", picture.Name, err)
			}
		}
		if strings.Contains(svg, "href") || svg != written(t, again[i].WriteSVG) {
			t.Errorf("%s: has references, or other bytes the second time", picture.Name)
		}
		write := func(w io.Writer) error { return picture.WritePNG(w, 1) }
		data := written(t, write)
		image, err := png.Decode(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if size := image.Bounds().Size(); size.X != picture.Width || size.Y != picture.Height {
			t.Errorf("%s: %v, want %d × %d", picture.Name, size, picture.Width, picture.Height)
		}
		colors := map[[3]uint32]bool{}
		for y := range picture.Height {
			for x := range picture.Width {
				r, g, b, _ := image.At(x, y).RGBA()
				colors[[3]uint32{r, g, b}] = true
			}
		}
		if len(colors) < 20 {
			t.Errorf("%s: only %d colours", picture.Name, len(colors))
		}
		if data != written(t, write) {
			t.Errorf("%s: other bytes the second time", picture.Name)
		}
	}
}

func TestSpread(t *testing.T) {
	for want, counts := range map[string]map[int32]int{
		"":                  nil,
		"2\u00a0×\u00a0900": {900: 2},
		"5\u00a0×\u00a0900, 1\u00a0×\u00a01410, 1\u00a0×\u00a0800, 1\u00a0×\u00a0700": {700: 1, 800: 1, 900: 5, 1410: 1},
		"5\u00a0×\u00a0900, 1\u00a0×\u00a01410, 1\u00a0×\u00a0800, 2\u00a0others":     {600: 1, 700: 1, 800: 1, 900: 5, 1410: 1},
	} {
		if got := spreadText(counts); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestContrast computes by WCAG 2.2 that text can be read and lines be seen.
func TestContrast(t *testing.T) {
	text := map[tone]bool{ink: true, soft: true, curved: true, before: true, fastest: true, least: true, zeus: true, stages: true, other: true}
	for _, dark := range []bool{false, true} {
		for _, s := range shades() {
			for _, ground := range []tone{panel, paper} {
				if got := contrast(s.tone.hex(dark), ground.hex(dark)); text[s.tone] && got < 4.5 {
					t.Errorf("%s on %s, dark %t: contrast %.2f", s.tone, ground, dark, got)
				}
			}
		}
	}
	colors := ramp()
	for i, c := range colors {
		if got := contrast(onRamp(i), c); got < 4.5 {
			t.Errorf("text on colour %d, %s: contrast %.2f", i, c, got)
		}
	}
	if got := contrast("#000000", "#ffffff"); got < 20.99 || got > 21.01 {
		t.Errorf("black on white is %v, by the standard 21", got)
	}
	// The ends of the ramp are told apart by lightness alone.
	if got := contrast(colors[0], colors[len(colors)-1]); got < 5 {
		t.Errorf("least and most power: contrast %.2f", got)
	}
}

// TestCosts checks the money by hand: 3.6 MJ are a kilowatt-hour.
func TestCosts(t *testing.T) {
	p := &plan.Plan{BaselineTime: 2e9, WaitTime: 2e9, BaselineEnergy: 7200e9, WaitEnergy: 3600e9}
	prices, err := Prices{Money: rate(t, "0.5"), Carbon: rate(t, "400"), Overhead: 2 * plan.One, GPUs: 80}.check()
	if err != nil {
		t.Fatal(err)
	}
	rows := costs(p, 8, prices)
	for i, want := range []CostRow{
		{"one iteration of this pipeline", "energy", "14,400 J", "7,200 J", "7,200 J"},
		{"one iteration of this pipeline", "money", "0.002000 USD", "0.001000 USD", "0.001000 USD"},
		{"one iteration of this pipeline", "CO₂", "1.600 g", "0.8000 g", "0.8000 g"},
		{"a day of this pipeline", "energy", "172.8 kWh", "86.40 kWh", "86.40 kWh"},
		{"a day of this pipeline", "money", "86.40 USD", "43.20 USD", "43.20 USD"},
		{"a day of this pipeline", "CO₂", "69.12 kg", "34.56 kg", "34.56 kg"},
		{"a day on 80 GPUs", "energy", "1,728 kWh", "864.0 kWh", "864.0 kWh"},
		{"a day on 80 GPUs", "money", "864.0 USD", "432.0 USD", "432.0 USD"},
		{"a day on 80 GPUs", "CO₂", "691.2 kg", "345.6 kg", "345.6 kg"},
		{"a year on 80 GPUs", "energy", "630.7 MWh", "315.4 MWh", "315.4 MWh"},
	} {
		if rows[i] != want {
			t.Errorf("row %d: %+v, want %+v", i, rows[i], want)
		}
	}
}
