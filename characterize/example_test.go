package characterize_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
	"github.com/perseus-energy/perseus/verify"
)

const measurements = `stage,instruction,frequency,time,energy
0,forward,1410,0.050,24
0,forward,1200,0.056,21
0,backward,1410,0.093,45
0,backward,1200,0.104,39
1,forward,1410,0.040,19
1,forward,1200,0.045,17
1,backward,1410,0.075,36
1,backward,1200,0.084,31
`

// The frontier of a pipeline of two stages, and its check.
func Example() {
	p, err := profile.Read(strings.NewReader(measurements), "measurements", profile.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 2, Microbatches: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	job := characterize.NewJob(p, order, 84*unit.Watt)
	f, err := characterize.Run(context.Background(), job, characterize.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, fastest := &f.Header, &f.Points[0]
	fmt.Printf("from %v to %v in %d points\n", h.TMin, h.TMax, len(f.Points))
	fmt.Printf("all at top clock %v, fastest plan %v\n", h.MaxClockEnergy, fastest.Energy)

	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		fmt.Println(err)
		return
	}
	report, err := verify.Read(&file, "F.json", []byte(measurements))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d certificates hold\n", report.Points)
	// Output:
	// from 0.659s to 0.738s in 5 points
	// all at top clock 520.024J, fastest plan 493.244J
	// 5 certificates hold
}
