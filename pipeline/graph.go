package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/dag"
)

// Graph returns the graph of the order's ops by the rules of the package
// comment. It fails, mostly with an *ActionError, where an action is unknown,
// double or missing or actions wait for each other. O(ops).
func (o *Order) Graph() (*dag.Graph, error) {
	x, err := o.checked()
	if err != nil {
		return nil, err
	}
	g, err := dag.NewGraph(o.Ops(), x.arcs(o))
	var cycle *dag.CycleError
	if errors.As(err, &cycle) {
		return nil, o.deadlock(cycle.Ops)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Check returns an error where Graph would fail. O(ops).
func (o *Order) Check() error {
	_, err := o.Graph()
	return err
}

func (o *Order) checked() (*index, error) {
	x, err := newIndex(o)
	if err != nil {
		return nil, err
	}
	if err := x.complete(o); err != nil {
		return nil, err
	}
	return x, nil
}

// arcs returns the dependencies, sorted by From, then To.
func (x *index) arcs(o *Order) []dag.Arc {
	arcs := make([]dag.Arc, 0, 3*o.Ops())
	var successors [8]int32
	var op int32
	for _, actions := range o.Ranks {
		for i, a := range actions {
			n := 0
			if i+1 < len(actions) {
				successors[n] = op + 1
				n++
			}
			parts, count := a.Parts()
			for _, p := range parts[:count] {
				n += x.successors(p, successors[n:])
			}
			slices.Sort(successors[:n])
			for j, to := range successors[:n] {
				if j == 0 || to != successors[j-1] {
					arcs = append(arcs, dag.Arc{From: op, To: to})
				}
			}
			op++
		}
	}
	return arcs
}

// successors writes into to the ops that need p's result, at most 3, and returns
// how many.
func (x *index) successors(p Part, to []int32) (n int) {
	put := func(table []int32, cell int32) {
		if next := op(table, cell); next != none {
			to[n] = next
			n++
		}
	}
	cell := x.cell(p.Stage, p.Microbatch)
	switch p.Kind {
	case Forward:
		if next := cell + x.microbatches; int(next) < len(x.forward) {
			put(x.forward, next)
		}
		put(x.recompute, cell)
		put(x.backward, cell)
	case Recompute:
		put(x.backward, cell)
	case Backward, RecomputeBackward, InputGrad:
		if p.Stage > 0 {
			put(x.backward, cell-x.microbatches)
		}
		if p.Kind == InputGrad {
			put(x.weight, cell)
		}
	}
	return n
}

// deadlock returns the error for ops that wait for each other, naming the first
// of them in op order.
func (o *Order) deadlock(cycle []int32) error {
	least := slices.Index(cycle, slices.Min(cycle))
	cycle = slices.Concat(cycle[least:], cycle[:least]) // each waits for the one before it
	offset := int32(0)
	rank, _ := o.Op(cycle[0])
	for r := range rank {
		offset += int32(len(o.Ranks[r]))
	}
	var chain strings.Builder
	const shown = 6
	for n := range min(len(cycle), shown) {
		rank, a := o.Op(cycle[(len(cycle)-n)%len(cycle)])
		if n > 0 {
			chain.WriteString(", which waits for ")
		}
		fmt.Fprintf(&chain, "%v on rank %d", a, rank)
	}
	if len(cycle) > shown {
		fmt.Fprintf(&chain, ", and so on over %d actions", len(cycle))
	}
	if len(cycle) == 1 {
		return &ActionError{rank, int(cycle[0] - offset), fmt.Errorf("%v: one part depends on the other", &chain)}
	}
	_, first := o.Op(cycle[0])
	return &ActionError{rank, int(cycle[0] - offset), fmt.Errorf("deadlock: %v, which waits for %v again", &chain, first)}
}
