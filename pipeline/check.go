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

// none marks an absent op or rank.
const none int32 = -1

// index finds the ops of a stage and microbatch: entry stage·microbatches +
// microbatch of each table, where none means that there is none. A nil table has
// no op at all.
type index struct {
	microbatches int32
	forward      []int32
	backward     []int32 // B, RB or I
	weight       []int32
	recompute    []int32
	home         []int32 // the rank of all of these
	offset       []int32 // each rank's first op
}

func (x *index) cell(stage, microbatch int32) int32 { return stage*x.microbatches + microbatch }

// op returns an entry of a table that may be nil.
func op(table []int32, cell int32) int32 {
	if table == nil {
		return none
	}
	return table[cell]
}

func newTable(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = none
	}
	return t
}

// newIndex returns the index of o, with an *ActionError for the first action, in
// op order, that is out of range, double or on the wrong rank. O(ops).
func newIndex(o *Order) (*index, error) {
	if err := o.bounded(); err != nil {
		return nil, err
	}
	cells := o.Stages * o.Size.Microbatches
	x := &index{microbatches: int32(o.Size.Microbatches), forward: newTable(cells), home: newTable(cells)}
	var next int32
	for r, actions := range o.Ranks {
		x.offset = append(x.offset, next)
		for i, a := range actions {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if err := x.enter(o, p, next, int32(r)); err != nil {
					return nil, &ActionError{r, i, err}
				}
			}
			next++
		}
	}
	return x, nil
}

// bounded checks the order's numbers, so that tables by stage and microbatch are
// not larger than a few times its actions.
func (o *Order) bounded() error {
	if len(o.Ranks) == 0 {
		return fmt.Errorf("the order has no rank")
	}
	for r, actions := range o.Ranks {
		if len(actions) == 0 {
			return fmt.Errorf("rank %d has no action: each rank runs some stage", r)
		}
	}
	if n := o.Ops(); n > MaxActions {
		return fmt.Errorf("the order has %d actions, more than %d", n, MaxActions)
	}
	if o.Stages < 1 || o.Size.Microbatches < 1 {
		return fmt.Errorf("an order needs a stage and a microbatch at least; this has %d and %d", o.Stages, o.Size.Microbatches)
	}
	most := 2 * o.Ops() // forwards: not more than parts of actions
	if o.Stages <= most && o.Size.Microbatches <= most && o.Stages*o.Size.Microbatches <= most {
		return nil
	}
	// Name the action with the number that is likely wrong.
	for r, actions := range o.Ranks {
		for i, a := range actions {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if o.Stages >= o.Size.Microbatches && int(p.Stage) == o.Stages-1 || o.Stages < o.Size.Microbatches && int(p.Microbatch) == o.Size.Microbatches-1 {
					return &ActionError{r, i, fmt.Errorf("%v: %d stages × %d microbatches would need a forward each; the order has %d actions",
						p, o.Stages, o.Size.Microbatches, o.Ops())}
				}
			}
		}
	}
	return fmt.Errorf("%d stages × %d microbatches need a forward each; the order has %d actions", o.Stages, o.Size.Microbatches, o.Ops())
}

// enter records that the rank's op does part p.
func (x *index) enter(o *Order, p Part, id, rank int32) error {
	if p.Stage < 0 || int(p.Stage) >= o.Stages {
		return fmt.Errorf("%v: there are stages 0 … %d", p, o.Stages-1)
	}
	if p.Microbatch < 0 || p.Microbatch >= x.microbatches {
		return fmt.Errorf("%v: there are microbatches 0 … %d", p, x.microbatches-1)
	}
	var table *[]int32
	switch p.Kind {
	case Forward:
		table = &x.forward
	case Backward, RecomputeBackward, InputGrad:
		table = &x.backward
	case WeightGrad:
		table = &x.weight
	case Recompute:
		table = &x.recompute
	case Load, ReduceGrad, Optimizer:
		return nil
	default:
		return fmt.Errorf("%v: an order holds compute and fixed-time actions only", p)
	}
	if *table == nil {
		*table = newTable(len(x.forward))
	}
	cell := x.cell(p.Stage, p.Microbatch)
	if before := (*table)[cell]; before != none {
		r, old := o.Op(before)
		return fmt.Errorf("%v: %v on rank %d does the same (action %d there)", p, old, r, before-x.offset[r]+1)
	}
	if home := x.home[cell]; home != none && home != rank {
		return fmt.Errorf("%v: stage %d has microbatch %d on rank %d", p, p.Stage, p.Microbatch, home)
	}
	(*table)[cell], x.home[cell] = id, rank
	return nil
}

// complete returns an error for the first stage and microbatch that lacks an
// action or has one too many.
func (x *index) complete(o *Order) error {
	trains := x.backward != nil || x.weight != nil
	for s := range int32(o.Stages) {
		for m := range x.microbatches {
			if err := x.completeCell(o, s, m, trains); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *index) completeCell(o *Order, s, m int32, trains bool) error {
	cell := x.cell(s, m)
	b, w, r := op(x.backward, cell), op(x.weight, cell), op(x.recompute, cell)
	var kind Kind // of the backward
	if b != none {
		kind = o.backwardAt(x, b)
	}
	missing := func(k Kind, why string, args ...any) error {
		return fmt.Errorf("%v is missing: %s", Part{k, s, m}, fmt.Sprintf(why, args...))
	}
	surplus := func(id int32, why string, args ...any) error {
		rank, a := o.Op(id)
		return &ActionError{rank, int(id - x.offset[rank]), fmt.Errorf("%v: %s", a, fmt.Sprintf(why, args...))}
	}
	switch {
	case x.forward[cell] == none:
		return missing(Forward, "each stage and microbatch needs a forward")
	case !trains && r != none:
		return surplus(r, "no backward needs it")
	case !trains:
		return nil
	case b == none && w != none:
		return missing(InputGrad, "there is %v", Part{WeightGrad, s, m})
	case b == none:
		return missing(Backward, "each stage and microbatch needs a backward, B, or I and W")
	case kind == InputGrad && w == none:
		return missing(WeightGrad, "%v leaves the gradient of weights to it", Part{InputGrad, s, m})
	case kind.fullBackward() && w != none:
		return surplus(w, "%v gives the gradient of weights already; in PyTorch's files of before November 2024 B is the input gradient: write I", Part{kind, s, m})
	case kind == RecomputeBackward && r != none:
		return surplus(r, "%v recomputes by itself", Part{kind, s, m})
	}
	return nil
}

// backwardAt returns the kind of the backward in op id.
func (o *Order) backwardAt(x *index, id int32) Kind {
	rank := len(x.offset) - 1
	for x.offset[rank] > id {
		rank--
	}
	a := o.Ranks[rank][id-x.offset[rank]]
	if a.Kind == Overlap {
		return a.Second.Kind
	}
	return a.Kind
}
