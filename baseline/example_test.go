package baseline_test

import (
	"context"
	"fmt"
	"log"

	"github.com/perseus-energy/perseus/baseline"
	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// All methods side by side on one pipeline.
func ExampleCompare() {
	measured := profile.Synthetic(profile.SyntheticConfig{Stages: 4, MinMHz: 1110})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 4})
	if err != nil {
		log.Fatal(err)
	}
	frontier, err := characterize.Run(context.Background(), characterize.NewJob(measured, order, 84*unit.Watt), characterize.Options{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := simulate.New(&frontier.Header, measured)
	if err != nil {
		log.Fatal(err)
	}
	c, err := baseline.Compare(frontier, p, baseline.CompareOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range c.Lines {
		fmt.Printf("%s, %s: perseus uses as little or less: %t\n", l.Method, l.Setting, !l.Worse)
	}
	// Output:
	// max clocks, all: perseus uses as little or less: true
	// zeus-global, fastest, 1410 MHz: perseus uses as little or less: true
	// zeus-global, least energy, 1110 MHz: perseus uses as little or less: true
	// zeus-per-stage, fastest, heaviest stage at 1410 MHz: perseus uses as little or less: true
	// zeus-per-stage, least energy, heaviest stage at 1125 MHz: perseus uses as little or less: true
	// envpipe, envelope: perseus uses as little or less: true
	// perseus-published, fastest, τ = 1 ms: perseus uses as little or less: true
	// perseus-published, least energy, τ = 1 ms: perseus uses as little or less: true
}
