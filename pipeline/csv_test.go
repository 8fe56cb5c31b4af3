package pipeline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// mergeBackwards joins each I that its W follows at once into a B, as PyTorch's
// pass before lowering does.
func mergeBackwards(ranks [][]Action) [][]Action {
	merged := make([][]Action, len(ranks))
	for r, actions := range ranks {
		for i := 0; i < len(actions); i++ {
			a := actions[i]
			if a.Kind == InputGrad && i+1 < len(actions) && actions[i+1] == (Action{Kind: WeightGrad, Stage: a.Stage, Microbatch: a.Microbatch}) {
				a.Kind = Backward
				i++
			}
			merged[r] = append(merged[r], a)
		}
	}
	return merged
}

// TestSendsAndReceivesEqualPyTorch compares with PyTorch's test artifact
// zb1p_2rank_2stagep_comms.csv (pytorch/pytorch at
// 68401d25cfb70c42460c066d9dc94b3ccf59ab16, in the old letters), of which the test
// holds the SHA-256 only: sha256sum of that file.
func TestSendsAndReceivesEqualPyTorch(t *testing.T) {
	const artifact = "7ea26cdd136986442e160539817de920d00d2980fa395fb762ac154fbade807e"
	o := build(t, "interleaved-zero-bubble", Size{Ranks: 2, Chunks: 2, Microbatches: 8})
	lowered := sendReceive(mergeBackwards(o.Ranks), []int32{0, 1, 0, 1}, 8)
	var text strings.Builder
	if err := writeCSV(&text, lowered, "\n", ""); err != nil {
		t.Fatal(err)
	}
	old := text.String()
	for s := range 4 {
		for m := range 8 {
			old = strings.ReplaceAll(old, fmt.Sprintf("%dB%d", s, m), fmt.Sprintf("%dBW%d", s, m))
			old = strings.ReplaceAll(old, fmt.Sprintf("%dI%d", s, m), fmt.Sprintf("%dB%d", s, m))
		}
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(old))); got != artifact {
		t.Errorf("got %s:\n%s", got, old)
	}
}

