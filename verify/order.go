package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
)

// order is what each rank runs, in which order, and what depends on what.
type order struct {
	ops   []op
	graph *dag.Graph
	own   map[ownKey]frontierfile.Factors
}

// op is one action: one part, or two that run together; or a transfer, which has no
// part and the rank −1.
type op struct {
	rank, stage int
	instruction string
	parts       []part
}

// part is one microbatch's pass through a stage; kind is a letter as in 2F0, or a
// word for what belongs to no microbatch.
type part struct {
	kind       string
	stage      int
	microbatch int
}

// given names the schedules whose orders this package does not derive: the file
// holds them.
var given = []string{
	"custom", "gpipe-forward", "interleaved-1f1b", "looped-bfs", "interleaved-zero-bubble",
	"zb-h1", "zb-h1-quickstart", "zbv", "dualpipe", "dualpipev", "1f1b-early-recompute",
}

// orderOf returns the order that the header describes, after checking that the
// header's sizes are the order's. How many ops there are is for the caller to
// compare: transfers are among them.
func orderOf(h *frontierfile.Header) (*order, error) {
	if err := differs("blocking_power_w", len(h.BlockingPower), h.Ranks); err != nil {
		return nil, err
	}
	ranks, err := actionsOf(h)
	if err != nil {
		return nil, err
	}
	o := &order{}
	for r, actions := range ranks {
		for _, text := range actions {
			x, err := parseAction(text)
			if err != nil {
				return nil, violated("order", "rank %d: %v", r, err)
			}
			x.rank = r
			o.ops = append(o.ops, x)
		}
	}
	if err := o.sizes(h, len(ranks)); err != nil {
		return nil, err
	}
	at, err := o.index()
	if err != nil {
		return nil, err
	}
	if err := o.complete(h, at); err != nil {
		return nil, err
	}
	arcs := o.arcs(at)
	if h.TransferTime > 0 {
		arcs = o.transfers(arcs)
	}
	if o.graph, err = dag.NewGraph(len(o.ops), arcs); err != nil {
		return nil, violated("order", "%v", err)
	}
	if err := o.terms(h); err != nil {
		return nil, err
	}
	return o, nil
}

// actionsOf returns the actions of each rank, as the file holds them or as the
// schedule's name says.
func actionsOf(h *frontierfile.Header) ([][]string, error) {
	// A file must not make this take more memory than its own size lets one expect.
	most, field := h.Ops, "ops"
	if h.Order != nil {
		if slices.Contains(given, h.Schedule) {
			return h.Order, nil
		}
		// With ops of a fixed time the orders of all others are written out too.
		if len(h.Fixed) == 0 {
			return nil, violated("schedule", "%q has no order of its own in a file", h.Schedule)
		}
		most, field = 0, "order"
		for _, actions := range h.Order {
			most += len(actions)
		}
	}
	if passes := 2 * int64(h.Ranks) * int64(h.Microbatches); passes > int64(most) {
		return nil, violated(field, "%d ranks and %d microbatches make %d forwards and backwards, which are more than %d ops", h.Ranks, h.Microbatches, passes, most)
	}
	ranks := make([][]string, h.Ranks)
	for r := range ranks {
		var warmup int // forwards before the first backward
		switch h.Schedule {
		case "gpipe":
			warmup = h.Microbatches
		case "1f1b":
			warmup = min(h.Microbatches, h.Ranks-r)
		default:
			return nil, violated("schedule", "%q is unknown here and the file has no order", h.Schedule)
		}
		ranks[r] = alternate(r, h.Microbatches, warmup)
	}
	if h.Order == nil {
		return ranks, nil
	}
	if !slices.EqualFunc(h.Order, ranks, equalButFixed) {
		return nil, violated("order", "not the order of %s", h.Schedule)
	}
	return h.Order, nil
}

