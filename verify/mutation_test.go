package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// invented returns a profile whose stages differ, with options off the hull and
// off the front, and a rise in time at the top clock.
func invented(stages int) []byte {
	var b bytes.Buffer
	b.WriteString("stage,instruction,frequency,time,energy\n")
	for s := range stages {
		for k, instruction := range []string{"forward", "backward"} {
			for i, clock := range []int{700, 800, 900, 1000, 1100, 1200} {
				weight := (10 + s*(3-k)) * (1 + k)
				micros := 1000*weight*(1300-clock)/600 + 5000*weight/10
				if i == 5 {
					micros += 1100 * weight / 2
				}
				joules := micros / 1000 * (60 + i*i*9 + (i*7+s*5+k*3)%4*4)
				fmt.Fprintf(&b, "%d,%s,%d,%d.%06d,%d.%03d\n", s, instruction, clock, micros/1_000_000, micros%1_000_000, joules/1000, joules%1000)
			}
		}
	}
	return b.Bytes()
}

// written returns the text of a file.
func written(t testing.TB, f *frontierfile.File) []byte {
	var b bytes.Buffer
	if _, err := f.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// digits returns where the digits of values are: those of names are left out.
func digits(text []byte) (at []int) {
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			end := i + 1 + bytes.IndexByte(text[i+1:], '"')
			if text[end+1] == ':' {
				i = end
				continue
			}
		}
		if text[i] >= '0' && text[i] <= '9' {
			at = append(at, i)
		}
	}
	return at
}

// invalid says whether a changed digit at i makes text no JSON: a leading zero.
func invalid(text []byte, i int) bool {
	digit := func(i int) bool { return text[i] >= '0' && text[i] <= '9' }
	return text[i] == '0' && !digit(i-1) && text[i-1] != '.' && digit(i+1)
}

// TestEveryDigit changes each digit of a file, one at a time, and has each
// change caught as a violation.
func TestEveryDigit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	long := os.Getenv("PERSEUS_LONG_TESTS") != ""
	profile := invented(3)
	for _, tt := range []struct {
		name string
		opt  characterize.Options
		size pipeline.Size
		of   string
	}{
		{"whole", characterize.Options{}, pipeline.Size{Microbatches: 3}, "1f1b"},
		{"chosen", characterize.Options{Points: 5}, pipeline.Size{Microbatches: 3}, "gpipe"},
		{"given order", characterize.Options{Points: 4}, pipeline.Size{Ranks: 1, Chunks: 3, Microbatches: 2}, "looped-bfs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := written(t, made(t, profile, tt.of, tt.size, 20*unit.Watt, tt.opt))
			if _, err := Read(bytes.NewReader(text), "F.json", profile); err != nil {
				t.Fatalf("unchanged: %v", err)
			}
			changed := 0
			for _, i := range digits(text) {
				old := text[i]
				// All nine other digits with PERSEUS_LONG_TESTS=1; see CONTRIBUTING.md.
				for by := range byte(9) {
					if !long && by != 0 && by != byte(1+i%8) {
						continue
					}
					text[i] = '0' + (old-'0'+1+by)%10
					if invalid(text, i) {
						continue
					}
					changed++
					_, err := Read(bytes.NewReader(text), "F.json", profile)
					var violation *Violation
					var version *frontierfile.VersionError
					if !errors.As(err, &violation) && !errors.As(err, &version) {
						t.Errorf("%c for %c in …%s: got %T %v", text[i], old, text[max(0, i-60):min(len(text), i+20)], err, err)
					}
				}
				text[i] = old
			}
			t.Logf("%d bytes, %d changes", len(text), changed)
		})
	}
}

