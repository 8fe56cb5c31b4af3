package derive_test

import (
	"fmt"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/unit"
)

func ExampleRule_Options() {
	rule, err := derive.ParseRule("input-gradient=backward*0.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := rule.Options(func(string) ([]dag.Option, error) {
		return []dag.Option{
			{Knobs: dag.Knobs{ClockMHz: 1200}, Time: 90 * unit.Millisecond, Energy: 40e12},
			{Knobs: dag.Knobs{ClockMHz: 1410}, Time: 80 * unit.Millisecond, Energy: 45e12},
		}, nil
	})
	for _, o := range options {
		fmt.Println(o.Knobs.ClockMHz, o.Time, o.Energy)
	}
	fmt.Println(err)
	// Output:
	// 1200 0.045s 20J
	// 1410 0.04s 22.5J
	// <nil>
}