// sizes compares the header's sizes with those of the actions on so many ranks.
func (o *order) sizes(h *frontierfile.Header, ranks int) error {
	stages, microbatches, chunks := 0, 0, 0
	on := make([]map[int]bool, ranks) // the stages of each rank
	for _, x := range o.ops {
		if on[x.rank] == nil {
			on[x.rank] = map[int]bool{}
		}
		for _, p := range x.parts {
			stages, microbatches = max(stages, p.stage+1), max(microbatches, p.microbatch+1)
			on[x.rank][p.stage] = true
		}
		chunks = max(chunks, len(on[x.rank]))
	}
	for _, field := range []struct {
		name          string
		said, derived int
	}{{"ranks", h.Ranks, ranks}, {"stages", h.Stages, stages}, {"microbatches", h.Microbatches, microbatches}, {"chunks", h.Chunks, chunks}} {
		if err := differs(field.name, field.said, field.derived); err != nil {
			return err
		}
	}
	return nil
}

// equalButFixed says whether a is b with fixed-time actions among it.
func equalButFixed(a, b []string) bool {
	var rest []string
	for _, text := range a {
		if !strings.Contains(text, "LOAD") && !strings.HasSuffix(text, "REDUCE_GRAD") && !strings.HasSuffix(text, "OPTIMIZER") {
			rest = append(rest, text)
		}
	}
	return slices.Equal(rest, b)
}

// alternate returns a rank's order of one stage: forwards up to warmup, then a
// backward and a forward in turn, then the backwards that are left.
func alternate(stage, microbatches, warmup int) []string {
	var actions []string
	for m := range warmup {
		actions = append(actions, fmt.Sprintf("%dF%d", stage, m))
	}
	for m := range microbatches {
		actions = append(actions, fmt.Sprintf("%dB%d", stage, m))
		if next := warmup + m; next < microbatches {
			actions = append(actions, fmt.Sprintf("%dF%d", stage, next))
		}
	}
	return actions
}

// parseAction reads "2F0", "(2F5;5B1)" or "3OPTIMIZER".
func parseAction(text string) (op, error) {
	if inner, ok := strings.CutPrefix(text, "("); ok {
		f, b, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ";")
		first, err1 := parsePart(f)
		second, err2 := parsePart(b)
		if err1 != nil || err2 != nil || first.kind != "F" || second.kind != "B" {
			return op{}, fmt.Errorf("action %.40q is not understood", text)
		}
		return op{stage: first.stage, instruction: "overlap", parts: []part{first, second}}, nil
	}
	p, err := parsePart(text)
	name := map[string]string{
		"F": "forward", "B": "backward", "I": "input-gradient", "W": "weight-gradient", "R": "recompute", "RB": "recompute-backward",
		"LOAD": "load", "REDUCE_GRAD": "reduce-gradient", "OPTIMIZER": "optimizer",
	}[p.kind]
	if err != nil || name == "" {
		return op{}, fmt.Errorf("action %.40q is not understood", text)
	}
	return op{stage: p.stage, instruction: name, parts: []part{p}}, nil
}

func parsePart(text string) (p part, err error) {
	const digits = "0123456789"
	rest := strings.TrimLeft(text, digits)
	p.kind = strings.TrimRight(rest, digits)
	if p.stage, err = strconv.Atoi(text[:len(text)-len(rest)]); err != nil {
		return p, err
	}
	if number := rest[len(p.kind):]; p.kind != "REDUCE_GRAD" && p.kind != "OPTIMIZER" {
		p.microbatch, err = strconv.Atoi(number)
	} else if number != "" {
		err = strconv.ErrSyntax
	}
	return p, err
}

// passes are the kinds of which a stage and microbatch has one at most, all on
// one rank; backwards are those that take the gradient from the next stage.
var (
	passes    = []string{"F", "R", "W", "B", "RB", "I"}
	backwards = []string{"B", "RB", "I"}
)

// places says which op each part is in.
type places map[part]int32

