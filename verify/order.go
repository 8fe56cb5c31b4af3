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
// header's sizes are the order's.
func orderOf(h *frontierfile.Header) (*order, error) {
	if err := differs("blocking_power_w", len(h.BlockingPower), h.Ranks); err != nil {
		return nil, err
	}
	var ranks [][]string
	switch {
	case h.Order != nil:
		ranks = h.Order
		if slices.Contains(given, h.Schedule) {
			break
		}
		// With ops of a fixed time these two are written out too.
		derived, err := orderOf(&frontierfile.Header{
			Schedule: h.Schedule, Ranks: h.Ranks, Chunks: h.Chunks, Microbatches: h.Microbatches, Stages: h.Stages,
			Ops: 2 * h.Ranks * h.Microbatches, BlockingPower: h.BlockingPower,
		})
		if err != nil || len(h.Fixed) == 0 {
			return nil, violated("schedule", "%q has no order of its own in a file", h.Schedule)
		}
		if !slices.EqualFunc(ranks, derived.texts(), equalButFixed) {
			return nil, violated("order", "not the order of %s", h.Schedule)
		}
	case int64(h.Ops) != 2*int64(h.Ranks)*int64(h.Microbatches):
		return nil, violated("ops", "%d ranks and %d microbatches make 2·%d·%d ops, not %d", h.Ranks, h.Microbatches, h.Ranks, h.Microbatches, h.Ops)
	default:
		for r := range h.Ranks {
			var warmup int // forwards before the first backward
			switch h.Schedule {
			case "gpipe":
				warmup = h.Microbatches
			case "1f1b":
				warmup = min(h.Microbatches, h.Ranks-r)
			default:
				return nil, violated("schedule", "%q is unknown here and the file has no order", h.Schedule)
			}
			ranks = append(ranks, alternate(r, h.Microbatches, warmup))
		}
	}
	o := &order{}
	sizes := [3]int{len(ranks)} // ranks, stages, microbatches
	chunks := 0
	for r, actions := range ranks {
		stages := map[int]bool{}
		for _, text := range actions {
			x, err := parseAction(text)
			if err != nil {
				return nil, violated("order", "rank %d: %v", r, err)
			}
			x.rank = r
			o.ops = append(o.ops, x)
			for _, p := range x.parts {
				sizes[1], sizes[2] = max(sizes[1], p.stage+1), max(sizes[2], p.microbatch+1)
				stages[p.stage] = true
			}
		}
		chunks = max(chunks, len(stages))
	}
	for i, field := range []struct {
		name string
		said int
	}{{"ranks", h.Ranks}, {"stages", h.Stages}, {"microbatches", h.Microbatches}} {
		if err := differs(field.name, field.said, sizes[i]); err != nil {
			return nil, err
		}
	}
	if err := differs("chunks", h.Chunks, chunks); err != nil {
		return nil, err
	}
	return o, o.derive(h)
}

// texts returns the actions of a derived order, rank by rank.
func (o *order) texts() (ranks [][]string) {
	for i, x := range o.ops {
		if i == 0 || x.rank != o.ops[i-1].rank {
			ranks = append(ranks, nil)
		}
		p := x.parts[0]
		ranks[x.rank] = append(ranks[x.rank], fmt.Sprintf("%d%s%d", p.stage, p.kind, p.microbatch))
	}
	return ranks
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
// one rank; the last three are its backward.
var passes = []string{"F", "R", "W", "B", "RB", "I"}

// derive checks that every stage and microbatch has what it needs, once and on
// one rank, and finds the dependencies.
func (o *order) derive(h *frontierfile.Header) error {
	at := map[part]int32{}
	for i, x := range o.ops {
		for _, p := range x.parts {
			if _, twice := at[p]; twice && slices.Contains(passes, p.kind) {
				return violated("order", "%d%s%d is there twice", p.stage, p.kind, p.microbatch)
			}
			at[p] = int32(i)
		}
	}
	if int64(h.Stages)*int64(h.Microbatches) > int64(len(o.ops)) {
		return violated("order", "%d stages × %d microbatches need a forward each; there are %d ops", h.Stages, h.Microbatches, len(o.ops))
	}
	find := func(stage, microbatch int, kinds ...string) (int32, bool) {
		for _, k := range kinds {
			if i, ok := at[part{k, stage, microbatch}]; ok {
				return i, true
			}
		}
		return 0, false
	}
	_, trains := find(0, 0, passes[3:]...)
	for s := range h.Stages {
		for m := range h.Microbatches {
			f, hasF := find(s, m, "F")
			has := map[string]bool{}
			backwards := 0
			for i, k := range passes {
				x, ok := find(s, m, k)
				has[k] = ok
				if ok && i >= 3 {
					backwards++
				}
				if hasF && ok && o.ops[x].rank != o.ops[f].rank {
					return violated("order", "stage %d, microbatch %d is on ranks %d and %d", s, m, o.ops[f].rank, o.ops[x].rank)
				}
			}
			if !hasF || backwards > 1 || (backwards == 1) != trains || has["I"] != has["W"] || has["R"] && (!trains || has["RB"]) {
				return violated("order", "stage %d, microbatch %d: it needs a forward, and a backward or an input and a weight gradient", s, m)
			}
		}
	}
	var arcs []dag.Arc
	for i, x := range o.ops {
		to := int32(i)
		needs := func(stage, microbatch int, kinds ...string) {
			if from, ok := find(stage, microbatch, kinds...); ok {
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
				needs(p.stage+1, p.microbatch, passes[3:]...)
			case "W":
				needs(p.stage, p.microbatch, "I")
			}
		}
	}
	if h.TransferTime > 0 {
		arcs = o.transfers(arcs)
	}
	var err error
	if o.graph, err = dag.NewGraph(len(o.ops), arcs); err != nil {
		return violated("order", "%v", err)
	}
	return o.terms(h)
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
