package pipeline

import (
	"strings"
	"testing"
)

// The pictures are small ones of the papers' figures (GPipe figure 2,
// PipeDream-Flush figure 4, Zero Bubble figure 3, DualPipe's README), each checked
// by hand against the dependencies.
func TestPictures(t *testing.T) {
	for _, test := range []struct {
		schedule string
		size     Size
		want     string
	}{
		{"gpipe", Size{Ranks: 2, Microbatches: 3}, `
0 |F0 F1 F2          B0--- B1--- B2---
1 |   F0 F1 F2 B0--- B1--- B2---
F forward 1, B backward 2
span 12, idle 25.0 %
`},
		{"1f1b", Size{Ranks: 3, Microbatches: 4}, `
0 |F0 F1 F2             B0--- F3 B1---    B2---    B3---
1 |   F0 F1       B0--- F2 B1--- F3 B2---    B3---
2 |      F0 B0--- F1 B1--- F2 B2--- F3 B3---
F forward 1, B backward 2
span 18, idle 33.3 %
`},
		{"zb-h1", Size{Ranks: 3, Microbatches: 4}, `
0 |F0 F1 F2       I0 W0 F3 I1 W1 I2 W2 I3 W3
1 |   F0 F1    I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
2 |      F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
F forward 1, I input-gradient 1, W weight-gradient 1
span 14, idle 14.2 %
`},
		{"looped-bfs", Size{Ranks: 2, Chunks: 2, Microbatches: 2}, `
0 |F0 F1 f0 f1          b1--- b0--- B1--- B0---
1 |   F0 F1 f0 f1 b1--- b0--- B1--- B0---
F forward 1, B backward 2, small: second chunk
span 15, idle 20.0 %
`},
		{"looped-bfs", Size{Ranks: 1, Chunks: 3, Microbatches: 1}, `
0 |0F0 1F0 2F0 2B0---- 1B0---- 0B0----
F forward 1, B backward 2, first number: stage
span 9, idle 0.0 %
`},
		{"dualpipe", Size{Ranks: 2, Microbatches: 4}, `
0 |F0 f2 F1 b2--- f3B0---- b3--- I1 W1
1 |f2 F0 f3 B0--- F1b2---- B1--- i3 w3
F forward 1, B backward 2, I input-gradient 1, W weight-gradient 1, FB forward and backward at once 3, small: from the last rank
span 12, idle 0.0 %
`},
		{"1f1b-early-recompute", Size{Ranks: 2, Microbatches: 2}, `
0 |F0 F1          RB0----- R1 B1---
1 |   F0 RB0----- F1 RB1-----
F forward 1, B backward 2, R recompute 1, RB recompute-backward 3
span 11, idle 27.2 %
`},
	} {
		got, err := build(t, test.schedule, test.size).Picture()
		if err != nil || "\n"+got != test.want {
			t.Errorf("%s: %v\n%s\nwant%s", test.schedule, err, got, test.want)
		}
	}
}

func TestPictureOfFixedAndCustom(t *testing.T) {
	o, err := parse("0F0 3F0 3B0 0B0\n1F0 2F0 2B0 1B0")
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.WithFixed(Fixed{true, true, true}).Picture()
	want := `0 |L0 F0       f0 b0--- g-             B0--- G- O- o-
1 |      F0 f0          b0--- g- B0--- G- O- o-
F forward 1, B backward 2, L load 1, G reduce-gradient 1, O optimizer 1, small: second chunk
span 17, idle 38.2 %
`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestPictureErrors(t *testing.T) {
	if _, err := build(t, "1f1b", Size{Ranks: 2, Microbatches: 10000}).Picture(); err == nil ||
		!strings.Contains(err.Error(), "1f1b: a picture of 180018 columns and 2 lines is too large; at most 4000 and 1000") {
		t.Errorf("got %v", err)
	}
	if _, err := (&Order{}).Picture(); err == nil {
		t.Error("no error")
	}
}

func TestExamplesFitATerminal(t *testing.T) {
	for _, s := range Schedules() {
		p, err := build(t, s.Name, s.Example).Picture()
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(p) {
			if len(line) > 140 {
				t.Errorf("%s: %d columns", s.Name, len(line))
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
				t.Errorf("%s: not ASCII: %s", s.Name, line)
			}
		}
	}
}
