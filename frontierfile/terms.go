package frontierfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Terms are what a job has beyond its measurements, its schedule and its sizes.
// The zero value says that there is nothing of the kind.
type Terms struct {
	// Parallel says which GPUs the ranks are; nil where it was not said.
	Parallel *Parallel
	// Derived holds the rules by which instructions that were not measured follow
	// from others, as in "recompute=forward", by instruction.
	Derived []string
	// Fixed holds the times of ops that no clock changes, by instruction.
	Fixed []Fixed
	// TransferTime is how long a value takes from one rank to another; 0 for no
	// time, and no op.
	TransferTime unit.Time
	// Caps holds the highest clocks of ranks that have one, by rank.
	Caps []Cap
	// MicrobatchFactors holds how each microbatch differs from what was measured;
	// nil where none does.
	MicrobatchFactors []Factors
	// OpFactors holds single ops that differ, in place of their microbatch's, by
	// stage, microbatch and instruction.
	OpFactors []OpFactors
	// Graph is the job where it is no pipeline; nil where it is one.
	Graph *Graph
}

// Summary says in a line what there is besides the graph; it is empty for nothing.
func (t *Terms) Summary() string {
	var all []string
	add := func(n int, format string, args ...any) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(len(t.Derived), "derived %s", strings.Join(t.Derived, ", "))
	for _, f := range t.Fixed {
		add(1, "%s takes %v", f.Instruction, f.Time)
	}
	add(int(min(t.TransferTime, 1)), "transfers take %v", t.TransferTime)
	for _, c := range t.Caps {
		add(1, "rank %d up to %d MHz", c.Rank, c.MHz)
	}
	add(len(t.MicrobatchFactors), "%d microbatches' factors", len(t.MicrobatchFactors))
	add(len(t.OpFactors), "%d ops' factors", len(t.OpFactors))
	if p := t.Parallel; p != nil {
		add(1, "tp %d, cp %d, ep %d, dp %d, pp %d", p.TP, p.CP, p.EP, p.DP, p.PP)
		add(p.Replica+1, "pipeline %d alone", p.Replica)
	}
	return strings.Join(all, "; ")
}

// Parallel is how ranks are laid out over GPUs; docs/schedules.md has the rules.
type Parallel struct {
	TP, CP, EP, ETP, DP, PP int
	RankOrder               string
	// Replica is the pipeline that the frontier is of, or −1 for all of them.
	Replica int
}

// Fixed is the time of an instruction that no clock changes.
type Fixed struct {
	Instruction string
	Time        unit.Time
}

// Cap is the highest clock that a pipeline rank may have.
type Cap struct {
	Rank int
	MHz  int32
}

// Factors are by what an op's time and energy are multiplied; see One.
type Factors struct{ Time, Energy Ratio }

// One is the factor 1.
const One = unit.One

// OpFactors are those of one op.
type OpFactors struct {
	Stage, Microbatch int
	Instruction       string
	Factors
}

// Graph is a job that is no pipeline.
type Graph struct {
	// Resources are the names of what runs one op at a time: the ranks.
	Resources []string
	// Ops are numbered as everywhere: resource by resource in execution order, then
	// those that occupy none.
	Ops []GraphOp
	// Edges are the dependencies besides the order of each resource.
	Edges []dag.Arc
}

// GraphOp is an op of a graph.
type GraphOp struct {
	Name string
	// Resource is an index of Graph.Resources, or −1.
	Resource int
	// Curve is the name of the curve that the op shares with others; empty where its
	// options are its own.
	Curve string
}

// Key tells the entries of an option table apart.
type Key struct {
	Stage         int
	Instruction   string
	BlockingPower unit.Power
	SecondStage   int
	CapMHz        int32
	Factors       Factors
}

// Compare orders keys as option tables are sorted: by their fields, in their order.
func (k Key) Compare(l Key) int {
	return cmp.Or(
		cmp.Compare(k.Stage, l.Stage), cmp.Compare(k.Instruction, l.Instruction), cmp.Compare(k.BlockingPower, l.BlockingPower),
		cmp.Compare(k.SecondStage, l.SecondStage), cmp.Compare(k.CapMHz, l.CapMHz),
		cmp.Compare(k.Factors.Time, l.Factors.Time), cmp.Compare(k.Factors.Energy, l.Factors.Energy),
	)
}

// String names what a key stands for.
func (k Key) String() string {
	s := fmt.Sprintf("stage %d, %s, on GPUs that wait at %v", k.Stage, k.Instruction, k.BlockingPower)
	if k.Instruction == overlap && k.SecondStage != k.Stage {
		s += fmt.Sprintf(", with stage %d", k.SecondStage)
	}
	if k.CapMHz > 0 {
		s += fmt.Sprintf(", up to %d MHz", k.CapMHz)
	}
	if k.Factors != (Factors{One, One}) {
		s += fmt.Sprintf(", times %v (energy %v)", k.Factors.Time, k.Factors.Energy)
	}
	return s
}

