package pipeline

import (
	"fmt"
	"iter"
	"slices"
)

// Size is how large a pipeline is.
type Size struct {
	// Ranks is the number of pipeline ranks and Chunks how many stages of the
	// model each holds (virtual stages, or model chunks).
	Ranks, Chunks int
	// Microbatches is how many microbatches make an iteration.
	Microbatches int
	// Group is how many microbatches run through one chunk before the next chunk
	// has its turn, in interleaved schedules; elsewhere it is 0.
	Group int
}

// Placement is which rank holds which stage.
type Placement uint8

// The placements.
const (
	// Loop puts stage s on rank s mod ranks.
	Loop Placement = iota
	// V puts stages r and 2·ranks−1−r on rank r; in general the direction turns
	// at each chunk.
	V
	// Bidirectional puts a copy of stage s on rank s, for the first half of the
	// microbatches, and one on rank ranks−1−s, for the second.
	Bidirectional
	// Custom is that of an order read from a file: Order.Ranks alone says where
	// stages are.
	Custom
	placements
)

// String returns "loop", "v", "bidirectional" or "custom".
func (p Placement) String() string {
	if p >= placements {
		return "unknown"
	}
	return [...]string{"loop", "v", "bidirectional", "custom"}[p]
}

// Order is what each rank runs, in which order: compute and fixed-time actions
// only, no communication and no waiting.
type Order struct {
	// Schedule is the canonical name of the schedule, or "custom".
	Schedule string
	// Size is the size with all defaults filled in.
	Size Size
	// Stages is the number of stages of the model.
	Stages int
	// Placement is where they are.
	Placement Placement
	// Ranks holds each rank's actions in execution order.
	Ranks [][]Action
}

// Ops returns the number of ops. O(ranks).
func (o *Order) Ops() int {
	n := 0
	for _, actions := range o.Ranks {
		n += len(actions)
	}
	return n
}

// Op returns an op's rank and action; it panics where there is no such op.
// O(ranks); to go through all ops use [Order.All].
func (o *Order) Op(op int32) (rank int, a Action) {
	at := int(op)
	for r, actions := range o.Ranks {
		if at < len(actions) {
			return r, actions[at]
		}
		at -= len(actions)
	}
	panic(fmt.Sprintf("there is no op %d among %d", op, o.Ops()))
}

// All yields the rank and the action of each op, by ascending number of the op.
func (o *Order) All() iter.Seq2[int, Action] {
	return func(yield func(int, Action) bool) {
		for rank, actions := range o.Ranks {
			for _, a := range actions {
				if !yield(rank, a) {
					return
				}
			}
		}
	}
}

// Instructions returns the instructions that a profile needs for the order, by
// name. O(ops).
func (o *Order) Instructions() []string {
	var seen [kinds]bool
	for _, a := range o.All() {
		seen[a.Kind] = true
	}
	var all []string
	for k, ok := range seen {
		if ok {
			all = append(all, Kind(k).Instruction())
		}
	}
	slices.Sort(all)
	return all
}

// ForwardOnly says whether the order has no backward at all (inference). O(ops)
// then, else usually O(1).
func (o *Order) ForwardOnly() bool {
	for i := len(o.Ranks) - 1; i >= 0; i-- {
		for _, a := range o.Ranks[i] {
			if k := a.Kind; k != Forward && !k.Fixed() {
				return false
			}
		}
	}
	return true
}

// ToActions returns the order in text, one list a rank, each action as
// ParseAction reads it: how a file holds a user's own order.
func (o *Order) ToActions() [][]string {
	ranks := make([][]string, len(o.Ranks))
	for r, actions := range o.Ranks {
		ranks[r] = make([]string, len(actions))
		for i, a := range actions {
			ranks[r][i] = a.String()
		}
	}
	return ranks
}

// FromActions returns the order that ToActions wrote, named "custom", with stages
// and microbatches counted from the actions. It fails as Check does, and on the
// first action that cannot be read, with an *ActionError.
func FromActions(ranks [][]string) (*Order, error) {
	o := &Order{Ranks: make([][]Action, len(ranks))}
	for r, actions := range ranks {
		o.Ranks[r] = make([]Action, len(actions))
		for i, s := range actions {
			a, err := ParseAction(s)
			if err != nil {
				return nil, &ActionError{Rank: r, Position: i, Err: err}
			}
			o.Ranks[r][i] = a
		}
	}
	if err := o.measure(); err != nil {
		return nil, err
	}
	return o, nil
}

// measure makes o a custom order: it fills in all but Ranks and checks it.
func (o *Order) measure() error {
	var stages, microbatches int32
	for _, a := range o.All() {
		parts, n := a.Parts()
		for _, p := range parts[:n] {
			stages, microbatches = max(stages, p.Stage+1), max(microbatches, p.Microbatch+1)
		}
	}
	o.Schedule, o.Placement, o.Stages = "custom", Custom, int(stages)
	o.Size = Size{Ranks: len(o.Ranks), Microbatches: int(microbatches)}
	if err := o.Check(); err != nil {
		return err
	}
	// Check bounds the stages by the actions.
	seen := make([]int32, stages) // the last rank plus one that has the stage
	for r, actions := range o.Ranks {
		chunks := 0
		for _, a := range actions {
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if seen[p.Stage] != int32(r)+1 {
					seen[p.Stage] = int32(r) + 1
					chunks++
				}
			}
		}
		o.Size.Chunks = max(o.Size.Chunks, chunks)
	}
	return nil
}
