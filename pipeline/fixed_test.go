package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/unit"
)

func TestWithFixed(t *testing.T) {
	o := build(t, "1f1b", Size{Ranks: 2, Microbatches: 2})
	for _, test := range []struct {
		fixed Fixed
		want  string
	}{
		{Fixed{}, "0F0 0F1 0B0 0B1|1F0 1B0 1F1 1B1"},
		{Fixed{Load: true}, "0LOAD0 0F0 0LOAD1 0F1 0B0 0B1|1F0 1B0 1F1 1B1"},
		{Fixed{ReduceGrad: true}, "0F0 0F1 0B0 0B1 0REDUCE_GRAD|1F0 1B0 1F1 1B1 1REDUCE_GRAD"},
		{Fixed{Optimizer: true}, "0F0 0F1 0B0 0B1 0OPTIMIZER|1F0 1B0 1F1 1B1 1OPTIMIZER"},
	} {
		got := o.WithFixed(test.fixed)
		var lines []string
		for _, r := range got.ToActions() {
			lines = append(lines, strings.Join(r, " "))
		}
		if text := strings.Join(lines, "|"); text != test.want {
			t.Errorf("%+v: got %s, want %s", test.fixed, text, test.want)
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
	if o.Ops() != 8 {
		t.Errorf("the order itself has changed: %v", o.Ranks)
	}
	// Each copy of a stage has its own gradients; a forward-only order has none.
	all := Fixed{Load: true, ReduceGrad: true, Optimizer: true}
	dual := build(t, "dualpipe", Size{Ranks: 4, Microbatches: 8}).WithFixed(all)
	count := map[Kind]int{}
	for _, a := range dual.All() {
		count[a.Kind]++
	}
	if count[Load] != 8 || count[ReduceGrad] != 8 || count[Optimizer] != 8 {
		t.Errorf("dualpipe: %v", count)
	}
	if n := build(t, "gpipe-forward", Size{Ranks: 4, Microbatches: 8}).WithFixed(all).Ops(); n != 4*8+8 {
		t.Errorf("gpipe-forward has %d ops", n)
	}
}

func TestTransfers(t *testing.T) {
	g, transfers, err := build(t, "1f1b", Size{Ranks: 2, Microbatches: 2}).GraphWithTransfers()
	if err != nil {
		t.Fatal(err)
	}
	// Ops 0 … 3 are 0F0 0F1 0B0 0B1, 4 … 7 are 1F0 1B0 1F1 1B1.
	if got, want := fmt.Sprint(transfers), "[{0 4 0SEND_F0} {1 6 0SEND_F1} {5 2 1SEND_B0} {7 3 1SEND_B1}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := "[{0 1} {0 2} {0 8} {1 2} {1 3} {1 9} {2 3} {4 5} {5 6} {5 10} {6 7} {7 11} {8 4} {9 6} {10 2} {11 3}]"
	if got := fmt.Sprint(g.Arcs[:g.Dependencies]); got != want {
		t.Errorf("arcs %s\nwant %s", got, want)
	}
	// 3·(M+P−1) units of compute and twice P−1 transfers in a row.
	for p := 1; p <= 4; p++ {
		o := build(t, "gpipe", Size{Ranks: p, Microbatches: 5})
		g, transfers, err := o.GraphWithTransfers()
		if err != nil || len(transfers) != 2*5*(p-1) {
			t.Fatalf("%d transfers, %v", len(transfers), err)
		}
		span := g.Starts(make([]unit.Time, g.Ops), func(op int32) unit.Time {
			if int(op) >= o.Ops() {
				return 10
			}
			_, a := o.Op(op)
			return unit.Time(100 * drawn(a.Kind))
		})
		if want := unit.Time(300*(5+p-1) + 2*10*(p-1)); span != want {
			t.Errorf("%d ranks: span %d, want %d", p, span, want)
		}
	}
	// Both parts of a pair send.
	for _, s := range Schedules() {
		o := build(t, s.Name, s.Example)
		_, transfers, err := o.GraphWithTransfers()
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		sent := map[Part]bool{}
		for _, x := range transfers {
			if x.Part.Kind != SendForward && x.Part.Kind != SendBackward || sent[x.Part] {
				t.Errorf("%s: %+v", s.Name, x)
			}
			sent[x.Part] = true
		}
	}
}

func TestPeakWithCheckpoints(t *testing.T) {
	for _, test := range []struct {
		text string
		want Peak
	}{
		{"0F0 0R0 0B0", Peak{1, 1}},
		{"0F0 0R0 0F1 0B0 0RB1", Peak{2, 1}}, // the second forward needs its own while it runs
		{"0F0 0F1 0R0 0R1 0B0 0B1", Peak{2, 2}},
		{"0F0 0F1 0RB0 0I1 0W1", Peak{2, 1}},
		{"0F0 0F1 0I0 0I1 0W0 0W1", Peak{2, 0}},
	} {
		o, err := parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Peaks()[0]; got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.text, got, test.want)
		}
	}
}