// overlap is the instruction of which a key has a second stage.
const overlap = "overlap"

// Key returns the key of an entry of the option table.
func (c *Curve) Key() Key {
	k := Key{c.Stage, c.Instruction, c.BlockingPower, c.SecondStage, c.CapMHz, c.Factors}
	k.Factors.Time, k.Factors.Energy = cmp.Or(k.Factors.Time, One), cmp.Or(k.Factors.Energy, One)
	return k
}

// NewCurve returns the entry of the option table with the key k.
func NewCurve(k Key, c *dag.Curve) Curve {
	// As it is read: absent is One.
	if k.Factors.Time == One {
		k.Factors.Time = 0
	}
	if k.Factors.Energy == One {
		k.Factors.Energy = 0
	}
	return Curve{
		Stage: k.Stage, Instruction: k.Instruction, BlockingPower: k.BlockingPower,
		SecondStage: k.SecondStage, CapMHz: k.CapMHz, Factors: k.Factors,
		Options: c.Options, Top: c.Top,
	}
}

// terms writes what there is of t, each on a line of its own.
func (o *output) terms(t *Terms) {
	if p := t.Parallel; p != nil {
		v := struct {
			TP        int    `json:"tp"`
			CP        int    `json:"cp"`
			EP        int    `json:"ep"`
			ETP       int    `json:"etp"`
			DP        int    `json:"dp"`
			PP        int    `json:"pp"`
			RankOrder string `json:"rank_order"`
			Replica   *int   `json:"replica,omitempty"`
		}{p.TP, p.CP, p.EP, p.ETP, p.DP, p.PP, p.RankOrder, nil}
		if p.Replica >= 0 {
			v.Replica = &p.Replica
		}
		o.value("parallel", v)
	}
	if t.Derived != nil {
		o.value("derived", t.Derived)
	}
	if t.Fixed != nil {
		type fixed struct {
			Instruction string    `json:"instruction"`
			Time        unit.Time `json:"time_s"`
		}
		var all []fixed
		for _, f := range t.Fixed {
			all = append(all, fixed(f))
		}
		o.value("fixed", all)
	}
	if t.TransferTime != 0 {
		o.value("transfer_time_s", t.TransferTime)
	}
	if t.Caps != nil {
		type capJSON struct {
			Rank int   `json:"rank"`
			MHz  int32 `json:"clock_mhz"`
		}
		var all []capJSON
		for _, c := range t.Caps {
			all = append(all, capJSON(c))
		}
		o.value("caps", all)
	}
	if t.MicrobatchFactors != nil {
		var all [][2]Ratio
		for _, f := range t.MicrobatchFactors {
			all = append(all, [2]Ratio{f.Time, f.Energy})
		}
		o.value("microbatch_factors", all)
	}
	if t.OpFactors != nil {
		o.opFactors(t.OpFactors)
	}
	if t.Graph != nil {
		o.graph(t.Graph)
	}
}

func (o *output) opFactors(all []OpFactors) {
	o.raw("\"op_factors\":[")
	for i, f := range all {
		if i > 0 {
			o.raw(",")
		}
		o.raw(fmt.Sprintf("\n{\"stage\":%d,\"microbatch\":%d,\"instruction\":%s,\"time_factor\":%v,\"energy_factor\":%v}",
			f.Stage, f.Microbatch, quote(f.Instruction), f.Time, f.Energy))
	}
	o.raw("\n],\n")
}

func (o *output) graph(g *Graph) {
	resources := append([]string{}, g.Resources...)
	o.raw("\"graph\":{\n")
	o.value("resources", resources)
	o.raw("\"ops\":[")
	for i, op := range g.Ops {
		if i > 0 {
			o.raw(",")
		}
		o.raw("\n{\"name\":" + string(quote(op.Name)))
		if op.Resource >= 0 {
			o.raw(fmt.Sprintf(",\"resource\":%d", op.Resource))
		}
		if op.Curve != "" {
			o.raw(",\"curve\":" + string(quote(op.Curve)))
		}
		o.raw("}")
	}
	o.raw("\n],\n\"edges\":[")
	for i, e := range g.Edges {
		if i > 0 {
			o.raw(",")
		}
		o.raw(fmt.Sprintf("[%d,%d]", e.From, e.To))
	}
	o.raw("]},\n")
}

