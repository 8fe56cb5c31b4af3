package pipeline

import (
	"fmt"
)

// MaxActions bounds the actions of an order, so that a mistyped size is an error
// and not a full memory.
const MaxActions = 1 << 24

// ActionError is a fault of an order, with the first action concerned.
type ActionError struct {
	// Rank and Position, both from 0, say where the action is.
	Rank, Position int
	Err            error
}

func (e *ActionError) Error() string {
	return fmt.Sprintf("rank %d, action %d: %v", e.Rank, e.Position+1, e.Err)
}

func (e *ActionError) Unwrap() error { return e.Err }

// none marks an absent op.
const none int32 = -1

// index finds the ops of a stage and microbatch: entry stage·microbatches +
// microbatch. A nil table has no op.
type index struct {
	microbatches       int32
	forward, backward  []int32 // backward: B or I
	weight, recompute  []int32
	backwardIsFull     []bool
	offset             []int32 // of each rank's first op
	hasBackward, split bool
}

func (x *index) at(stage, microbatch int32) int32 { return stage*x.microbatches + microbatch }

func table(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = none
	}
	return t
}

// place returns the rank and the position of an op.
func (x *index) place(op int32) (rank, position int) {
	rank = len(x.offset) - 1
	for rank > 0 && x.offset[rank] > op {
		rank--
	}
	return rank, int(op - x.offset[rank])
}

// newIndex returns the index of o, with an *ActionError for the first action, in
// op order, that is out of range or double. O(ops).
func newIndex(o *Order) (*index, error) {
	if o.Ops() > MaxActions {
		return nil, fmt.Errorf("the order has %d actions, more than %d", o.Ops(), MaxActions)
	}
	cells := int64(o.Stages) * int64(o.Size.Microbatches)
	// Each cell needs an action: this also bounds the tables.
	if o.Stages < 1 || o.Size.Microbatches < 1 || len(o.Ranks) < 1 {
		return nil, fmt.Errorf("an order needs a rank, a stage and a microbatch at least; this has %d, %d and %d",
			len(o.Ranks), o.Stages, o.Size.Microbatches)
	}
	x := &index{microbatches: int32(o.Size.Microbatches)}
	if cells > 2*int64(o.Ops()) {
		return x, fmt.Errorf("%d stages × %d microbatches need a forward each; the order has only %d actions", o.Stages, o.Size.Microbatches, o.Ops())
	}
	x.forward, x.backward, x.backwardIsFull = table(int(cells)), table(int(cells)), make([]bool, cells)
	var op int32
	for r, actions := range o.Ranks {
		x.offset = append(x.offset, op)
		for i, a := range actions {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if err := x.enter(o, p, op); err != nil {
					return x, &ActionError{r, i, err}
				}
			}
			op++
		}
	}
	return x, nil
}

// enter records that op does part p.
func (x *index) enter(o *Order, p Part, op int32) error {
	if p.Stage < 0 || int(p.Stage) >= o.Stages {
		return fmt.Errorf("%v: there are stages 0 … %d", p, o.Stages-1)
	}
	if p.Microbatch < 0 || int(p.Microbatch) >= o.Size.Microbatches {
		return fmt.Errorf("%v: there are microbatches 0 … %d", p, o.Size.Microbatches-1)
	}
	cell := x.at(p.Stage, p.Microbatch)
	var t *[]int32
	switch p.Kind {
	case Forward:
		t = &x.forward
	case Backward, RecomputeBackward, InputGrad:
		t = &x.backward
		x.hasBackward = true
	case WeightGrad:
		t = &x.weight
		x.hasBackward = true
	case Recompute:
		t = &x.recompute
	case Load, ReduceGrad, Optimizer:
		return nil
	default:
		return fmt.Errorf("%v: not a kind that an order can hold", p)
	}
	if *t == nil {
		*t = table(len(x.forward))
	}
	if before := (*t)[cell]; before != none {
		rank, position := x.place(before)
		_, old := o.Op(before)
		if t == &x.backward {
			if x.backwardIsFull[cell] != (p.Kind != InputGrad) {
				return fmt.Errorf("%v: the same backward is already done by %v (rank %d, action %d); a backward is B, or I and W", p, old, rank, position+1)
			}
		}
		return fmt.Errorf("%v: a duplicate of %v (rank %d, action %d)", p, old, rank, position+1)
	}
	(*t)[cell] = op
	if p.Kind == Backward || p.Kind == RecomputeBackward {
		x.backwardIsFull[cell] = true
	}
	return nil
}

// complete returns an error for the first cell that lacks an action, or has one
// too many, by stage and microbatch.
func (x *index) complete(o *Order) error {
	get := func(t []int32, cell int32) int32 {
		if t == nil {
			return none
		}
		return t[cell]
	}
	for s := range int32(o.Stages) {
		for m := range x.microbatches {
			c := x.at(s, m)
			f, b, w, r := x.forward[c], x.backward[c], get(x.weight, c), get(x.recompute, c)
			missing := func(k Kind, why string) error {
				return fmt.Errorf("%v is missing: %s", Part{k, s, m}, why)
			}
			faulty := func(op int32, format string, args ...any) error {
				rank, position := x.place(op)
				return &ActionError{rank, position, fmt.Errorf(format, args...)}
			}
			switch {
			case f == none:
				return missing(Forward, "each stage and microbatch needs a forward")
			case x.hasBackward && b == none && w != none:
				return missing(InputGrad, fmt.Sprintf("there is %v", Part{WeightGrad, s, m}))
			case x.hasBackward && b == none:
				return missing(Backward, "each stage and microbatch needs a backward: B, or I and W")
			case x.hasBackward && !x.backwardIsFull[c] && w == none:
				return missing(WeightGrad, fmt.Sprintf("%v leaves the gradient of weights to it", Part{InputGrad, s, m}))
			case x.hasBackward && x.backwardIsFull[c] && w != none:
				return faulty(w, "%v: %v already makes the gradient of weights (in PyTorch's files before November 2024 B was the input gradient: write I)",
					Part{WeightGrad, s, m}, Part{Backward, s, m})
			case r != none && b == none:
				return faulty(r, "%v: no backward needs it", Part{Recompute, s, m})
			}
			if b != none {
				home, _ := x.place(f)
				for _, op := range []int32{b, w, r} {
					if op == none {
						continue
					}
					if rank, _ := x.place(op); rank != home {
						_, a := o.Op(op)
						return faulty(op, "%v: stage %d, microbatch %d is on rank %d, where its forward is", a, s, m, home)
					}
				}
			}
		}
	}
	return nil
}