// find returns the op of the first of the kinds that a stage and microbatch has.
func (at places) find(stage, microbatch int, kinds ...string) (op int32, ok bool) {
	for _, k := range kinds {
		if i, ok := at[part{k, stage, microbatch}]; ok {
			return i, true
		}
	}
	return 0, false
}

// index returns where the parts are, after checking that no pass is there twice.
func (o *order) index() (places, error) {
	at := places{}
	for i, x := range o.ops {
		for _, p := range x.parts {
			if _, twice := at[p]; twice && slices.Contains(passes, p.kind) {
				return nil, violated("order", "%d%s%d is there twice", p.stage, p.kind, p.microbatch)
			}
			at[p] = int32(i)
		}
	}
	return at, nil
}

// complete checks that every stage and microbatch has what it needs on one rank.
func (o *order) complete(h *frontierfile.Header, at places) error {
	if int64(h.Stages)*int64(h.Microbatches) > int64(len(o.ops)) {
		return violated("order", "%d stages × %d microbatches need a forward each; there are %d ops", h.Stages, h.Microbatches, len(o.ops))
	}
	_, trains := at.find(0, 0, backwards...)
	for s := range h.Stages {
		for m := range h.Microbatches {
			has := map[string]bool{}
			rank := -1
			for _, k := range passes {
				x, ok := at.find(s, m, k)
				if !ok {
					continue
				}
				has[k] = true
				if r := o.ops[x].rank; rank >= 0 && r != rank {
					return violated("order", "stage %d, microbatch %d is on ranks %d and %d", s, m, rank, r)
				}
				rank = o.ops[x].rank
			}
			if !enough(has, trains) {
				return violated("order", "stage %d, microbatch %d: it needs a forward, and a backward or an input and a weight gradient", s, m)
			}
		}
	}
	return nil
}

// enough says whether the passes that a stage and microbatch has are those of a job
// that trains, or does not.
func enough(has map[string]bool, trains bool) bool {
	n := 0
	for _, k := range backwards {
		if has[k] {
			n++
		}
	}
	switch {
	case !has["F"] || has["I"] != has["W"]:
		return false
	case !trains:
		return n == 0 && !has["R"]
	default:
		return n == 1 && !(has["R"] && has["RB"])
	}
}

// arcs returns the dependencies: of each op on the one before it on its rank, and of
// each pass on those whose result it takes.
func (o *order) arcs(at places) []dag.Arc {
	var arcs []dag.Arc
	for i, x := range o.ops {
		to := int32(i)
		needs := func(stage, microbatch int, kinds ...string) {
			if from, ok := at.find(stage, microbatch, kinds...); ok {
				arcs = append(arcs, dag.Arc{From: from, To: to})
			}
		}
		if i > 0 && o.ops[i-1].rank == x.rank {
			arcs = append(arcs, dag.Arc{From: to - 1, To: to})
		}
		for _, p := range x.parts {
			switch p.kind {
			case "F":
				needs(p.stage-1, p.microbatch, "F")
			case "R":
				needs(p.stage, p.microbatch, "F")
			case "B", "RB", "I":
				needs(p.stage, p.microbatch, "F")
				needs(p.stage, p.microbatch, "R")
				needs(p.stage+1, p.microbatch, backwards...)
			case "W":
				needs(p.stage, p.microbatch, "I")
			}
		}
	}
	return arcs
}

// transferInstruction is that of an op which carries a value to another rank.
const transferInstruction = "transfer"

// transfers puts an op on each arc between ranks, numbered after all others by the
// arcs' ends.
func (o *order) transfers(arcs []dag.Arc) (with []dag.Arc) {
	slices.SortFunc(arcs, func(a, b dag.Arc) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, a := range slices.Compact(arcs) {
		if o.ops[a.From].rank == o.ops[a.To].rank {
			with = append(with, a)
			continue
		}
		via := int32(len(o.ops))
		o.ops = append(o.ops, op{rank: -1, instruction: transferInstruction})
		with = append(with, dag.Arc{From: a.From, To: via}, dag.Arc{From: via, To: a.To})
	}
	return with
}
