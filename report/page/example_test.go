package page_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report/page"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// A page to show to others, and one of its pictures.
func ExampleContents() {
	measured := profile.Synthetic(profile.SyntheticConfig{Stages: 4})
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 4, Microbatches: 8})
	if err != nil {
		log.Fatal(err)
	}
	frontier, err := characterize.Run(context.Background(), characterize.NewJob(measured, order, 84*unit.Watt), characterize.Options{})
	if err != nil {
		log.Fatal(err)
	}
	price, err := page.ParseRate("0.12")
	if err != nil {
		log.Fatal(err)
	}
	contents, err := page.New(frontier, page.Options{
		Request: plan.Request{Goal: plan.Fastest, Effort: round.Fast},
		Profile: measured,
		Prices:  page.Prices{Money: &price},
	})
	if err != nil {
		log.Fatal(err)
	}
	var html, picture bytes.Buffer
	if err := contents.WriteHTML(&html); err != nil {
		log.Fatal(err)
	}
	if err := contents.Pictures()[0].WritePNG(&picture, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(html.Len() < 3<<20, picture.Len() > 0)
	// Output:
	// true true
}
