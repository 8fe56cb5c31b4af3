package pipeline

import "fmt"

// The state of a stage and microbatch as a lowered schedule is read.
const (
	doneForward = 1 << iota
	doneBackward
	sentForward // SEND_F by this stage
	sentBackward
	receivedForward // RECV_F by this stage
	receivedBackward
)

// traffic follows the communication of a lowered schedule.
type traffic struct {
	*sheet
	o     *Order
	x     *index
	state []uint8
	// lowered says that the sheet has sends and receives at all.
	lowered bool
}

// checkCommunication checks the sheet's sends and receives against its order o.
func (s *sheet) checkCommunication(o *Order) error {
	x, err := newIndex(o)
	if err != nil {
		return err
	}
	t := &traffic{sheet: s, o: o, x: x, state: make([]uint8, len(x.forward))}
	for _, actions := range s.ranks {
		for _, a := range actions {
			t.lowered = t.lowered || a.Kind >= SendForward && a.Kind <= RecvBackward
		}
	}
	// First all in each rank's order, then pairs, which cross ranks.
	for _, step := range []func(rank int, p Part) error{t.run, t.pair} {
		for r, actions := range s.ranks {
			for i, a := range actions {
				parts, n := a.Parts()
				for _, p := range parts[:n] {
					if err := step(r, p); err != nil {
						return &CSVError{s.name, r + 1, int(s.cells[r][i]), err}
					}
				}
			}
		}
	}
	return nil
}

// home returns the rank of a stage and microbatch; -1 if there is no such stage.
func (t *traffic) home(stage, microbatch int32) int {
	if stage < 0 || int(stage) >= t.o.Stages {
		return -1
	}
	return int(t.x.home[t.x.cell(stage, microbatch)])
}

// crosses says whether the value that p makes goes to another rank, and the
// value that p needs comes from one.
func (t *traffic) crosses(rank int, p Part) (out, in bool) {
	next, before := t.home(p.Stage+1, p.Microbatch), t.home(p.Stage-1, p.Microbatch)
	if p.Kind != Forward {
		next, before = before, next
	}
	return next >= 0 && next != rank, before >= 0 && before != rank
}

// run follows a rank's own order.
func (t *traffic) run(rank int, p Part) error {
	if p.Kind == ReduceGrad || p.Kind == Unshard || p.Kind == Reshard {
		if int(p.Stage) >= t.o.Stages {
			return fmt.Errorf("%v: there are stages 0 … %d", p, t.o.Stages-1)
		}
		return nil
	}
	if int(p.Stage) >= t.o.Stages || p.Microbatch >= t.x.microbatches {
		return fmt.Errorf("%v: there are stages 0 … %d and microbatches 0 … %d", p, t.o.Stages-1, t.x.microbatches-1)
	}
	if !t.lowered {
		return nil
	}
	cell := t.x.cell(p.Stage, p.Microbatch)
	state := &t.state[cell]
	if p.Kind.Communication() && int(t.x.home[cell]) != rank {
		return fmt.Errorf("%v: stage %d has microbatch %d on rank %d", p, p.Stage, p.Microbatch, t.x.home[cell])
	}
	_, in := t.crosses(rank, p)
	switch p.Kind {
	case Forward:
		if in && *state&receivedForward == 0 {
			return fmt.Errorf("%v: %v is missing before it", p, Part{RecvForward, p.Stage, p.Microbatch})
		}
		*state |= doneForward
	case Backward, RecomputeBackward, InputGrad:
		if in && *state&receivedBackward == 0 {
			return fmt.Errorf("%v: %v is missing before it", p, Part{RecvBackward, p.Stage, p.Microbatch})
		}
		*state |= doneBackward
	case SendForward:
		return mark(state, sentForward, *state&doneForward != 0, p, "what it sends is not made before it")
	case SendBackward:
		return mark(state, sentBackward, *state&doneBackward != 0, p, "what it sends is not made before it")
	case RecvForward:
		return mark(state, receivedForward, *state&doneForward == 0, p, "the forward that needs it ran before it")
	case RecvBackward:
		return mark(state, receivedBackward, *state&doneBackward == 0, p, "the backward that needs it ran before it")
	}
	return nil
}

func mark(state *uint8, bit uint8, ok bool, p Part, otherwise string) error {
	switch {
	case *state&bit != 0:
		return fmt.Errorf("%v: a duplicate", p)
	case !ok:
		return fmt.Errorf("%v: %s", p, otherwise)
	}
	*state |= bit
	return nil
}

// pair checks that an action's counterpart on another rank is there.
func (t *traffic) pair(rank int, p Part) error {
	var other Part
	var bit uint8
	switch p.Kind {
	case SendForward:
		other, bit = Part{RecvForward, p.Stage + 1, p.Microbatch}, receivedForward
	case RecvForward:
		other, bit = Part{SendForward, p.Stage - 1, p.Microbatch}, sentForward
	case SendBackward:
		other, bit = Part{RecvBackward, p.Stage - 1, p.Microbatch}, receivedBackward
	case RecvBackward:
		other, bit = Part{SendBackward, p.Stage + 1, p.Microbatch}, sentBackward
	default:
		return nil
	}
	switch home := t.home(other.Stage, other.Microbatch); {
	case home < 0:
		return fmt.Errorf("%v: there is no stage %d to talk to", p, other.Stage)
	case home == rank:
		return fmt.Errorf("%v: stages %d and %d are on the same rank", p, p.Stage, other.Stage)
	case t.state[t.x.cell(other.Stage, other.Microbatch)]&bit == 0:
		return fmt.Errorf("%v: its %v on rank %d is missing", p, other, home)
	}
	return nil
}
