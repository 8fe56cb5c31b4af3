package profile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// FuzzRead checks what holds for every input: Read ends, fails only with an
// *Error of bounded length, and returns options that dag.NewCurve takes and that
// WriteCSV carries.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		header5 + good, header5, "", "\ufeff" + strings.ReplaceAll(header5+good, "\n", "\r\n"), compressed(f, header5+good), compressed(f, header5)[:20],
		header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1410,0.05,23.8\n0,0,0,0,0,forward,1410,0.052,22\n1,0,0,1,0,forward,1395,0.05,23.8\n",
		header5 + "0,\"forward\",1410,\"0,05\",nan\n0, backward ,1.41,5e-2,1e99\n,,,,\n-1,x\n",
		"time,stage,note,energy,frequency,instruction\n50,0,\"a\"\"b\",23.8,1410000,forward\n\n",
		header5 + good + good + "1,forward,1410,0.05,0.0238\n", "a;b\n", "\xff\xfes\x00",
		header5 + "0,forward,1410,1.000000001,23.8\n0,forward,1395,1.000000002,22\n",
	} {
		f.Add([]byte(seed), false, uint8(0))
		f.Add([]byte(seed), true, uint8(0x5b))
	}
	f.Fuzz(func(t *testing.T, input []byte, skip bool, units uint8) {
		u := profile.Units{
			Time:      []string{"", "ms", "us", "s"}[units&3],
			Energy:    []string{"", "mJ", "uJ", "J"}[units>>2&3],
			Frequency: []string{"", "Hz", "kHz", "GHz"}[units>>4&3],
		}
		p, err := profile.Read(bytes.NewReader(input), "p.csv", profile.Options{Units: u, SkipBadRows: skip, MaxBytes: 1 << 20})
		if err != nil {
			var refused *profile.Error
			if !errors.As(err, &refused) || len(refused.Problems) == 0 || len(refused.Problems) > 10 {
				t.Fatalf("%#v", err)
			}
			if text := err.Error(); len(text) > 12_000 || !utf8.ValidString(text) {
				t.Fatalf("a message of %d bytes: %q", len(text), text)
			}
			return
		}
		if lines := p.Report.Lines(); len(lines) > 60 || len(strings.Join(lines, "")) > 100_000 {
			t.Fatalf("a report of %d lines", len(lines))
		}
		checkOptions(t, p)
		if p.HasRepeats() {
			q := p.Resample(rand.New(rand.NewPCG(1, uint64(units))))
			if q.Stages() != p.Stages() || !reflect.DeepEqual(q.Instructions(), p.Instructions()) {
				t.Fatal("a sample of another shape")
			}
		}
		if skip {
			return // the medians are others without the rows that were skipped
		}
		var b bytes.Buffer
		if err := p.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		given := profile.Options{Units: profile.Units{Time: "s", Energy: "J"}}
		q, err := profile.Read(&b, "q.csv", given)
		if err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
		sameProfile(t, p, q)
	})
}

// checkOptions checks that options ascend and can be made into curves.
func checkOptions(t failer, p *profile.Profile) {
	t.Helper()
	for stage := range p.Stages() {
		for _, instruction := range p.Instructions() {
			options, err := p.Options(stage, instruction)
			if err != nil || len(options) == 0 {
				t.Fatalf("stage %d, %s: %v", stage, instruction, err)
			}
			for i, o := range options {
				if o.Time <= 0 || o.Energy <= 0 || i > 0 && options[i-1].Knobs.ClockMHz >= o.Knobs.ClockMHz {
					t.Fatalf("stage %d, %s: %v", stage, instruction, options)
				}
			}
			for _, blocking := range []unit.Power{0, 83_640_000, 1000 * unit.Watt} {
				if _, err := dag.NewCurve(options, blocking); err != nil {
					t.Fatalf("stage %d, %s: %v", stage, instruction, err)
				}
			}
		}
	}
}

// sameProfile checks that two profiles give the same, to the last digit.
func sameProfile(t failer, p, q *profile.Profile) {
	t.Helper()
	if p.Stages() != q.Stages() || p.GPUsPerStage != q.GPUsPerStage || !reflect.DeepEqual(p.Instructions(), q.Instructions()) ||
		p.Report.Repeats != q.Report.Repeats || p.Report.Points != q.Report.Points || !reflect.DeepEqual(p.Report.Ops, q.Report.Ops) {
		t.Fatalf("reports %+v and %+v", p.Report, q.Report)
	}
	for stage := range p.Stages() {
		for _, instruction := range p.Instructions() {
			a, _ := p.Options(stage, instruction)
			b, _ := q.Options(stage, instruction)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("stage %d, %s: %v and %v", stage, instruction, a, b)
			}
		}
	}
	// The rows are the same too: samples drawn with the same numbers agree.
	a, b := p.Resample(rand.New(rand.NewPCG(3, 4))), q.Resample(rand.New(rand.NewPCG(3, 4)))
	for stage := range p.Stages() {
		for _, instruction := range p.Instructions() {
			x, _ := a.Options(stage, instruction)
			y, _ := b.Options(stage, instruction)
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("samples of stage %d, %s: %v and %v", stage, instruction, x, y)
			}
		}
	}
}

// failer is what a *testing.T and a *rapid.T have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
