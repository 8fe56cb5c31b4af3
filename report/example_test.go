package report_test

import (
	"log"
	"math"
	"os"

	"github.com/perseus-energy/perseus/report"
)

// A plot for a terminal without braille.
func ExamplePlot() {
	var curve []report.XY
	for i := range 30 {
		x := 2.8 + float64(i)/20
		curve = append(curve, report.XY{X: x, Y: 5600 + 900*math.Exp(-3*(x-2.8)) + 200*(x-3)*(x-3)})
	}
	mark := report.Mark{XY: curve[0], Label: "fastest", Rune: 'o'}
	if err := report.Plot(os.Stdout, curve, []report.Mark{mark}, report.PlotOptions{Width: 60, Height: 10, ASCII: true}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 6500 +  o.
	//      |   ...
	//      |     ...
	//      |       ....
	// 6000 +          ....
	//      |             .......                        ........
	//      |                   ..........................
	//      +---------+---------------------------------+----------
	//                3                                 4
	//                          up: J; right: s
}
