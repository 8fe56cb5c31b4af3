package frontierfile_test

import (
	"fmt"
	"os"

	"github.com/perseus-energy/perseus/frontierfile"
)

// The clock of each op at the fastest point of a file.
func ExampleRead() {
	r, err := os.Open("testdata/small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	f, err := frontierfile.Read(r, "small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	choice, err := f.Choice(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	forward := &f.Header.Curves[f.Header.Curve(0, "forward", f.Header.BlockingPower[0])]
	fmt.Println(f.Points[0].Time, forward.Options[choice[0]].Knobs.ClockMHz, "MHz")
	// Output: 0.0000003s 1000 MHz
}
