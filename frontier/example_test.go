package frontier_test

import (
	"fmt"
	"log"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// Two GPUs work side by side and a third waits for both. The first GPU's op is
// short: it need not run fast.
func ExampleSolve() {
	op := func(fast, slow unit.Time) dag.Curve {
		c, err := dag.NewCurve([]dag.Option{
			{Knobs: dag.Knobs{ClockMHz: 1400}, Time: fast, Energy: 300 * unit.Joule},
			{Knobs: dag.Knobs{ClockMHz: 900}, Time: slow, Energy: 200 * unit.Joule},
		}, 0)
		if err != nil {
			log.Fatal(err)
		}
		return c
	}
	g, err := dag.NewGraph(3, []dag.Arc{{From: 0, To: 2}, {From: 1, To: 2}})
	if err != nil {
		log.Fatal(err)
	}
	curves := []dag.Curve{op(1*unit.Second, 2*unit.Second), op(2*unit.Second, 4*unit.Second), op(1*unit.Second, 2*unit.Second)}
	p, err := dag.NewProblem(g, curves, []int32{0, 1, 2}, 0)
	if err != nil {
		log.Fatal(err)
	}
	for s := range frontier.Solve(p) {
		fmt.Printf("from %v to %v a second costs %v\n", s.Slow, s.Fast, s.Price)
	}
	s, err := frontier.At(p, 4*unit.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in 4 s the ops take", s.Duration)
	// Output:
	// from 6s to 4s a second costs 50W
	// from 4s to 3s a second costs 100W
	// in 4 s the ops take [2s 2s 2s]
}