// terms returns the readers of the fields of t, all optional.
func (p *parser) terms(t *Terms) []fieldReader {
	return []fieldReader{
		{name: "parallel", read: func() { p.parallel(t) }, optional: true},
		{name: "derived", read: func() { p.array(func(int) { t.Derived = append(t.Derived, p.string()) }) }, optional: true},
		{name: "fixed", read: func() { p.array(func(int) { p.fixed(t) }) }, optional: true},
		{name: "transfer_time_s", read: func() { t.TransferTime = p.time(unit.MaxOpTime) }, optional: true},
		{name: "caps", read: func() { p.array(func(int) { p.clockCap(t) }) }, optional: true},
		{name: "microbatch_factors", read: func() {
			p.array(func(int) {
				var f Factors
				p.pair(func() { f.Time = p.factor() }, func() { f.Energy = p.factor() })
				t.MicrobatchFactors = append(t.MicrobatchFactors, f)
			})
		}, optional: true},
		{name: "op_factors", read: func() { p.array(func(int) { p.opFactor(t) }) }, optional: true},
		{name: "graph", read: func() { p.graph(t) }, optional: true},
	}
}

// maxFactor bounds factors.
const maxFactor = 1000 * One

func (p *parser) factor() Ratio { return Ratio(p.decimal(9, 1, int64(maxFactor))) }

// pair reads an array of two values.
func (p *parser) pair(first, second func()) {
	p.expect('[')
	first()
	p.expect(',')
	second()
	p.expect(']')
}

// count returns what reads an integer into n.
func (p *parser) count(n *int, least, most int64) func() {
	return func() { *n = int(p.integer(least, most)) }
}

func (p *parser) parallel(t *Terms) {
	const most = 1 << 20
	v := Parallel{Replica: -1}
	p.object(
		fieldReader{name: "tp", read: p.count(&v.TP, 1, most)},
		fieldReader{name: "cp", read: p.count(&v.CP, 1, most)},
		fieldReader{name: "ep", read: p.count(&v.EP, 1, most)},
		fieldReader{name: "etp", read: p.count(&v.ETP, 1, most)},
		fieldReader{name: "dp", read: p.count(&v.DP, 1, most)},
		fieldReader{name: "pp", read: p.count(&v.PP, 1, most)},
		fieldReader{name: "rank_order", read: func() { v.RankOrder = p.string() }},
		fieldReader{name: "replica", read: p.count(&v.Replica, 0, most), optional: true},
	)
	t.Parallel = &v
}

func (p *parser) fixed(t *Terms) {
	var v Fixed
	p.object(
		fieldReader{name: "instruction", read: func() { v.Instruction = p.string() }},
		fieldReader{name: "time_s", read: func() { v.Time = p.time(unit.MaxOpTime) }},
	)
	t.Fixed = append(t.Fixed, v)
}

func (p *parser) clockCap(t *Terms) {
	var rank, clock int
	p.object(
		fieldReader{name: "rank", read: p.count(&rank, 0, maxOps)},
		fieldReader{name: "clock_mhz", read: p.count(&clock, 1, 1<<31-1)},
	)
	t.Caps = append(t.Caps, Cap{rank, int32(clock)})
}

func (p *parser) opFactor(t *Terms) {
	var v OpFactors
	p.object(
		fieldReader{name: "stage", read: p.count(&v.Stage, 0, maxOps)},
		fieldReader{name: "microbatch", read: p.count(&v.Microbatch, 0, maxOps)},
		fieldReader{name: "instruction", read: func() { v.Instruction = p.string() }},
		fieldReader{name: "time_factor", read: func() { v.Time = p.factor() }},
		fieldReader{name: "energy_factor", read: func() { v.Energy = p.factor() }},
	)
	t.OpFactors = append(t.OpFactors, v)
}

func (p *parser) graph(t *Terms) {
	g := &Graph{}
	p.object(
		fieldReader{name: "resources", read: func() { p.array(func(int) { g.Resources = append(g.Resources, p.string()) }) }},
		fieldReader{name: "ops", read: func() {
			p.array(func(int) {
				op := GraphOp{Resource: -1}
				p.object(
					fieldReader{name: "name", read: func() { op.Name = p.string() }},
					fieldReader{name: "resource", read: p.count(&op.Resource, 0, maxOps), optional: true},
					fieldReader{name: "curve", read: func() { op.Curve = p.string() }, optional: true},
				)
				g.Ops = append(g.Ops, op)
			})
		}},
		fieldReader{name: "edges", read: func() {
			p.array(func(int) {
				var e dag.Arc
				p.pair(func() { e.From = int32(p.integer(0, maxOps)) }, func() { e.To = int32(p.integer(0, maxOps)) })
				g.Edges = append(g.Edges, e)
			})
		}},
	)
	t.Graph = g
}
