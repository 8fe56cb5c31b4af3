package simulate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// A job of sixteen pipelines in which one is 20 % slower: what waiting costs at
// maximum clocks, and what it costs with the plan for that.
func Example() {
	measured := profile.Synthetic(profile.SyntheticConfig{Stages: 4})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 8})
	if err != nil {
		log.Fatal(err)
	}
	frontier, err := characterize.Run(context.Background(), characterize.NewJob(measured, order, 84*unit.Watt), characterize.Options{})
	if err != nil {
		log.Fatal(err)
	}
	planner, err := plan.New(frontier)
	if err != nil {
		log.Fatal(err)
	}
	p, err := simulate.New(&frontier.Header, measured)
	if err != nil {
		log.Fatal(err)
	}
	made, err := planner.Make(plan.Request{Goal: plan.Straggler, Factor: 12e8})
	if err != nil {
		log.Fatal(err)
	}
	waits, err := p.Plan(made)
	if err != nil {
		log.Fatal(err)
	}
	slow := simulate.Options{Slow: []simulate.Slowdown{{Pipeline: 0, Rank: simulate.All, Factor: 12e8}}}
	before, err := simulate.Run([]simulate.Member{{Schedule: p.MaxClocks()}, {Schedule: p.MaxClocks(), Copies: 15}}, slow)
	if err != nil {
		log.Fatal(err)
	}
	after, err := simulate.Run([]simulate.Member{{Schedule: p.MaxClocks()}, {Schedule: waits, Copies: 15}}, slow)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("as fast:", after.Time <= before.Time)
	fmt.Println("saves over a fifth:", after.Energy().Joules() < 0.8*before.Energy().Joules())
	// Output:
	// as fast: true
	// saves over a fifth: true
}