// TestChangedPoints removes, repeats, swaps and adds points, encoded as they
// should be.
func TestChangedPoints(t *testing.T) {
	profile := invented(3)
	f := made(t, profile, "1f1b", pipeline.Size{Microbatches: 4}, 20*unit.Watt, characterize.Options{})
	var all []frontierfile.Point
	for p, err := range f.Walk() {
		if err != nil {
			t.Fatal(err)
		}
		q := *p
		q.Choice, q.Flow = slices.Clone(p.Choice), slices.Clone(p.Flow)
		all = append(all, q)
	}
	n := len(all)
	again := func(points []frontierfile.Point) error {
		var b frontierfile.Builder
		for _, p := range slices.Backward(points) {
			b.Add(p.Choice, p.Flow)
		}
		_, err := File(b.File(f.Header, points), profile)
		return err
	}
	if err := again(all); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	caught := func(what string, points []frontierfile.Point) {
		t.Helper()
		var violation *Violation
		if err := again(points); !errors.As(err, &violation) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for i := range n {
		if n > 1 {
			caught(fmt.Sprintf("without point %d", i), slices.Delete(slices.Clone(all), i, i+1))
		}
		caught(fmt.Sprintf("point %d twice", i), slices.Insert(slices.Clone(all), i, all[i]))
		if i > 0 {
			swapped := slices.Clone(all)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			caught(fmt.Sprintf("points %d and %d swapped", i-1, i), swapped)

			// A true point of the same segment, which is no breakpoint.
			between := all[i-1]
			between.RelaxedTime = (all[i-1].RelaxedTime + all[i].RelaxedTime) / 2
			caught(fmt.Sprintf("one between points %d and %d", i-1, i), slices.Insert(slices.Clone(all), i, between))

			mixed := slices.Clone(all)
			mixed[i].Choice = all[i-1].Choice
			caught(fmt.Sprintf("knobs of point %d at point %d", i-1, i), mixed)
			mixed = slices.Clone(all)
			mixed[i].Flow = all[i-1].Flow
			caught(fmt.Sprintf("flow of point %d at point %d", i-1, i), mixed)
		}
	}
}

// TestForged makes files that are wrong in one way only, and right in all that
// follows from it.
func TestForged(t *testing.T) {
	profile := invented(3)
	f := made(t, profile, "1f1b", pipeline.Size{Microbatches: 4}, 20*unit.Watt, characterize.Options{})
	forge := func(what, want string, header func(h *frontierfile.Header), point func(i int, p *frontierfile.Point)) {
		t.Helper()
		h := f.Header
		h.Curves = slices.Clone(h.Curves)
		header(&h)
		var points []frontierfile.Point
		for p, err := range f.Walk() {
			if err != nil {
				t.Fatal(err)
			}
			q := *p
			q.Choice, q.Flow = slices.Clone(p.Choice), slices.Clone(p.Flow)
			point(len(points), &q)
			points = append(points, q)
		}
		var b frontierfile.Builder
		for _, p := range slices.Backward(points) {
			b.Add(p.Choice, p.Flow)
		}
		_, err := File(b.File(h, points), profile)
		var violation *Violation
		if !errors.As(err, &violation) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	same := func(*frontierfile.Header) {}
	asIs := func(int, *frontierfile.Point) {}
	forge("flow that ends in an op", "flows into op", same, func(_ int, p *frontierfile.Point) {
		p.Flow[len(p.Flow)-1]++ // to the sink: neither base nor price is of it
	})
	forge("flow without end", "flow", same, func(i int, p *frontierfile.Point) {
		if i == 0 {
			for a := range p.Flow {
				p.Flow[a] = unit.MaxFlow
			}
		}
	})
	forge("price at t_max", "price_w", same, func(i int, p *frontierfile.Point) {
		if i == len(f.Points)-1 {
			p.Price = 1
		}
	})
	forge("a schedule that is too slow", "time_s", same, func(i int, p *frontierfile.Point) {
		if i == 0 {
			q := f.Points[1]
			p.Time, p.Energy, p.Effective = q.Time, q.Energy, q.Effective
			p.Choice, _ = f.Choice(1)
		}
	})
	forge("a coarse whole", "quantum_w", func(h *frontierfile.Header) { h.Quantum = 1 }, asIs)
	forge("an option that nothing uses", "options where", func(h *frontierfile.Header) {
		// Measured, and worse than another: between two useful ones in time.
		c := &h.Curves[1]
		all, err := readProfile(string(profile), h.Profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all.options[source{c.Stage, c.Instruction}] {
			o.Effective = dag.Effective(o.Energy, c.BlockingPower, o.Time)
			last := len(c.Options) - 1
			if !slices.Contains(c.Options, o) && o.Time > c.Options[last].Time {
				c.Options = append(slices.Clone(c.Options), c.Options[last])
				c.Options[last] = o
				return
			}
		}
		t.Fatal("every option is useful")
	}, asIs)
	forge("options in another order", "options[2]: the options are not slowest first", func(h *frontierfile.Header) {
		h.Curves[2].Options = slices.Clone(h.Curves[2].Options)
		slices.Reverse(h.Curves[2].Options)
	}, asIs)
	forge("an entry twice", "options[1]: no op has these options", func(h *frontierfile.Header) {
		h.Curves = slices.Insert(h.Curves, 1, h.Curves[0])
	}, asIs)
	forge("another order of entries", "not sorted", func(h *frontierfile.Header) { slices.Reverse(h.Curves) }, asIs)
	forge("an entry too few", "is missing", func(h *frontierfile.Header) { h.Curves = h.Curves[1:] }, asIs)
	forge("another blocking power", "options: stage 0", func(h *frontierfile.Header) { h.BlockingPower = []unit.Power{1, 1, 1} }, asIs)
	forge("more power than there is", "add up to more than", func(h *frontierfile.Header) { h.BlockingPower = slices.Repeat([]unit.Power{unit.MaxPower}, 3) }, asIs)
	forge("unknown unit", "one is unknown", func(h *frontierfile.Header) { h.Profile.TimeUnit = "h" }, asIs)
	forge("another unit", "", func(h *frontierfile.Header) { h.Profile.TimeUnit = "ms" }, asIs)
	forge("another profile", "profile.sha256", func(h *frontierfile.Header) { h.Profile.SHA256 = strings.ToUpper(h.Profile.SHA256) }, asIs)
	forge("an order that its name gives", "has no order of its own", func(h *frontierfile.Header) { h.Order = [][]string{{"0F0"}, {}, {}} }, asIs)
	forge("a schedule that needs an order", "the file has no order", func(h *frontierfile.Header) { h.Schedule = "zbv" }, asIs)
}

// TestRandomBytes puts random bytes into random places: what still reads must be
// caught, unless it is the same file in other letters.
func TestRandomBytes(t *testing.T) {
	profile := invented(3)
	good := written(t, made(t, profile, "1f1b", pipeline.Size{Microbatches: 3}, 20*unit.Watt, characterize.Options{}))
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := "0123456789.-+eE,:[]{}\" abcdefABCDEFf"
	read := 0
	for range 6_000 {
		text := slices.Clone(good)
		for range 1 + rng.IntN(2) {
			i := rng.IntN(len(text))
			switch rng.IntN(3) {
			case 0:
				text[i] = alphabet[rng.IntN(len(alphabet))]
			case 1:
				text = slices.Delete(text, i, i+1)
			case 2:
				text = slices.Insert(text, i, alphabet[rng.IntN(len(alphabet))])
			}
		}
		f, err := frontierfile.Read(bytes.NewReader(text), "F.json")
		if err != nil {
			continue
		}
		if bytes.Equal(squeeze(written(t, f)), squeeze(good)) {
			continue
		}
		read++
		var violation *Violation
		if _, err := File(f, profile); !errors.As(err, &violation) {
			t.Errorf("got %v for\n%s", err, difference(good, text))
		}
	}
	t.Logf("%d could be read and were caught", read)
}

// TestMeasuredDigits changes some digits of a measured job's file.
func TestMeasuredDigits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	profile := shared(t, "gpt3-175b-a100-sxm.csv")
	text := written(t, made(t, profile, "1f1b", pipeline.Size{Microbatches: 12}, 83_640_000, characterize.Options{}))
	rng := rand.New(rand.NewPCG(3, 4))
	at := digits(text)
	for range 60 {
		i := at[rng.IntN(len(at))]
		old := text[i]
		text[i] = '0' + (old-'0'+1+byte(rng.IntN(9)))%10
		if !invalid(text, i) {
			_, err := Read(bytes.NewReader(text), "F.json", profile)
			var violation *Violation
			if !errors.As(err, &violation) {
				t.Errorf("%c for %c in …%s: got %T %v", text[i], old, text[max(0, i-60):min(len(text), i+20)], err, err)
			}
		}
		text[i] = old
	}
}

func squeeze(b []byte) []byte { return bytes.ReplaceAll(b, []byte(" "), nil) }

func difference(a, b []byte) string {
	for i, l := range strings.Split(string(b), "\n") {
		if lines := strings.Split(string(a), "\n"); i >= len(lines) || l != lines[i] {
			return fmt.Sprintf("line %d: %s", i+1, l)
		}
	}
	return "nothing"
}

// TestNeedlessFields adds fields that may be left out, with the value that means
// nothing.
func TestNeedlessFields(t *testing.T) {
	profile := invented(3)
	f := made(t, profile, "1f1b", pipeline.Size{Microbatches: 4}, 20*unit.Watt, characterize.Options{})
	var text bytes.Buffer
	if _, err := f.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"order":[]`, `"line_gap":0`, `"quantum_w":0`} {
		changed := strings.Replace(text.String(), `"options"`, field+`,"options"`, 1)
		_, err := Read(strings.NewReader(changed), "F.json", profile)
		var violation *Violation
		if !errors.As(err, &violation) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
