package frontier

import (
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Coarsen returns p with the slopes of its curves rounded to multiples of
// quantum, and vertices left out between slopes that have become equal. Its
// frontier is found in fewer steps. Every flow of the coarse problem is one of p
// too, so p.Bound of it holds for p itself, and its relaxed schedules are p's;
// only the two meet no longer. Times stay exact: rounding those would add up along
// hundreds of ops. A quantum of at most a microwatt returns p.
func Coarsen(p *dag.Problem, quantum unit.Power) *dag.Problem {
	if quantum <= 1 {
		return p
	}
	coarse := *p
	coarse.Curves = slices.Clone(p.Curves)
	for i := range coarse.Curves {
		c := &coarse.Curves[i]
		hull := []int32{c.Hull[0]}
		var slopes []unit.Power
		for k, slope := range c.Slope {
			slope = max(1, (slope+quantum/2)/quantum*quantum)
			if n := len(slopes); n > 0 && slopes[n-1] == slope {
				hull[n] = c.Hull[k+1]
				continue
			}
			hull, slopes = append(hull, c.Hull[k+1]), append(slopes, slope)
		}
		c.Hull, c.Slope = hull, slopes
	}
	return &coarse
}
