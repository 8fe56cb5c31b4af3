package jobs

import (
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// TestOrder checks how many ranks a schedule gets for a number of stages.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		schedule string
		size     pipeline.Size
		stages   int
		ranks    int
		err      string
	}{
		{"1f1b", pipeline.Size{Microbatches: 4}, 8, 8, ""},
		{"1f1b", pipeline.Size{Ranks: 8, Microbatches: 4}, 8, 8, ""},
		{"1f1b", pipeline.Size{Ranks: 4, Microbatches: 4}, 8, 0, "has 4 stages, but the profile has 8"},
		{"interleaved-1f1b", pipeline.Size{Chunks: 2, Microbatches: 8}, 8, 4, ""},
		{"interleaved-1f1b", pipeline.Size{Chunks: 3, Microbatches: 8}, 8, 0, "do not divide"},
		{"zbv", pipeline.Size{Microbatches: 8}, 8, 4, ""},
		{"dualpipev", pipeline.Size{Microbatches: 8}, 8, 4, ""},
		{"dualpipe", pipeline.Size{Microbatches: 16}, 8, 8, ""},
		{"1f2b", pipeline.Size{Microbatches: 8}, 8, 0, `did you mean "1f1b"?`},
		{"1f1b", pipeline.Size{}, 8, 0, "microbatches"},
	} {
		o, err := Order(test.schedule, test.size, test.stages)
		switch {
		case test.err == "" && (err != nil || len(o.Ranks) != test.ranks || o.Stages != test.stages):
			t.Errorf("%s %+v: got %+v, %v", test.schedule, test.size, o, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s %+v: got %v, want %s", test.schedule, test.size, err, test.err)
		}
	}
}

// TestNew checks the power of waiting ranks.
func TestNew(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 2})
	o, err := Order("1f1b", pipeline.Size{Microbatches: 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		blocking, want []unit.Power
		err            string
	}{
		{[]unit.Power{80 * unit.Watt}, []unit.Power{80 * unit.Watt, 80 * unit.Watt}, ""},
		{[]unit.Power{80 * unit.Watt, 0}, []unit.Power{80 * unit.Watt, 0}, ""},
		{nil, nil, "missing"},
		{make([]unit.Power, 3), nil, "3 blocking powers for 2 ranks"},
		{[]unit.Power{-1}, nil, "expected 0W to"},
		{[]unit.Power{1, unit.MaxPower}, nil, "expected 0W to"},
	} {
		job, err := New(p, o, test.blocking)
		switch {
		case test.err == "" && (err != nil || !slices.Equal(job.BlockingPower, test.want) || job.Profile.SHA256 != p.SHA256):
			t.Errorf("%v: got %v, %v", test.blocking, job.BlockingPower, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%v: got %v, want %s", test.blocking, err, test.err)
		}
	}
	if o, err = Order("1f1b", pipeline.Size{Microbatches: 2}, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := New(p, o, []unit.Power{0}); err == nil {
		t.Error("an order of other stages is taken")
	}
}

func TestExample(t *testing.T) {
	e := Example{}.WithDefaults(true)
	if e.Schedule != "1f1b" || e.Size.Microbatches == 0 || len(e.Blocking) != 1 {
		t.Errorf("got %+v", e)
	}
	if e := (Example{}).WithDefaults(false); e.Schedule != "" || e.Size != (pipeline.Size{}) || len(e.Blocking) != 1 {
		t.Errorf("beside an order: %+v", e)
	}
	given := Example{"gpipe", pipeline.Size{Microbatches: 3}, []unit.Power{unit.Watt}}
	if e := given.WithDefaults(true); e.Schedule != "gpipe" || e.Size != given.Size || e.Blocking[0] != unit.Watt {
		t.Errorf("what was given is replaced: %+v", e)
	}
	if p := ExampleProfile(); p.Stages() != 8 || !p.HasRepeats() {
		t.Errorf("%d stages, repeats: %v", p.Stages(), p.HasRepeats())
	}
}

// TestStagesDoNotFit has the message say what a stage is, and what to do.
func TestStagesDoNotFit(t *testing.T) {
	for _, c := range []struct {
		schedule string
		size     pipeline.Size
		stages   int
		want     string
	}{
		{"interleaved-1f1b", pipeline.Size{Ranks: 4, Chunks: 2, Microbatches: 8}, 4, "interleaved-1f1b on 4 ranks with 2 chunks each has 8 stages, but the profile has 4; " + whatStagesAre +
			": measure 8 stages, each chunk by itself, or give --ranks 2, or take a schedule of one chunk a rank, such as 1f1b"},
		{"interleaved-1f1b", pipeline.Size{Ranks: 4, Chunks: 2, Microbatches: 8}, 12, ", or give --ranks 6, or --chunks 3"},
		{"1f1b", pipeline.Size{Ranks: 2, Microbatches: 8}, 4, "1f1b on 2 ranks with 1 chunk each has 2 stages, but the profile has 4; " + whatStagesAre + ": measure 2 stages, or give --ranks 4"},
		{"interleaved-1f1b", pipeline.Size{Chunks: 3, Microbatches: 8}, 4, "do not divide among ranks of 3 each; " + whatStagesAre},
	} {
		if _, err := Order(c.schedule, c.size, c.stages); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.schedule, err)
		}
	}
}
