package pipeline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Kind is what an action does.
type Kind uint8

// The kinds of actions. The first six are the parts of a microbatch's way
// through a stage. Overlap is a forward and a full backward run together as one
// op. Load, ReduceGrad and Optimizer take a fixed time. The last six are the
// communication in PyTorch's lowered schedules; no [Order] holds them.
const (
	Forward           Kind = iota + 1 // F
	Backward                          // B: gradients of inputs and of weights
	InputGrad                         // I: backward for inputs only
	WeightGrad                        // W: backward for weights only
	Recompute                         // R: the forward again, for the activations that a backward needs
	RecomputeBackward                 // RB: R and B as one op
	Overlap                           // (F;B)
	Load                              // LOAD: fetch a microbatch's input
	ReduceGrad                        // REDUCE_GRAD: sum a stage's gradients over the data-parallel ranks
	Optimizer                         // OPTIMIZER: update a stage's weights
	SendForward                       // SEND_F: a stage's output to the next stage
	RecvForward                       // RECV_F: a stage's input from the stage before
	SendBackward                      // SEND_B: an input's gradient to the stage before
	RecvBackward                      // RECV_B: an output's gradient from the next stage
	Unshard                           // UNSHARD: gather a stage's weights
	Reshard                           // RESHARD: drop them again
	kinds
)

// Instruction returns the name under which profiles give the kind's options.
func (k Kind) Instruction() string {
	return k.name([kinds]string{
		"unknown", "forward", "backward", "input-gradient", "weight-gradient", "recompute", "recompute-backward", "overlap",
		"load", "reduce-gradient", "optimizer", "send-forward", "receive-forward", "send-backward", "receive-backward", "unshard", "reshard",
	})
}

// String returns the kind's notation in an action: "F", "REDUCE_GRAD".
func (k Kind) String() string {
	return k.name([kinds]string{
		"?", "F", "B", "I", "W", "R", "RB", "OVERLAP_F_B",
		"LOAD", "REDUCE_GRAD", "OPTIMIZER", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD",
	})
}

func (k Kind) name(names [kinds]string) string {
	if k >= kinds {
		k = 0
	}
	return names[k]
}

// Fixed says whether actions of the kind take a fixed time, whatever the clock.
func (k Kind) Fixed() bool { return k >= Load && k < kinds }

// Communication says whether the kind is one that lowering adds to an order.
func (k Kind) Communication() bool { return k >= SendForward && k < kinds }

// hasMicrobatch says whether an action of the kind names a microbatch.
func (k Kind) hasMicrobatch() bool {
	return k != ReduceGrad && k != Optimizer && k != Unshard && k != Reshard
}

// fullBackward says whether the kind gives the gradients of inputs and weights.
func (k Kind) fullBackward() bool { return k == Backward || k == RecomputeBackward }

// Part is one microbatch's pass through one stage.
type Part struct {
	Kind              Kind
	Stage, Microbatch int32
}

// String returns the part in the notation <stage><kind><microbatch>: "2F0".
func (p Part) String() string { return string(p.append(nil)) }

func (p Part) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(p.Stage), 10)
	b = append(b, p.Kind.String()...)
	if p.Kind.hasMicrobatch() {
		b = strconv.AppendInt(b, int64(p.Microbatch), 10)
	}
	return b
}

// Action is what a rank runs as one op. Actions are comparable.
type Action struct {
	Kind Kind
	// Stage is the stage of the model, from 0 over all ranks, and Microbatch the
	// microbatch, from 0. An Overlap has those of its forward.
	Stage, Microbatch int32
	// Second is the backward of an Overlap; zero for all other kinds.
	Second Part
}

// Overlapped returns the slot that runs the forward of one stage and microbatch
// together with the full backward of another.
func Overlapped(forwardStage, forwardMicrobatch, backwardStage, backwardMicrobatch int32) Action {
	return Action{Overlap, forwardStage, forwardMicrobatch, Part{Backward, backwardStage, backwardMicrobatch}}
}

// Parts returns the one or two passes that the action consists of, the forward
// of an Overlap first; n is how many.
func (a Action) Parts() (parts [2]Part, n int) {
	if a.Kind == Overlap {
		return [2]Part{{Forward, a.Stage, a.Microbatch}, a.Second}, 2
	}
	return [2]Part{{a.Kind, a.Stage, a.Microbatch}}, 1
}

