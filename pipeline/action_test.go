package pipeline

import (
	"strings"
	"testing"
)

func TestParseAction(t *testing.T) {
	for _, test := range []struct {
		text string
		want Action
	}{
		{"2F0", Action{Kind: Forward, Stage: 2}},
		{"10B31", Action{Kind: Backward, Stage: 10, Microbatch: 31}},
		{"0I1", Action{Kind: InputGrad, Microbatch: 1}},
		{"7W99999999", Action{Kind: WeightGrad, Stage: 7, Microbatch: 99999999}},
		{"0R1", Action{Kind: Recompute, Microbatch: 1}},
		{"0RB1", Action{Kind: RecomputeBackward, Microbatch: 1}},
		{"(2F5;5B1)", Overlapped(2, 5, 5, 1)},
		{"(2F5;5B1)OVERLAP_F_B", Overlapped(2, 5, 5, 1)},
		{"0LOAD3", Action{Kind: Load, Microbatch: 3}},
		{"3REDUCE_GRAD", Action{Kind: ReduceGrad, Stage: 3}},
		{"3OPTIMIZER", Action{Kind: Optimizer, Stage: 3}},
		{"0SEND_F3", Action{Kind: SendForward, Microbatch: 3}},
		{"1RECV_B3", Action{Kind: RecvBackward, Stage: 1, Microbatch: 3}},
		{"1UNSHARD", Action{Kind: Unshard, Stage: 1}},
	} {
		got, err := ParseAction(test.text)
		if err != nil || got != test.want {
			t.Errorf("%s: got %v, %v", test.text, got, err)
		}
		if text := got.String(); text != strings.TrimSuffix(test.text, "OVERLAP_F_B") {
			t.Errorf("%s is written %s", test.text, text)
		}
	}
}

func TestParseActionErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "whole number is expected"},
		{"x" + strings.Repeat("ä", 30), `action "x` + strings.Repeat("ä", 19) + `…": `},
		{"F0", "stage: a whole number is expected (an action is written <stage><kind><microbatch>, as 2F0)"},
		{"2", "the kind (F, B, I, W) is missing"},
		{"2F", "microbatch: a whole number is expected"},
		{"-2F0", "stage: a whole number is expected"},
		{"02F0", "stage: a number has no leading zero"},
		{"2F00", "microbatch: a number has no leading zero"},
		{"2F100000000", "microbatch: a number is at most 99999999"},
		{"100000000F1", "stage: a number is at most 99999999"},
		{"2BW0", `"2BW0": BW is PyTorch's notation of before November 2024`},
		{"2BW0", "write 2B0 here, and I for each of the file's B"},
		{"2X0", `unknown kind "X"`},
		{"2f0", `unknown kind "f"`},
		{"2F0 ", `unknown kind "F0 "`},
		{"2F0x", `unknown kind "F0x"`},
		{"2F0,1B0", `unknown kind "F0,1B"`},
		{"2OVERLAP_F_B0", `unknown kind "OVERLAP_F_B"`},
		{"2?0", `unknown kind "?"`},
		{"2UNSHARD0", "UNSHARD has no microbatch; write 2UNSHARD"},
		{"(2F5", "an overlapped slot is written (2F5;5B1)"},
		{"(2F5)", "an overlapped slot is written (2F5;5B1)"},
		{"(2F5;5B1)OVERLAP", "an overlapped slot is written (2F5;5B1)"},
		{"(2F5;5X1)", `"5X1": unknown kind "X"`},
		{"(X;5B1)", `"X": stage: a whole number`},
		{"(5B1;2F5)", "an overlapped slot is a forward and then a full backward"},
		{"(2F5;5B1;3F4)", `unknown kind "B1;3F"`},
		{"((2F5;5B1);5B1)", "stage: a whole number"},
		{strings.Repeat("9", 1000), "…"},
	} {
		if _, err := ParseAction(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.30q: got %v, want …%s…", test.text, err, test.want)
		}
	}
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := range kinds + 3 {
		name := k.Instruction() + " " + k.String()
		if k > 0 && k < kinds && seen[name] {
			t.Errorf("kind %d is named %s too", k, name)
		}
		seen[name] = true
	}
	if k := kinds + 5; k.String() != "?" || k.Instruction() != "unknown" || k.Fixed() {
		t.Errorf("an unknown kind is %v", k)
	}
}
