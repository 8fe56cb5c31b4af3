package round

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
)

// Search is the search of Normal and Best with a budget of the caller's, from
// choice, which it improves.
func Search(p *dag.Problem, s *frontier.Solution, budget int64, choice []int32) {
	search(p, s, budget, false, choice)
}
