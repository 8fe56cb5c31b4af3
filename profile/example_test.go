package profile_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/profile"
)

func ExampleRead() {
	const file = `stage,instruction,frequency,time,energy
0,forward,1410,50.2,23.81
0,forward,1410,50.0,23.79
0,forward,1200,56.1,19.92
`
	_, err := profile.Read(strings.NewReader(file), "gpt3.csv", profile.Options{})
	var refused *profile.Error
	if errors.As(err, &refused) {
		fmt.Println(err)
	}
	units, err := profile.ParseUnits("time=ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := profile.Read(strings.NewReader(file), "gpt3.csv", profile.Options{Units: units})
	if err != nil {
		fmt.Println(err)
		return
	}
	options, err := p.Options(0, "forward")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range options {
		fmt.Println(o.Knobs.ClockMHz, o.Time, o.Energy)
	}
	fmt.Println(strings.Join(p.Report.Lines(), "\n"))
	// Output:
	// gpt3.csv:2:21: energy "23.81": in a time of 50.2s that is 0.474 W, too little for a GPU; it would be usual as time=ms (3 of 3 rows are so: say what the units are with Options.Units)
	// 1200 0.0561s 19.92J
	// 1410 0.0501s 23.8J
	// gpt3.csv: 3 rows, 1 stage, forward
	// combined: 1 repeat of the same op, clock and GPU by their median
	// stage 0: forward: 2 clocks, 1200–1410 MHz
}

func ExampleSynthetic() {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 4, Repeats: 5})
	fmt.Println(strings.Join(p.Report.Lines(), "\n"))
	// Output:
	// synthetic profile: 1640 rows, 4 stages, backward and forward
	// combined: 1312 repeats of the same op, clock and GPU by their median
	// stages 0–3: backward and forward: 41 clocks, 810–1410 MHz
}
