package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// graphFile is a file of the format perseus-dag/1; numbers as they are written.
type graphFile struct {
	Resources []struct {
		Name  string
		Power json.Number `json:"blocking_power_w"`
	}
	Curves []struct {
		Name    string
		Options []graphOption
	}
	Ops []struct {
		Name     string
		Resource *string
		Curve    *string
		Options  []graphOption
		Time     json.Number `json:"time_s"`
		Energy   json.Number `json:"energy_j"`
	}
	Edges [][2]string
}

type graphOption struct {
	Clock  json.Number `json:"clock_mhz"`
	Time   json.Number `json:"time_s"`
	Energy json.Number `json:"energy_j"`
}

// graphProblem derives a problem from the text of a graph, and compares the header
// with it.
func graphProblem(h *frontierfile.Header, text string) (*dag.Problem, *measurements, error) {
	var f graphFile
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &f); err != nil {
		return nil, nil, violated("profile", "%v", err)
	}
	want := frontierfile.Header{
		Schedule: "dag", Ranks: len(f.Resources), Chunks: 1, Microbatches: 1, Stages: 1, GPUsPerRank: 1,
		Profile: frontierfile.Profile{SHA256: h.Profile.SHA256, TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"},
	}
	for _, err := range []error{
		differs("schedule", h.Schedule, want.Schedule), differs("ranks", h.Ranks, want.Ranks), differs("chunks", h.Chunks, 1),
		differs("microbatches", h.Microbatches, 1), differs("stages", h.Stages, 1), differs("gpus_per_rank", h.GPUsPerRank, 1),
		differs("group_size", h.Group, 0), differs("profile", h.Profile, want.Profile), differs("order", len(h.Order), 0),
		differs("blocking_power_w", len(h.BlockingPower), want.Ranks), differs("graph.ops", len(h.Graph.Ops), len(f.Ops)),
		differs("terms", len(h.Derived)+len(h.Fixed)+len(h.Caps)+len(h.MicrobatchFactors)+len(h.OpFactors)+int(h.TransferTime), 0),
		differs("parallel", h.Parallel == nil, true), differs("graph.resources", len(h.Graph.Resources), want.Ranks),
	} {
		if err != nil {
			return nil, nil, err
		}
	}
	resource := map[string]int{}
	for i, r := range f.Resources {
		resource[r.Name] = i
		p, err := decimal(r.Power, 6, unit.Nearest)
		if err != nil {
			return nil, nil, violated("profile", "resource %q: %v", r.Name, err)
		}
		if r.Name != h.Graph.Resources[i] || unit.Power(p) != h.BlockingPower[i] {
			return nil, nil, violated("graph.resources", "resource %d is %q, which waits at %v", i, r.Name, unit.Power(p))
		}
	}
	keys, number, err := f.ops(h, resource)
	if err != nil {
		return nil, nil, err
	}
	arcs, err := f.arcs(h, number)
	if err != nil {
		return nil, nil, err
	}
	g, err := dag.NewGraph(len(f.Ops), arcs)
	if err != nil {
		return nil, nil, violated("graph", "%v", err)
	}
	m := &measurements{rows: len(f.Ops), stages: 1, members: 1, options: map[source][]dag.Option{}}
	p, err := problem(h, g, keys, func(k frontierfile.Key) ([]dag.Option, error) {
		options, err := f.options(k)
		m.options[source{k.Stage, k.Instruction}] = options
		return options, err
	})
	return p, m, err
}

