package pipeline

import (
	"errors"
	"strings"
	"testing"
)

// parse reads an order from lines of actions with spaces between them.
func parse(text string) (*Order, error) {
	var ranks [][]string
	for line := range strings.Lines(text) {
		ranks = append(ranks, strings.Fields(line))
	}
	return FromActions(ranks)
}

func TestFromActions(t *testing.T) {
	o, err := parse("0F0 3F0 3B0 0B0\n1F0 2F0 2I0 1B0 2W0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Schedule != "custom" || o.Placement != Custom || o.Stages != 4 || o.Size != (Size{Ranks: 2, Chunks: 2, Microbatches: 1}) {
		t.Errorf("got %+v", o)
	}
	for _, s := range Schedules() {
		o := build(t, s.Name, s.Example)
		again, err := FromActions(o.ToActions())
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if !equal(o.ToActions(), again.ToActions()) || again.Stages != o.Stages || again.Size.Microbatches != o.Size.Microbatches || again.Size.Chunks != o.Size.Chunks {
			t.Errorf("%s comes back as %+v", s.Name, again.Size)
		}
		g, _ := o.Graph()
		h, _ := again.Graph()
		if len(g.Arcs) != len(h.Arcs) {
			t.Errorf("%s: other graph", s.Name)
		}
	}
}

func TestOrderErrors(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		rank, position   int // -1: no action to blame
	}{
		{"none", "", "the order has no rank", -1, 0},
		{"idle rank", "0F0 0B0\n\n", "rank 1 has no action", -1, 0},
		{"unknown", "0F0 0X0", `unknown kind "X"`, 0, 1},
		{"double", "0F0 0F1 0F0 0B0 0B1", "0F0: 0F0 on rank 0 does the same (action 1 there)", 0, 2},
		{"double in a pair", "0F0 1F0 (0F1;1B0) 1B0 0B0 1F1 1B1 0B1", "1B0: (0F1;1B0) on rank 0 does the same (action 3 there)", 0, 3},
		{"B and I", "0F0 0I0 0B0 0W0", "0B0: 0I0 on rank 0 does the same", 0, 2},
		{"B and RB", "0F0 0RB0 0B0", "0B0: 0RB0 on rank 0 does the same", 0, 2},
		{"old letters", "0F0 0B0 0W0", "0W0: 0B0 gives the gradient of weights already; in PyTorch's files of before November 2024 B is the input gradient: write I", 0, 2},
		{"no forward", "0F0 0B0 1B0", "1F0 is missing", -1, 0},
		{"no backward", "0F0 0F1 0B0", "0B1 is missing: each stage and microbatch needs a backward, B, or I and W", -1, 0},
		{"no W", "0F0 0I0", "0W0 is missing: 0I0 leaves the gradient of weights to it", -1, 0},
		{"no I", "0F0 0W0", "0I0 is missing: there is 0W0", -1, 0},
		{"R alone", "0F0 0R0", "0R0: no backward needs it", 0, 1},
		{"R and RB", "0F0 0R0 0RB0", "0R0: 0RB0 recomputes by itself", 0, 1},
		{"other rank", "0F0 1B0\n1F0 0B0", "1F0: stage 1 has microbatch 0 on rank 0", 1, 0},
		{"backward first", "0B0 0F0", "deadlock: 0B0 on rank 0, which waits for 0F0 on rank 0, which waits for 0B0 again", 0, 0},
		{"W before I", "0F0 0W0 0I0", "deadlock: 0W0 on rank 0, which waits for 0I0", 0, 1},
		{"across ranks", "0F0 0B0 0F1 0B1\n1F0 1F1 1B1 1B0", "deadlock: 0B0 on rank 0, which waits for 1B0 on rank 1, which waits for 1B1 on rank 1, which waits for 1F1 on rank 1, which waits for 0F1 on rank 0, which waits for 0B0 again", 0, 1},
		{"a pair of itself", "(0F0;0B0)", "(0F0;0B0) on rank 0: one part depends on the other", 0, 0},
		{"a huge stage", "0F0 0B0 99999999F0", "99999999F0: 100000000 stages × 1 microbatches would need a forward each; the order has 3 actions", 0, 2},
		{"a huge microbatch", "0F0 0B0 0F99999999", "0F99999999: 1 stages × 100000000 microbatches would need", 0, 2},
		{"both huge", "99999999F99999999", "99999999F99999999: 100000000 stages × 100000000 microbatches would need", 0, 0},
		{"communication", "0F0 0SEND_F0 0B0", "0SEND_F0: an order holds compute and fixed-time actions only", 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := parse(test.text)
			if o != nil {
				t.Errorf("an order comes with the error: %+v", o)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v\nwant …%s…", err, test.want)
			}
			var at *ActionError
			switch blames := errors.As(err, &at); {
			case blames != (test.rank >= 0):
				t.Errorf("blames an action: %v", blames)
			case blames && (at.Rank != test.rank || at.Position != test.position):
				t.Errorf("blames rank %d, position %d", at.Rank, at.Position)
			}
		})
	}
}

// TestOrdersMadeByHand gives Check what no parser can read.
func TestOrdersMadeByHand(t *testing.T) {
	f, b := Action{Kind: Forward}, Action{Kind: Backward}
	for _, test := range []struct {
		order Order
		want  string
	}{
		{Order{}, "no rank"},
		{Order{Ranks: [][]Action{{f, b}}}, "a stage and a microbatch at least"},
		{Order{Stages: 1, Size: Size{Microbatches: 1}, Ranks: [][]Action{{f, b, {}}}}, "0?0: an order holds"},
		{Order{Stages: 1, Size: Size{Microbatches: 1}, Ranks: [][]Action{{f, {Kind: Overlap}}}}, "does the same"},
		{Order{Stages: 1, Size: Size{Microbatches: 1}, Ranks: [][]Action{{f, {Kind: Backward, Stage: -1}}}}, "there are stages 0 … 0"},
		{Order{Stages: 1, Size: Size{Microbatches: 1}, Ranks: [][]Action{{f, {Kind: Backward, Microbatch: 1}}}}, "there are microbatches 0 … 0"},
		{Order{Stages: 1 << 40, Size: Size{Microbatches: 1 << 40}, Ranks: [][]Action{{f, b}}}, "need a forward each"},
	} {
		if err := test.order.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want …%s…", err, test.want)
		}
	}
	good := Order{Stages: 1, Size: Size{Microbatches: 1}, Ranks: [][]Action{{f, b}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
