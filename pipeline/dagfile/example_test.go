package dagfile_test

import (
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
	"github.com/perseus-energy/perseus/unit"
)

func ExampleRead() {
	f, err := dagfile.Read(strings.NewReader(`{
	  "format": "perseus-dag/1",
	  "resources": [{"name": "gpu0", "blocking_power_w": 80}],
	  "ops": [
	    {"name": "load", "time_s": 0.002},
	    {"name": "f0", "resource": "gpu0", "options": [
	      {"clock_mhz": 1410, "time_s": 0.030, "energy_j": 9},
	      {"clock_mhz": 1200, "time_s": 0.035, "energy_j": 8}]}],
	  "edges": [["load", "f0"]]
	}`), "job.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := f.Problem
	cost := p.Evaluate(make([]unit.Time, p.Graph.Ops), func(op int32) dag.Option { return p.Curve(op).Fastest() })
	fmt.Println(len(f.Ops), "ops take", cost.Time)
	// Output: 2 ops take 0.032s
}
