package pipeline

import (
	"fmt"
	"testing"
)

func TestGraphOfASmallOrder(t *testing.T) {
	o, err := Build("1f1b", Size{Ranks: 2, Microbatches: 2})
	if err != nil {
		t.Fatal(err)
	}
	g, err := o.Graph()
	if err != nil {
		t.Fatal(err)
	}
	// rank 0: 0F0 0F1 0B0 0B1 are ops 0 … 3, rank 1: 1F0 1B0 1F1 1B1 ops 4 … 7.
	want := "[{0 1} {0 2} {0 4} {1 2} {1 3} {1 6} {2 3} {4 5} {5 2} {5 6} {6 7} {7 3}]"
	if got := fmt.Sprint(g.Arcs[:g.Dependencies]); got != want {
		t.Errorf("arcs\n got %v\nwant %v", got, want)
	}
	if rank, a := o.Op(5); rank != 1 || a.String() != "1B0" {
		t.Errorf("op 5 is %v on rank %d", a, rank)
	}
}

// TestLargeGraph keeps the size that the benchmark measures working.
func TestLargeGraph(t *testing.T) {
	g, err := build(t, "interleaved-1f1b", large).Graph()
	if err != nil || g.Ops != 524288 {
		t.Fatalf("%d ops, %v", g.Ops, err)
	}
}