// String returns the action as ParseAction reads it: "2F0", "(2F5;5B1)",
// "3REDUCE_GRAD".
func (a Action) String() string { return string(a.append(nil)) }

func (a Action) append(b []byte) []byte {
	if a.Kind != Overlap {
		return Part{a.Kind, a.Stage, a.Microbatch}.append(b)
	}
	b = append(b, '(')
	b = Part{Forward, a.Stage, a.Microbatch}.append(b)
	b = append(b, ';')
	b = a.Second.append(b)
	return append(b, ')')
}

// ParseAction returns the action written as <stage><kind><microbatch>, without
// microbatch for REDUCE_GRAD, OPTIMIZER, UNSHARD and RESHARD, or as
// (<forward>;<backward>), with or without the word OVERLAP_F_B after the bracket.
// Numbers count from 0 and have no sign, no leading zero and at most 8 digits. All
// else is an error that says what was expected.
func ParseAction(s string) (Action, error) {
	inner, ok := strings.CutPrefix(s, "(")
	if !ok {
		p, err := parsePart(s)
		if err != nil {
			return Action{}, fmt.Errorf("action %s: %w", quote(s), err)
		}
		return Action{Kind: p.Kind, Stage: p.Stage, Microbatch: p.Microbatch}, nil
	}
	inner, ok = strings.CutSuffix(strings.TrimSuffix(inner, Overlap.String()), ")")
	first, second, both := strings.Cut(inner, ";")
	if !ok || !both {
		return Action{}, fmt.Errorf("action %s: an overlapped slot is written (2F5;5B1) or (2F5;5B1)OVERLAP_F_B", quote(s))
	}
	f, err := parsePart(first)
	if err != nil {
		return Action{}, fmt.Errorf("action %s: %s: %w", quote(s), quote(first), err)
	}
	b, err := parsePart(second)
	if err != nil {
		return Action{}, fmt.Errorf("action %s: %s: %w", quote(s), quote(second), err)
	}
	if f.Kind != Forward || b.Kind != Backward {
		return Action{}, fmt.Errorf("action %s: an overlapped slot is a forward and then a full backward, as (2F5;5B1)", quote(s))
	}
	return Overlapped(f.Stage, f.Microbatch, b.Stage, b.Microbatch), nil
}

func parsePart(s string) (Part, error) {
	var p Part
	var err error
	rest := s
	if p.Stage, rest, err = leadingNumber(s); err != nil {
		return Part{}, fmt.Errorf("stage: %w (an action is written <stage><kind><microbatch>, as 2F0)", err)
	}
	word := strings.TrimRight(rest, "0123456789")
	digits := rest[len(word):]
	for p.Kind = Forward; p.Kind < kinds; p.Kind++ {
		if p.Kind != Overlap && p.Kind.String() == word {
			break
		}
	}
	switch {
	case word == "":
		return Part{}, errors.New("the kind (F, B, I, W) is missing after the stage")
	case word == "BW":
		return Part{}, fmt.Errorf("BW is PyTorch's notation of before November 2024, in which B was the input gradient; today the full backward is B and the input gradient I: write %dB%s here, and I for each of the file's B",
			p.Stage, digits)
	case p.Kind == kinds:
		return Part{}, fmt.Errorf("unknown kind %s; there are F, B, I, W, R, RB, LOAD, REDUCE_GRAD, OPTIMIZER, and SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD", quote(word))
	case !p.Kind.hasMicrobatch():
		if digits != "" {
			return Part{}, fmt.Errorf("%s has no microbatch; write %v", word, p)
		}
		return p, nil
	}
	if p.Microbatch, _, err = leadingNumber(digits); err != nil {
		return Part{}, fmt.Errorf("microbatch: %w", err)
	}
	return p, nil
}

// maxNumber bounds stages and microbatches as read; see also MaxActions.
const maxNumber = 99_999_999

// leadingNumber returns the decimal number at the start of s and what follows it.
func leadingNumber(s string) (n int32, rest string, err error) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	switch {
	case i == 0:
		return 0, s, errors.New("a whole number is expected")
	case i > 1 && s[0] == '0':
		return 0, s, errors.New("a number has no leading zero")
	case i > 8:
		return 0, s, fmt.Errorf("a number is at most %d", maxNumber)
	}
	for _, c := range s[:i] {
		n = n*10 + (c - '0')
	}
	return n, s[i:], nil
}

// quote quotes a user's text for an error, cut to a length that a line can hold.
func quote(s string) string { return excerpt.Quoted(s, 40) }
