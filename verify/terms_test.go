package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/parallel"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

// TestGroup has the size of groups agree with package parallel's, and both refuse
// the same.
func TestGroup(t *testing.T) {
	good := 0
	rapid.Check(t, func(t *rapid.T) {
		degree := rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3, 4})
		d := parallel.Degrees{
			TP: degree.Draw(t, "tp"), CP: degree.Draw(t, "cp"), EP: degree.Draw(t, "ep"),
			ETP: degree.Draw(t, "etp"), DP: degree.Draw(t, "dp"), PP: degree.Draw(t, "pp"),
		}
		order := strings.Join(rapid.Permutation([]string{"tp", "cp", "ep", "dp", "pp"}).Draw(t, "order"), "-")
		got, err := group(&frontierfile.Parallel{TP: d.TP, CP: d.CP, EP: d.EP, ETP: d.ETP, DP: d.DP, PP: d.PP, RankOrder: order})
		g, refused := parallel.New(d, order, 0)
		if (err == nil) != (refused == nil) {
			t.Fatalf("%+v %s: %v, package parallel says %v", d, order, err, refused)
		}
		if err != nil {
			return
		}
		good++
		if got != g.GPUsPerRank() {
			t.Fatalf("%+v %s: a group of %d, package parallel has %d", d, order, got, g.GPUsPerRank())
		}
	})
	if good == 0 {
		t.Error("no layout was possible")
	}
	for _, p := range []frontierfile.Parallel{
		{TP: 0, CP: 1, EP: 1, ETP: 1, DP: 1, PP: 1, RankOrder: "tp-cp-ep-dp-pp"},
		{TP: 1 << 20, CP: 1 << 20, EP: 1 << 20, ETP: 1 << 20, DP: 1 << 20, PP: 1 << 20, RankOrder: "tp-cp-ep-dp-pp"},
		{TP: 1, CP: 1, EP: 1 << 20, ETP: 1 << 20, DP: 1, PP: 1 << 20, RankOrder: "tp-cp-ep-dp-pp"},
		{TP: 1, CP: 1, EP: 1, ETP: 1, DP: 1, PP: 1, RankOrder: "tp-tp-ep-dp-pp"},
	} {
		if n, err := group(&p); err == nil {
			t.Errorf("%+v: %d", p, n)
		}
	}
}

func TestDerived(t *testing.T) {
	at := func(clock int32, time unit.Time, energy unit.Energy) dag.Option {
		return dag.Option{Knobs: dag.Knobs{ClockMHz: clock}, Time: time, Energy: energy}
	}
	m := &measurements{options: map[source][]dag.Option{
		{0, "forward"}:  {at(1000, 5, 9), at(1200, 3, 10)},
		{0, "backward"}: {at(1200, 7, 21), at(1400, 5, 30)},
		{1, "backward"}: {at(1200, 8, 20)},
		{0, "large"}:    {at(1200, unit.MaxOpTime, unit.MaxOpEnergy)},
	}}
	for _, tt := range []struct {
		rules  string
		key    frontierfile.Key
		want   []dag.Option
		refuse string
	}{
		{"recompute=forward", frontierfile.Key{Instruction: "recompute"}, m.options[source{0, "forward"}], ""},
		{"recompute-backward=forward+backward", frontierfile.Key{Instruction: "recompute-backward"}, []dag.Option{at(1200, 10, 31)}, ""},
		{"overlap=forward+backward*0.5", frontierfile.Key{Instruction: "overlap", SecondStage: 1}, []dag.Option{at(1200, 7, 20)}, ""},
		{"x=backward*0.1", frontierfile.Key{Instruction: "x"}, []dag.Option{at(1200, 1, 2), at(1400, 1, 3)}, ""},
		{"x@0=backward*0", frontierfile.Key{Instruction: "x"}, []dag.Option{{}}, ""},
		{"backward@0=forward", frontierfile.Key{Instruction: "backward"}, m.options[source{0, "forward"}], ""},
		{"backward@1=forward", frontierfile.Key{Instruction: "backward"}, m.options[source{0, "backward"}], ""},
		{"backward=forward", frontierfile.Key{Instruction: "backward"}, nil, "has it measured"},
		{"x=forward+absent", frontierfile.Key{Instruction: "x"}, nil, "nothing is left with absent"},
		{"x=forward*0.0000000001", frontierfile.Key{Instruction: "x"}, nil, "is no factor"},
		{"x=forward*-1", frontierfile.Key{Instruction: "x"}, nil, "is no factor"},
		{"x=" + strings.Repeat("large+", 20) + "large", frontierfile.Key{Instruction: "x"}, nil, "out of range"},
		{"y=forward", frontierfile.Key{Instruction: "x"}, nil, "no rows of stage 0, x"},
	} {
		h := &frontierfile.Header{}
		h.Derived = []string{tt.rules}
		tt.key.Factors = frontierfile.Factors{Time: frontierfile.One, Energy: frontierfile.One}
		got, err := optionsOf(h, tt.key, m)
		if tt.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refuse) {
				t.Errorf("%.60s: %v, %v", tt.rules, got, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.rules, got, err, tt.want)
		}
	}
}
