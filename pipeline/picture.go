package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// drawn returns how many units of time a picture gives an action of the kind.
func drawn(k Kind) int {
	switch k {
	case Backward:
		return 2
	case RecomputeBackward, Overlap:
		return 3
	}
	return 1
}

// Picture returns the order drawn in ASCII as the papers draw theirs: a line a
// rank, time to the right, each action as early as it can start, idle time blank.
// A forward takes one unit, a full backward two, its halves one each, a
// recomputation one, an overlapped slot three. An action shows its kind and
// microbatch, in small letters in the second chunk of a rank (with dualpipe: in
// the second direction); with more chunks, the stage too. Two lines below say what
// the letters are, how long it is and how idle. It fails as Check does and where
// the picture would be wider than 4,000 columns.
func (o *Order) Picture() (string, error) {
	g, err := o.Graph()
	if err != nil {
		return "", err
	}
	duration := make([]unit.Time, 0, g.Ops)
	for _, a := range o.All() {
		duration = append(duration, unit.Time(drawn(a.Kind)))
	}
	start := make([]unit.Time, g.Ops)
	span := int(g.Starts(start, func(op int32) unit.Time { return duration[op] }))

	labels, width := make([]string, 0, g.Ops), 2
	chunk := o.chunks()
	for rank, a := range o.All() {
		label := o.label(a, func(p Part) int { return chunk(rank, p) })
		labels = append(labels, label)
		width = max(width, (len(label)+drawn(a.Kind))/drawn(a.Kind)) // one column apart
	}
	const widest, tallest = 4000, 1000
	if span*width > widest || len(o.Ranks) > tallest {
		return "", fmt.Errorf("%s: a picture of %d columns and %d lines is too large; at most %d and %d",
			o.Schedule, span*width, len(o.Ranks), widest, tallest)
	}
	var out strings.Builder
	op, busy := 0, 0
	digits := len(fmt.Sprint(len(o.Ranks) - 1))
	for rank, actions := range o.Ranks {
		line := []byte(strings.Repeat(" ", span*width))
		for range actions {
			from, to := int(start[op])*width, int(start[op]+duration[op])*width-1
			copy(line[from:], strings.Repeat("-", to-from))
			copy(line[from:], labels[op])
			busy += int(duration[op])
			op++
		}
		fmt.Fprintf(&out, "%*d |%s\n", digits, rank, strings.TrimRight(string(line), " "))
	}
	idle := len(o.Ranks)*span - busy
	fmt.Fprintf(&out, "%s\nspan %d, idle %d.%d %%\n", o.legend(), span,
		idle*1000/(len(o.Ranks)*span)/10, idle*1000/(len(o.Ranks)*span)%10)
	return out.String(), nil
}

// chunks returns the function that numbers the chunks of a rank from 0.
func (o *Order) chunks() func(rank int, p Part) int {
	switch o.Placement {
	case Loop, V:
		return func(_ int, p Part) int { return int(p.Stage) / len(o.Ranks) }
	case Bidirectional:
		return func(_ int, p Part) int {
			if int(p.Microbatch) >= o.Size.Microbatches/2 {
				return 1
			}
			return 0
		}
	}
	stages := make([][]int32, len(o.Ranks))
	for rank, a := range o.All() {
		parts, n := a.Parts()
		for _, p := range parts[:n] {
			if at, found := slices.BinarySearch(stages[rank], p.Stage); !found {
				stages[rank] = slices.Insert(stages[rank], at, p.Stage)
			}
		}
	}
	return func(rank int, p Part) int {
		at, _ := slices.BinarySearch(stages[rank], p.Stage)
		return at
	}
}

// label returns what a picture writes on an action.
func (o *Order) label(a Action, chunk func(Part) int) string {
	parts, n := a.Parts()
	label := ""
	for _, p := range parts[:n] {
		name := p.String()
		if o.Size.Chunks <= 2 {
			name = name[len(fmt.Sprint(p.Stage)):]
		}
		switch p.Kind { // the words are too long
		case Load:
			name = strings.Replace(name, "LOAD", "L", 1)
		case ReduceGrad:
			name = strings.Replace(name, "REDUCE_GRAD", "G", 1)
		case Optimizer:
			name = strings.Replace(name, "OPTIMIZER", "O", 1)
		}
		if o.Size.Chunks <= 2 && chunk(p) == 1 {
			name = strings.ToLower(name)
		}
		label += name
	}
	return label
}

// legend returns the line that explains the letters in use.
func (o *Order) legend() string {
	var used [kinds]bool
	for _, a := range o.All() {
		used[a.Kind] = true
	}
	names := [kinds]string{
		Forward: "F forward", Backward: "B backward", InputGrad: "I input-gradient", WeightGrad: "W weight-gradient",
		Recompute: "R recompute", RecomputeBackward: "RB recompute-backward", Overlap: "FB forward and backward at once",
		Load: "L load", ReduceGrad: "G reduce-gradient", Optimizer: "O optimizer",
	}
	var parts []string
	for k, name := range names {
		if used[k] {
			parts = append(parts, fmt.Sprintf("%s %d", name, drawn(Kind(k))))
		}
	}
	switch {
	case o.Size.Chunks > 2:
		parts = append(parts, "first number: stage")
	case o.Placement == Bidirectional:
		parts = append(parts, "small: from the last rank")
	case o.Size.Chunks == 2:
		parts = append(parts, "small: second chunk")
	}
	return strings.Join(parts, ", ")
}
