package characterize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
)

// GraphSchedule is the name of the schedule in the file of a job that is no
// pipeline.
const GraphSchedule = "dag"

// The stages under which the option table of a graph holds named curves, by their
// name, and options of a single op, by the op's name.
const (
	namedCurves = 0
	ownOptions  = 1
)

// maxName bounds the names that a file can hold, in bytes.
const maxName = 512

// NewGraphJob returns the job of a graph; sha256 is that of the file's bytes,
// uncompressed, in hexadecimal.
func NewGraphJob(f *dagfile.File, sha256 string) Job {
	return Job{Graph: f, Profile: frontierfile.Profile{SHA256: sha256, TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"}}
}

// graphProblem is problem for a graph. Ops are numbered anew: resource by resource,
// each in the order of the file, then those that occupy none.
func (j *Job) graphProblem() (*dag.Problem, frontierfile.Header, error) {
	f := j.Graph
	graph := &frontierfile.Graph{Ops: make([]frontierfile.GraphOp, len(f.Ops))}
	h := frontierfile.Header{
		Schedule: GraphSchedule, Ranks: len(f.Resources), Chunks: 1, Microbatches: 1, Stages: 1, GPUsPerRank: 1,
		Profile: j.Profile, Terms: frontierfile.Terms{Graph: graph},
	}
	for _, r := range f.Resources {
		graph.Resources = append(graph.Resources, r.Name)
		h.BlockingPower = append(h.BlockingPower, r.BlockingPower)
		if len(r.Name) > maxName {
			return nil, h, fmt.Errorf("resource %.40q…: a name has at most %d bytes", r.Name, maxName)
		}
	}
	old := make([]int32, len(f.Ops)) // by new number
	for i := range old {
		old[i] = int32(i)
	}
	slices.SortStableFunc(old, func(a, b int32) int {
		return cmp.Compare(uint(f.Ops[a].Resource), uint(f.Ops[b].Resource)) // −1 comes last
	})
	number := make([]int32, len(f.Ops)) // new, by old
	for i, k := range old {
		op := &f.Ops[k]
		number[k] = int32(i)
		graph.Ops[i] = frontierfile.GraphOp{Name: op.Name, Resource: op.Resource, Curve: op.Curve}
		if max(len(op.Name), len(op.Curve)) > maxName {
			return nil, h, fmt.Errorf("op %.40q…: a name has at most %d bytes", op.Name, maxName)
		}
	}
	for _, a := range f.Problem.Graph.Arcs[:f.Problem.Graph.Dependencies] {
		a = dag.Arc{From: number[a.From], To: number[a.To]}
		if !follows(graph, a) {
			graph.Edges = append(graph.Edges, a)
		}
	}
	slices.SortFunc(graph.Edges, func(a, b dag.Arc) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	g, ofOp, err := keyedGraph(&h)
	if err != nil {
		return nil, h, err
	}
	h.Ops, h.Arcs = g.Ops, len(g.Arcs)

	curves := map[frontierfile.Key]*dag.Curve{}
	for i, k := range ofOp {
		curves[k] = f.Problem.Curve(old[i])
	}
	for _, k := range slices.SortedFunc(maps.Keys(curves), frontierfile.Key.Compare) {
		h.Curves = append(h.Curves, frontierfile.NewCurve(k, curves[k]))
	}
	p, err := tabled(&h, g, ofOp)
	return p, h, err
}

// follows says whether an arc is one between neighbours on a resource, which a
// file leaves out.
func follows(g *frontierfile.Graph, a dag.Arc) bool {
	r := g.Ops[a.From].Resource
	return a.To == a.From+1 && r >= 0 && r == g.Ops[a.To].Resource
}

// keyedGraph returns the graph that a header describes, and the key of each op's
// options.
func keyedGraph(h *frontierfile.Header) (*dag.Graph, []frontierfile.Key, error) {
	graph := h.Graph
	arcs := slices.Clone(graph.Edges)
	keys := make([]frontierfile.Key, len(graph.Ops))
	before := 0
	for i, op := range graph.Ops {
		k := frontierfile.Key{Stage: namedCurves, Instruction: op.Curve, Factors: frontierfile.Factors{Time: frontierfile.One, Energy: frontierfile.One}}
		if op.Curve == "" {
			k.Stage, k.Instruction = ownOptions, op.Name
		}
		switch r := op.Resource; {
		case r >= len(h.BlockingPower) || r >= 0 && r < before:
			return nil, nil, fmt.Errorf("graph.ops[%d]: resource %d; ops are listed resource by resource, and there are %d", i, r, len(h.BlockingPower))
		case r >= 0:
			k.BlockingPower, before = h.BlockingPower[r], r
		default:
			before = len(h.BlockingPower) // none may follow
		}
		keys[i] = k
		if i > 0 && follows(graph, dag.Arc{From: int32(i - 1), To: int32(i)}) {
			arcs = append(arcs, dag.Arc{From: int32(i - 1), To: int32(i)})
		}
	}
	g, err := dag.NewGraph(len(graph.Ops), arcs)
	return g, keys, err
}

// graphOf is Problem for a graph. The order has a rank for each resource and an
// action of no kind for each of its ops; those that occupy no resource come after
// them, in the problem alone.
func graphOf(h *frontierfile.Header) (*dag.Problem, *pipeline.Order, error) {
	if h.Schedule != GraphSchedule || h.Order != nil {
		return nil, nil, fmt.Errorf("schedule: %q, but the file has a graph", h.Schedule)
	}
	if len(h.Graph.Resources) != h.Ranks {
		return nil, nil, fmt.Errorf("graph.resources: %d names for %d ranks", len(h.Graph.Resources), h.Ranks)
	}
	g, ofOp, err := keyedGraph(h)
	if err != nil {
		return nil, nil, err
	}
	if g.Ops != h.Ops || len(g.Arcs) != h.Arcs {
		return nil, nil, fmt.Errorf("ops, arcs: the header has %d and %d, but the graph %d and %d", h.Ops, h.Arcs, g.Ops, len(g.Arcs))
	}
	p, err := tabled(h, g, ofOp)
	if err != nil {
		return nil, nil, err
	}
	o := &pipeline.Order{
		Schedule: GraphSchedule, Size: pipeline.Size{Ranks: h.Ranks, Chunks: 1, Microbatches: 1},
		Stages: 1, Placement: pipeline.Custom, Ranks: make([][]pipeline.Action, h.Ranks),
	}
	for _, op := range h.Graph.Ops {
		if r := op.Resource; r >= 0 {
			o.Ranks[r] = append(o.Ranks[r], pipeline.Action{})
		}
	}
	return p, o, nil
}
