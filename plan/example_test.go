package plan_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// From measurements to the clocks of every op, for a pipeline that waits for one
// that is 20 % slower.
func Example() {
	// profile.Read reads measurements; these come from a model of a GPU.
	measured := profile.Synthetic(profile.SyntheticConfig{Stages: 4})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 8})
	if err != nil {
		log.Fatal(err)
	}
	job := characterize.NewJob(measured, order, 84*unit.Watt)
	frontier, err := characterize.Run(context.Background(), job, characterize.Options{})
	if err != nil {
		log.Fatal(err)
	}
	planner, err := plan.New(frontier)
	if err != nil {
		log.Fatal(err)
	}
	p, err := planner.Make(plan.Request{Goal: plan.Straggler, Factor: 12 * plan.One / 10, Effort: round.Normal})
	if err != nil {
		log.Fatal(err)
	}
	first := p.Ranks[0][0]
	fmt.Println("in time for the straggler:", p.Time <= p.WaitTime)
	fmt.Println("saves over a fifth:", p.Saving.Float() > 0.2)
	fmt.Println(len(p.Ranks), "ranks; the first op is", first.Instruction, "of microbatch", first.Microbatch)
	// Output:
	// in time for the straggler: true
	// saves over a fifth: true
	// 4 ranks; the first op is forward of microbatch 0
}