func build(t testing.TB, schedule string, size Size) *Order {
	t.Helper()
	o, err := Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestCSVComesBack(t *testing.T) {
	for _, s := range Schedules() {
		o := build(t, s.Name, s.Example)
		for _, form := range []struct {
			name  string
			write func(*strings.Builder) error
		}{
			{"own", func(w *strings.Builder) error { return o.WriteCSV(w) }},
			{"compute-only", func(w *strings.Builder) error { return o.WriteTorchCSV(w, false) }},
			{"lowered", func(w *strings.Builder) error { return o.WriteTorchCSV(w, true) }},
		} {
			var text strings.Builder
			err := form.write(&text)
			if form.name == "lowered" && s.Name == "dualpipe" {
				if err == nil || !strings.Contains(err.Error(), "stage 0 is on rank 0 for microbatch 0 and on rank 3 for microbatch 4") {
					t.Errorf("dualpipe: %v", err)
				}
				continue
			}
			if form.name != "own" && s.Name == "1f1b-early-recompute" {
				if err == nil || !strings.Contains(err.Error(), "0RB0: PyTorch's schedules have no such action") {
					t.Errorf("%s: %v", s.Name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", s.Name, form.name, err)
				continue
			}
			again, err := ReadCSV(strings.NewReader(text.String()), "o.csv")
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", s.Name, form.name, err, &text)
			} else if !equal(o.ToActions(), again.ToActions()) {
				t.Errorf("%s, %s comes back as\n%v", s.Name, form.name, again.ToActions())
			}
		}
	}
}

func TestLowered(t *testing.T) {
	// Written by hand after PyTorch's passes: three stages whole at most, the
	// receive at the moment of the send.
	want := strings.ReplaceAll(`0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD
1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD
`, "\n", "\r\n")
	var text strings.Builder
	if err := build(t, "1f1b", Size{Ranks: 2, Microbatches: 2}).WriteTorchCSV(&text, true); err != nil {
		t.Fatal(err)
	}
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", &text, want)
	}
}

func TestReadCSVRepairs(t *testing.T) {
	want := [][]string{{"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1B0", "1F1", "1B1"}}
	for _, text := range []string{
		"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
		"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1",
		"0F0,0F1,,,0B0,0B1,,,\r\n,1F0,1B0,1F1,1B1\r\n",
		"\uFEFF0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n\r\n\n",
		" 0F0 , 0F1\t,\"0B0\",\" 0B1 \"\n1F0,1B0,1F1,1B1,\n,,\n",
		"0F0,0F1,0B0,0B1,0REDUCE_GRAD\n1F0,1B0,1F1,1B1,1REDUCE_GRAD\n",
		"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n1F0,1B0,1F1,1B1\n",
		"0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
	} {
		o, err := ReadCSV(strings.NewReader(text), "o.csv")
		if err != nil || !equal(o.ToActions(), want) {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
}

func TestReadCSVErrors(t *testing.T) {
	const lowered = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"
	replaced := func(old, new string) string { return strings.Replace(lowered, old, new, 1) }
	for _, test := range []struct {
		name, text, want string
		line, cell       int // 0: no cell to blame
	}{
		{"empty", "", "o.csv: no action in it; a line is a rank", 0, 0},
		{"blank", "\n\n,,\n", "o.csv: no action in it", 0, 0},
		{"header", "rank,action\n0F0,0B0\n", "there is no header, each line is a rank", 1, 1},
		{"semicolons", "0F0;0B0\n", "cells are separated by commas, not semicolons", 1, 1},
		{"unknown action", "0F0,0B0\n1F0,,1X0\n", `o.csv:2: cell 3: action "1X0": unknown kind "X"`, 2, 3},
		{"old letters", "0F0,0BW0\n", "BW is PyTorch's notation of before November 2024", 1, 2},
		{"older letters", "0F0,0B0,0W0\n", "o.csv:1: cell 3: 0W0: 0B0 gives the gradient of weights already", 1, 3},
		{"trailing text", "0F0,0B0 # last\n", `unknown kind "B0 # last"`, 1, 2},
		{"rank without action", "0F0,0B0\n,\n0F1,0B1\n", "o.csv:2: rank 1 has no action", 2, 0},
		{"duplicate", "0F0,,0B0,0F0\n", "o.csv:1: cell 4: 0F0: 0F0 on rank 0 does the same", 1, 4},
		{"deadlock", "0F0,0B0\n,1B0,,1F0\n", "o.csv:2: cell 2: deadlock: 1B0 on rank 1, which waits for 1F0", 2, 2},
		{"incomplete", "0F0,0B0\n1F0\n", "o.csv: 1B0 is missing", 0, 0},
		{"a long cell", strings.Repeat("0", 1000), "a cell of over 128 bytes: cells are separated by commas", 1, 1},
		{"stage beyond", "0F0,0B0,7UNSHARD\n", "7UNSHARD: there are stages 0 … 0", 1, 3},
		{"send beyond", "0F0,0B0,0SEND_F9\n", "0SEND_F9: there are stages 0 … 0 and microbatches 0 … 0", 1, 3},
		{"RECV without SEND", replaced("0SEND_F1,", ""), "o.csv:2: cell 5: 1RECV_F1: its 0SEND_F1 on rank 0 is missing", 2, 5},
		{"SEND without RECV", replaced("0RECV_B1,", ""), "o.csv:1: cell 7: 0B1: 0RECV_B1 is missing before it", 1, 7},
		{"SEND alone", replaced("1RECV_F1,1F1", "1F1"), "1F1: 1RECV_F1 is missing before it", 2, 5},
		{"RECV after its use", replaced("1RECV_F0,1F0", "1F0,1RECV_F0"), "o.csv:2: cell 1: 1F0: 1RECV_F0 is missing before it", 2, 1},
		{"SEND too soon", replaced("0F0,0SEND_F0", "0SEND_F0,0F0"), "0SEND_F0: what it sends is not made before it", 1, 1},
		{"SEND twice", replaced("0SEND_F0", "0SEND_F0,0SEND_F0"), "0SEND_F0: a duplicate", 1, 3},
		{"wrong rank", replaced("0SEND_F0", "1SEND_F0"), "1SEND_F0: stage 1 has microbatch 0 on rank 1", 1, 2},
		{"to nobody", replaced("1F0,", "1F0,1SEND_F0,"), "1SEND_F0: there is no stage 2 to talk to", 2, 3},
		{"from nobody", replaced("0F0,", "0RECV_F0,0F0,"), "0RECV_F0: there is no stage -1 to talk to", 1, 1},
		{"on one rank", "0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n", "0SEND_F0: stages 0 and 1 are on the same rank", 1, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := ReadCSV(strings.NewReader(test.text), "o.csv")
			if o != nil {
				t.Errorf("an order comes with the error: %+v", o)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v\nwant …%s…", err, test.want)
			}
			var at *CSVError
			switch blames := errors.As(err, &at); {
			case blames != (test.line > 0):
				t.Errorf("blames a cell: %v", blames)
			case blames && (at.Line != test.line || at.Cell != test.cell):
				t.Errorf("blames line %d, cell %d", at.Line, at.Cell)
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errors.New("disk on fire") }
func (failing) Write([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestCSVPassesErrorsOfTheDisk(t *testing.T) {
	if _, err := ReadCSV(failing{}, "o.csv"); err == nil || err.Error() != "o.csv: disk on fire" {
		t.Errorf("got %v", err)
	}
	if err := build(t, "1f1b", Size{Ranks: 2, Microbatches: 2}).WriteCSV(failing{}); err == nil {
		t.Error("no error")
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
	f.Add("0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
	f.Add("0F0,1F0,1I0,1W0,0R0,0B0,0REDUCE_GRAD,0OPTIMIZER\n")
	f.Add("\uFEFF0LOAD0,0F0,(0F1;0B0)OVERLAP_F_B,0RB1\r\n")
	f.Add("99999999F99999999,0UNSHARD,2BW0")
	for _, s := range Schedules() {
		var text strings.Builder
		z := Size{Ranks: 2, Chunks: s.Example.Chunks, Microbatches: 4}
		o, err := Build(s.Name, z)
		if err == nil && o.WriteTorchCSV(&text, true) == nil {
			f.Add(text.String())
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ReadCSV(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || !utf8.ValidString(err.Error()) && utf8.ValidString(text) {
				t.Errorf("error %q", err)
			}
			return
		}
		g, err := o.Graph()
		if err != nil {
			t.Fatalf("read, but has no graph: %v", err)
		}
		if g.Ops != o.Ops() {
			t.Fatalf("%d ops, %d in the graph", o.Ops(), g.Ops)
		}
		var again strings.Builder
		if err := o.WriteCSV(&again); err != nil {
			t.Fatal(err)
		}
		same, err := ReadCSV(strings.NewReader(again.String()), "f")
		if err != nil || !equal(same.ToActions(), o.ToActions()) {
			t.Fatalf("comes back as %v, %v", same, err)
		}
		var torch strings.Builder
		if o.WriteTorchCSV(&torch, true) == nil {
			if same, err := ReadCSV(strings.NewReader(torch.String()), "f"); err != nil || !equal(same.ToActions(), o.ToActions()) {
				t.Fatalf("lowered to\n%s\ncomes back as %v, %v", &torch, same, err)
			}
		}
		for r, p := range o.Peaks() {
			if p.Activations < 0 || p.Activations > len(o.Ranks[r])*2 || p.Checkpoints < 0 {
				t.Fatalf("peaks of rank %d: %+v", r, p)
			}
		}
		_, _ = o.Picture()
		if _, _, err := o.WithFixed(Fixed{true, true, true}).GraphWithTransfers(); err != nil {
			t.Fatal(err)
		}
	})
}