// ops returns the key of each op and its number by name, after checking that the
// header lists the ops in that order: by resource, those without last, each in the
// order of the file.
func (f *graphFile) ops(h *frontierfile.Header, resource map[string]int) (keys []frontierfile.Key, number map[string]int32, err error) {
	type numbered struct{ at, old int }
	list := make([]numbered, len(f.Ops))
	for i, op := range f.Ops {
		list[i] = numbered{len(f.Resources), i}
		if op.Resource != nil {
			at, ok := resource[*op.Resource]
			if !ok {
				return nil, nil, violated("profile", "op %q: there is no resource %q", op.Name, *op.Resource)
			}
			list[i].at = at
		}
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return cmp.Compare(a.at, b.at) })
	number = make(map[string]int32, len(list))
	for i, n := range list {
		op := &f.Ops[n.old]
		number[op.Name] = int32(i)
		said := h.Graph.Ops[i]
		k := frontierfile.Key{Stage: 1, Instruction: op.Name, Factors: frontierfile.Factors{Time: unit.One, Energy: unit.One}}
		curve := ""
		if op.Curve != nil {
			curve = *op.Curve
			k.Stage, k.Instruction = 0, curve
		}
		at := -1
		if n.at < len(f.Resources) {
			at = n.at
			k.BlockingPower = h.BlockingPower[at]
		}
		if said.Name != op.Name || said.Resource != at || said.Curve != curve {
			return nil, nil, violated(fmt.Sprintf("graph.ops[%d]", i), "it is %q, on resource %d, with curve %q", op.Name, at, curve)
		}
		keys = append(keys, k)
	}
	if len(number) != len(list) {
		return nil, nil, violated("profile", "two ops have one name")
	}
	return keys, number, nil
}

// arcs returns the dependencies, after checking that the header has the same.
func (f *graphFile) arcs(h *frontierfile.Header, number map[string]int32) ([]dag.Arc, error) {
	set := map[dag.Arc]bool{}
	for _, e := range f.Edges {
		from, ok1 := number[e[0]]
		to, ok2 := number[e[1]]
		if !ok1 || !ok2 {
			return nil, violated("profile", "edge %q: there is no such op", e)
		}
		set[dag.Arc{From: from, To: to}] = true
	}
	var all []dag.Arc
	for i := 1; i < len(h.Graph.Ops); i++ {
		a := dag.Arc{From: int32(i - 1), To: int32(i)}
		if r := h.Graph.Ops[i].Resource; r >= 0 && r == h.Graph.Ops[i-1].Resource {
			delete(set, a)
			all = append(all, a)
		}
	}
	for _, a := range h.Graph.Edges {
		if !set[a] {
			return nil, violated("graph.edges", "%d → %d is not there, or twice, or follows from the order", a.From, a.To)
		}
		delete(set, a)
		all = append(all, a)
	}
	for a := range set {
		return nil, violated("graph.edges", "an edge is missing, as from %d to %d", a.From, a.To)
	}
	return all, nil
}

// options returns the options of a key, as the file has them.
func (f *graphFile) options(k frontierfile.Key) ([]dag.Option, error) {
	if k.Stage == 0 {
		for _, c := range f.Curves {
			if c.Name == k.Instruction {
				return readOptions(c.Options)
			}
		}
		return nil, fmt.Errorf("there is no curve %q", k.Instruction)
	}
	for _, op := range f.Ops {
		if op.Name == k.Instruction && op.Curve == nil {
			if op.Time != "" {
				return readOptions([]graphOption{{Time: op.Time, Energy: cmp.Or(op.Energy, "0")}})
			}
			return readOptions(op.Options)
		}
	}
	return nil, fmt.Errorf("there is no op %q", k.Instruction)
}

func readOptions(list []graphOption) ([]dag.Option, error) {
	options := make([]dag.Option, len(list))
	for i, o := range list {
		clock, err1 := decimal(cmp.Or(o.Clock, "0"), 0, unit.Nearest)
		time, err2 := decimal(o.Time, 9, unit.Up)
		energy, err3 := decimal(o.Energy, 12, unit.Nearest)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return nil, err
		}
		options[i] = dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}, Time: unit.Time(time), Energy: unit.Energy(energy)}
	}
	if len(options) == 0 {
		return nil, fmt.Errorf("there is no option")
	}
	return options, nil
}

func decimal(n json.Number, digits int, r unit.Rounding) (int64, error) {
	v, _, err := unit.ParseDecimal(string(n), digits, r)
	return v, err
}
