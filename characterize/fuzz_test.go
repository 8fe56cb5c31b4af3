package characterize

import (
	"bytes"
	"testing"

	"github.com/perseus-energy/perseus/frontierfile"
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
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := frontierfile.Read(bytes.NewReader(text), "F.json")
		if err != nil || file.Header.Ops > 1<<12 {
			return
		}
		p, order, err := Problem(&file.Header)
		if err != nil {
			return
		}
		if p.Graph.Ops != file.Header.Ops || order.Ops() != p.Graph.Ops || len(p.Graph.Arcs) != file.Header.Arcs {
			t.Fatalf("%d ops and %d arcs, want %d and %d", p.Graph.Ops, len(p.Graph.Arcs), file.Header.Ops, file.Header.Arcs)
		}
	})
}
