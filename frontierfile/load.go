package frontierfile

import (
	"fmt"
	"iter"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Walk yields the points with their choices and flows, fastest first. The point
// is reused from one to the next. It yields a *ValueError once, and ends, where a
// choice or a flow is out of range. O(ops + arcs + changes). A caller that did
// not write the file checks Header.Ops and Header.Arcs against its graph first,
// because Walk allocates as many.
func (f *File) Walk() iter.Seq2[*Point, error] {
	return func(yield func(*Point, error) bool) {
		var p Point
		choice, flow := make([]int32, f.Header.Ops), make([]unit.Power, f.Header.Arcs)
		for i := range f.Points {
			err := f.advance(i, choice, flow)
			if err != nil {
				yield(nil, err)
				return
			}
			p = f.Points[i]
			p.Choice, p.Flow = choice, flow
			if !yield(&p, nil) {
				return
			}
		}
	}
}

// Load returns point i with its choice and flow, which are the caller's. It fails
// as Walk does, and costs a walk from the fastest point to there.
func (f *File) Load(i int) (Point, error) {
	choice, flow := make([]int32, f.Header.Ops), make([]unit.Power, f.Header.Arcs)
	for k := range i + 1 {
		if err := f.advance(k, choice, flow); err != nil {
			return Point{}, err
		}
	}
	p := f.Points[i]
	p.Choice, p.Flow = choice, flow
	return p, nil
}

// Choice returns the choice of point i alone; see Load.
func (f *File) Choice(i int) ([]int32, error) {
	choice := make([]int32, f.Header.Ops)
	for k := range i + 1 {
		if problem := apply(f.encoded[k].knobs, choice, maxChoice); problem != "" {
			return nil, impossible(k, "knobs", problem)
		}
	}
	return choice, nil
}

// maxChoice bounds indexes of options.
const maxChoice = 1 << 24

// advance turns the choice and flow of point i−1 into those of point i.
func (f *File) advance(i int, choice []int32, flow []unit.Power) error {
	if problem := apply(f.encoded[i].knobs, choice, maxChoice); problem != "" {
		return impossible(i, "knobs", problem)
	}
	if problem := apply(f.encoded[i].flow, flow, unit.MaxFlow); problem != "" {
		return impossible(i, "flow", problem)
	}
	return nil
}

func impossible(point int, field, problem string) error {
	return &ValueError{Point: point, Field: field, Problem: problem}
}

// apply adds the changes in text to values, which stay within 0 … most.
func apply[T ~int32 | ~int64](text []byte, values []T, most T) (problem string) {
	last := -1
	p := parser{text: text}
	p.changes(func(by int64, index int, first bool) bool {
		if !first && index == last {
			problem = fmt.Sprintf("index %d is there twice", index)
			return false
		}
		last = index
		if index >= len(values) {
			problem = fmt.Sprintf("index %d, but there are 0 … %d", index, len(values)-1)
			return false
		}
		v := int64(values[index]) + by
		if v < 0 || v > int64(most) {
			problem = fmt.Sprintf("index %d: %d + %d is outside 0 … %d", index, values[index], by, most)
			return false
		}
		values[index] = T(v)
		return true
	})
	if p.err != nil { // not after Read
		return p.err.Error()
	}
	return problem
}

// CheckChoice returns an error unless choice has an option of its curve for each
// op of p.
func CheckChoice(p *dag.Problem, choice []int32) error {
	if len(choice) != p.Graph.Ops {
		return fmt.Errorf("%d choices for %d ops", len(choice), p.Graph.Ops)
	}
	for op, c := range choice {
		if n := len(p.Curve(int32(op)).Options); c < 0 || int(c) >= n {
			return fmt.Errorf("op %d has options 0 … %d, not %d", op, n-1, c)
		}
	}
	return nil
}
