package characterize

import (
	"bytes"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
)

// FuzzProblem has a problem made of any header that can be read, or an error.
func FuzzProblem(f *testing.F) {
	j := a100(f, 1)
	j.Measurements = same{j.Measurements, 8}
	file := run(f, j, Options{Points: 3})
	for i := range file.Header.Curves {
		c := &file.Header.Curves[i]
		c.Options = c.Options[:3]
		c.Top = c.Options[2]
	}
	f.Add(written(f, file))
	file.Header.Order = j.Order.ToActions()
	file.Header.Schedule = "custom"
	f.Add(written(f, file))
	j = terms(f, "1f1b", pipeline.Size{Ranks: 2, Microbatches: 2})
	f.Add(written(f, run(f, j, Options{})))
	j = terms(f, "dualpipe", pipeline.Size{Ranks: 2, Microbatches: 4})
	f.Add(written(f, run(f, j, Options{Points: 3})))
	graph, err := dagfile.Read(strings.NewReader(`{"format":"perseus-dag/1","resources":[{"name":"g","blocking_power_w":3}],
		"ops":[{"name":"a","resource":"g","time_s":1},{"name":"b","time_s":1},{"name":"c","resource":"g","time_s":1,"energy_j":4}],"edges":[["a","b"],["b","c"]]}`), "g")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written(f, run(f, NewGraphJob(graph, strings.Repeat("0", 64)), Options{})))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := frontierfile.Read(bytes.NewReader(text), "F.json")
		if err != nil || file.Header.Ops > 1<<12 {
			return
		}
		p, order, err := Problem(&file.Header)
		if err != nil {
			return
		}
		if p.Graph.Ops != file.Header.Ops || order.Ops() > p.Graph.Ops || len(p.Graph.Arcs) != file.Header.Arcs {
			t.Fatalf("%d ops and %d arcs, want %d and %d", p.Graph.Ops, len(p.Graph.Arcs), file.Header.Ops, file.Header.Arcs)
		}
	})
}
