package pipeline

import "github.com/perseus-energy/perseus/dag"

// Fixed says which fixed-time actions [Order.WithFixed] adds. They run one after
// another with the compute of their rank; what a framework hides behind compute
// is better left out.
type Fixed struct {
	// Load adds a LOAD right before each forward of the first stage.
	Load bool
	// ReduceGrad adds a REDUCE_GRAD right after the last B or W of each stage of a
	// rank.
	ReduceGrad bool
	// Optimizer adds an OPTIMIZER at a rank's end for each of its stages that has a
	// backward, by ascending stage.
	Optimizer bool
}

// WithFixed returns a copy of the order with the fixed-time actions that f names
// added. O(ops + stages·ranks).
func (o *Order) WithFixed(f Fixed) *Order {
	c := *o
	c.Ranks = make([][]Action, len(o.Ranks))
	left := make([]int, o.Stages) // backwards to come on this rank
	for r, actions := range o.Ranks {
		clear(left)
		each := func(a Action, do func(Part)) {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if p.Kind.fullBackward() || p.Kind == WeightGrad {
					do(p)
				}
			}
		}
		for _, a := range actions {
			each(a, func(p Part) { left[p.Stage]++ })
		}
		var trained []Action
		for s, n := range left {
			if n > 0 && f.Optimizer {
				trained = append(trained, Action{Kind: Optimizer, Stage: int32(s)})
			}
		}
		out := make([]Action, 0, len(actions)+len(trained))
		for _, a := range actions {
			if f.Load && a.Stage == 0 && (a.Kind == Forward || a.Kind == Overlap) {
				out = append(out, Action{Kind: Load, Microbatch: a.Microbatch})
			}
			out = append(out, a)
			each(a, func(p Part) {
				if left[p.Stage]--; left[p.Stage] == 0 && f.ReduceGrad {
					out = append(out, Action{Kind: ReduceGrad, Stage: p.Stage})
				}
			})
		}
		c.Ranks[r] = append(out, trained...)
	}
	return &c
}

// Transfer is an op that carries a value from one rank to another. It occupies no
// rank, so its effective energy is 0 and no rank waits for it but through what
// depends on it.
type Transfer struct {
	// From makes the value, To needs it.
	From, To int32
	// Part is SEND_F or SEND_B with the stage and microbatch of the sender.
	Part Part
}

// GraphWithTransfers returns the graph of Graph with an op on each dependency
// between ranks: the arc From → To becomes From → transfer → To. The transfers are
// numbered from Ops() on, by ascending From, then To. It fails as Graph does.
// O(ops·log ops).
func (o *Order) GraphWithTransfers() (*dag.Graph, []Transfer, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	x, err := newIndex(o)
	if err != nil {
		return nil, nil, err
	}
	id := int32(o.Ops())
	rankOf := make([]int32, 0, id)
	for rank := range o.All() {
		rankOf = append(rankOf, int32(rank))
	}
	var transfers []Transfer
	var arcs []dag.Arc
	for _, arc := range x.arcs(o) {
		from, to := rankOf[arc.From], rankOf[arc.To]
		if from == to {
			arcs = append(arcs, arc)
			continue
		}
		via := id + int32(len(transfers))
		sender := o.Ranks[from][arc.From-x.offset[from]]
		transfers = append(transfers, Transfer{arc.From, arc.To, x.sent(sender, arc.To)})
		arcs = append(arcs, dag.Arc{From: arc.From, To: via}, dag.Arc{From: via, To: arc.To})
	}
	g, err := dag.NewGraph(int(id)+len(transfers), arcs)
	return g, transfers, err
}

// sent returns what action a sends to the op to.
func (x *index) sent(a Action, to int32) Part {
	parts, n := a.Parts()
	var needs [4]int32
	for _, p := range parts[:n] {
		for _, need := range needs[:x.successors(p, needs[:])] {
			if need != to {
				continue
			}
			if p.Kind == Forward {
				return Part{SendForward, p.Stage, p.Microbatch}
			}
			return Part{SendBackward, p.Stage, p.Microbatch}
		}
	}
	return Part{}
}
