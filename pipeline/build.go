package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// Schedule describes a schedule that Build makes.
type Schedule struct {
	// Name is the canonical name and Aliases are others that Build takes.
	Name    string
	Aliases []string
	// Summary says in a line what is special about it, Sizes which sizes it has.
	Summary, Sizes string
	Placement      Placement
	// Example is a small size that shows its shape.
	Example Size

	// fit fills in defaults and refuses sizes that the schedule does not have.
	fit func(Size) (Size, error)
	// rank returns one rank's actions.
	rank func(Size, int) []Action
}

// Build returns the order of the named schedule, canonical name or alias, at the
// given size, in which 0 chunks and 0 group stand for the schedule's default.
// It fails, saying what would be possible, where there is no such schedule or it
// does not have that size. O(ops).
func Build(schedule string, size Size) (*Order, error) {
	s, err := Find(schedule)
	if err != nil {
		return nil, err
	}
	if size, err = s.Fit(size); err != nil {
		return nil, err
	}
	o := &Order{Schedule: s.Name, Size: size, Stages: size.Ranks * size.Chunks, Placement: s.Placement}
	if s.Placement == Bidirectional {
		o.Stages = size.Ranks
	}
	o.Ranks = make([][]Action, size.Ranks)
	for r := range o.Ranks {
		o.Ranks[r] = s.rank(size, r)
	}
	return o, nil
}

// Fit returns the size with defaults filled in, or an error that says which sizes
// the schedule has.
func (s *Schedule) Fit(size Size) (Size, error) {
	for _, n := range []struct {
		name       string
		value, min int
	}{
		{"ranks", size.Ranks, 1}, {"chunks", size.Chunks, 0}, {"microbatches", size.Microbatches, 1}, {"group", size.Group, 0},
	} {
		if n.value < n.min {
			return size, fmt.Errorf("%s: %s = %d: at least %d is needed", s.Name, n.name, n.value, max(1, n.min))
		}
		if n.value > MaxActions {
			return size, fmt.Errorf("%s: %s = %d: an order has at most %d actions", s.Name, n.name, n.value, MaxActions)
		}
	}
	if size.Chunks == 0 {
		size.Chunks = s.Example.Chunks
	}
	size, err := s.fit(size)
	if err != nil {
		return size, fmt.Errorf("%s: %w", s.Name, err)
	}
	const kinds = 3 // at most, of a stage and microbatch
	if cells := float64(size.Ranks) * float64(size.Chunks) * float64(size.Microbatches); cells*kinds > MaxActions {
		return size, fmt.Errorf("%s: %d ranks × %d chunks × %d microbatches make up to %.0f actions, more than %d",
			s.Name, size.Ranks, size.Chunks, size.Microbatches, cells*kinds, MaxActions)
	}
	return size, nil
}

// Find returns the schedule of that name or alias; case, dashes, underscores,
// spaces and a leading "Schedule" do not matter. If there is none, the error
// names the nearest.
func Find(name string) (*Schedule, error) {
	all := Schedules()
	wanted := plain(name)
	nearest, least := "", 1+len(wanted)
	for i := range all {
		for _, n := range append([]string{all[i].Name}, all[i].Aliases...) {
			p := plain(n)
			if p == wanted {
				return &all[i], nil
			}
			if d := distance(p, wanted); d < least {
				nearest, least = all[i].Name, d
			}
		}
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	hint := ""
	if nearest != "" && wanted != "" && least <= max(2, len(wanted)/3) {
		hint = fmt.Sprintf("did you mean %q? ", nearest)
	}
	return nil, fmt.Errorf("unknown schedule %s: %sthere are %s", quote(name), hint, strings.Join(names, ", "))
}

// plain returns a schedule's name without what does not matter in it.
func plain(name string) string {
	name = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	if rest, ok := strings.CutPrefix(name, "schedule"); ok && rest != "" {
		return rest
	}
	return name
}

// distance returns how many bytes must be changed, added or removed to make a
// into b, at most. Long names are far from all.
func distance(a, b string) int {
	if len(b) > 64 {
		return len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return slices.Clone(row)[len(b)]
}

func forward(stage, m int) Action    { return action(Forward, stage, m) }
func backward(stage, m int) Action   { return action(Backward, stage, m) }
func inputGrad(stage, m int) Action  { return action(InputGrad, stage, m) }
func weightGrad(stage, m int) Action { return action(WeightGrad, stage, m) }

func action(kind Kind, stage, m int) Action {
	return Action{Kind: kind, Stage: int32(stage), Microbatch: int32(m)}
}
