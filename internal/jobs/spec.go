package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/parallel"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// Spec is what a user says of a job besides its profile, its order and the power
// of a waiting GPU. The zero value says nothing.
type Spec struct {
	Derive            []derive.Rule
	Fixed             []frontierfile.Fixed
	TransferTime      unit.Time
	MicrobatchFactors []frontierfile.Factors
	OpFactors         []frontierfile.OpFactors
	// Caps are of pipeline ranks, or of global ranks where Grid says which those are.
	Caps []frontierfile.Cap
	Grid GridSpec
}

// GridSpec is what a user says of the parallel groups.
type GridSpec struct {
	parallel.Degrees
	Order string
	World int
}

// given says whether anything was said of the parallel groups.
func (g *GridSpec) given() bool { return *g != GridSpec{} }

// Job returns the job of running a profile's stages in an order, as New does, by
// what s says, and what is worth telling the user of it, a line each. It fails,
// naming the stage and the flag that would help, where the profile lacks an
// instruction that no rule derives, and where s contradicts the profile or the
// order.
func (s *Spec) Job(p *profile.Profile, o *pipeline.Order, blocking []unit.Power) (characterize.Job, []string, error) {
	b := &builder{Spec: s, profile: p, order: s.withFixed(o), gpus: p.GPUsPerStage}
	b.terms.TransferTime = s.TransferTime
	b.terms.OpFactors, b.terms.Fixed = s.OpFactors, s.Fixed
	for _, step := range []func() error{b.grid, b.caps, b.instructions, b.factors} {
		if err := step(); err != nil {
			return characterize.Job{}, nil, err
		}
	}
	job, err := newJob(p, b.order, blocking, b.gpus)
	if err != nil {
		return job, nil, err
	}
	job.Terms = b.terms
	return job, b.notes, nil
}

// builder puts the terms of a job together.
type builder struct {
	*Spec
	profile *profile.Profile
	order   *pipeline.Order
	gpus    int // per rank
	layout  *parallel.Grid

	terms frontierfile.Terms
	notes []string
}

func (b *builder) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

// withFixed returns the order with the fixed-time actions that it lacks.
func (s *Spec) withFixed(o *pipeline.Order) *pipeline.Order {
	if len(s.Fixed) == 0 {
		return o
	}
	add := added(s.Fixed)
	for _, a := range o.All() {
		switch a.Kind {
		case pipeline.Load:
			add.Load = false
		case pipeline.ReduceGrad:
			add.ReduceGrad = false
		case pipeline.Optimizer:
			add.Optimizer = false
		}
	}
	return o.WithFixed(add)
}

// grid settles how many GPUs a rank has.
func (b *builder) grid() error {
	if !b.Grid.given() {
		return nil
	}
	d := b.Grid.Degrees
	ranks := len(b.order.Ranks)
	if d.PP = cmp.Or(d.PP, ranks); d.PP != ranks {
		return fmt.Errorf("pp is %d, but %s has %d ranks", d.PP, b.order.Schedule, ranks)
	}
	g, err := parallel.New(d, b.Grid.Order, b.Grid.World)
	if err != nil {
		return err
	}
	b.layout = g
	b.terms.Parallel = &frontierfile.Parallel{
		TP: g.TP, CP: g.CP, EP: g.EP, ETP: g.ETP, DP: g.DP, PP: g.PP, RankOrder: g.Order, Replica: -1,
	}
	b.note("parallel: %v", g)
	switch members := b.profile.GPUsPerStage; {
	case members == g.GPUsPerRank():
	case members == 1:
		b.note("parallel: the profile is of one GPU; each of the %d that work together counts like it", g.GPUsPerRank())
	default:
		return fmt.Errorf("the profile has %d GPUs that run a stage together, but with tp %d, cp %d, ep %d and etp %d there are %d",
			members, g.TP, g.CP, g.EP, g.ETP, g.GPUsPerRank())
	}
	b.gpus = g.GPUsPerRank()
	return nil
}

// caps turns caps of global ranks into those of pipeline ranks. Of several in a
// group the lowest holds.
func (b *builder) caps() error {
	lowest := map[int]int32{}
	replica, first := -1, 0
	for _, c := range b.Caps {
		rank := c.Rank
		if b.layout != nil {
			if rank >= b.layout.World {
				return fmt.Errorf("--cap: there is no rank %d; there are 0 … %d", rank, b.layout.World-1)
			}
			var k int
			rank, k, _ = b.layout.Place(c.Rank)
			if replica >= 0 && k != replica {
				return fmt.Errorf("--cap: ranks %d and %d are in two pipelines, %d and %d: a frontier is of one pipeline, so compute one for each",
					first, c.Rank, replica, k)
			}
			replica, first = k, c.Rank
			b.terms.Parallel.Replica = k
		} else if rank >= len(b.order.Ranks) {
			return fmt.Errorf("--cap: there is no rank %d; there are 0 … %d (pipeline ranks; with --tp, --dp and so on, global ones)", rank, len(b.order.Ranks)-1)
		}
		if have := lowest[rank]; have == 0 || c.MHz < have {
			lowest[rank] = c.MHz
		}
	}
	for rank := range b.order.Ranks {
		if mhz := lowest[rank]; mhz > 0 {
			b.terms.Caps = append(b.terms.Caps, frontierfile.Cap{Rank: rank, MHz: mhz})
			b.note("cap: pipeline rank %d runs at up to %d MHz; savings are against its top clock below that", rank, mhz)
		}
	}
	if replica >= 0 && b.layout.Replicas() > 1 {
		b.note("cap: this is the frontier of pipeline %d of %d; the others are not capped", replica, b.layout.Replicas())
	}
	return nil
}

// instructions finds out which instructions have to be derived.
func (b *builder) instructions() error {
	measured := b.profile.Instructions()
	type op struct {
		kind  pipeline.Kind
		stage int32
	}
	used := map[*derive.Rule]bool{}
	seen := map[op]bool{}
	kinds := map[string]bool{}
	for rank, a := range b.order.All() {
		if seen[op{a.Kind, a.Stage}] {
			continue
		}
		seen[op{a.Kind, a.Stage}] = true
		name := a.Kind.Instruction()
		kinds[name] = true
		fixed := slices.ContainsFunc(b.Fixed, func(f frontierfile.Fixed) bool { return f.Instruction == name })
		rule := derive.Find(b.Derive, name, int(a.Stage))
		// What was measured is replaced only where a rule is for that very stage.
		if fixed || slices.Contains(measured, name) && (rule == nil || rule.Stage < 0) {
			continue
		}
		if rule == nil {
			return b.missing(rank, a)
		}
		for _, t := range rule.Terms {
			if !slices.Contains(measured, t.Instruction) {
				return fmt.Errorf("--derive %v: stage %d has no %s in the profile; it has %s", rule, a.Stage, t.Instruction, strings.Join(measured, ", "))
			}
		}
		used[rule] = true
	}
	var idle []string
	for i := range b.Derive {
		switch r := &b.Derive[i]; {
		case used[r] && slices.Contains(measured, r.Instruction):
			b.terms.Derived = append(b.terms.Derived, r.String())
			b.note("derived, in place of what was measured: %v", r)
		case used[r]:
			b.terms.Derived = append(b.terms.Derived, r.String())
			b.note("derived, not measured: %v", r)
		case slices.Contains(measured, r.Instruction):
			b.note("not derived: %v, as the profile has %s", r, r.Instruction)
		case !slices.Contains(idle, r.Instruction):
			idle = append(idle, r.Instruction)
		}
	}
	if len(idle) > 0 {
		b.note("not derived: %s has no use for rules of %s", b.order.Schedule, strings.Join(idle, ", "))
	}
	slices.Sort(b.terms.Derived)
	for _, f := range b.Fixed {
		switch {
		case !kinds[f.Instruction]:
			b.note("fixed: no rank has a %s", f.Instruction)
		case slices.Contains(measured, f.Instruction):
			b.note("fixed: %s takes %v, in place of what the profile says", f.Instruction, f.Time)
		default:
			b.note("fixed: %s takes %v at any clock, in which GPUs draw as if they waited", f.Instruction, f.Time)
		}
	}
	if t := b.TransferTime; t > 0 {
		b.note("transfers: %v from one rank to another", t)
	}
	return nil
}

// missing returns the error for an action that nothing is known of.
func (b *builder) missing(rank int, a pipeline.Action) error {
	name := a.Kind.Instruction()
	way := byRule(name, b.profile.Instructions())
	if a.Kind.Fixed() {
		way = fmt.Sprintf("measure it, or give its time, as in --fixed %s=20ms", name)
	} else if preset := derive.For(name); preset != "" {
		flag, meaning, _ := strings.Cut(preset, " ")
		way = fmt.Sprintf("measure it, or ask for it to be derived with --derive %s %s", flag, meaning)
	}
	return fmt.Errorf("stage %d on rank %d needs %s (%v), which the profile lacks; it has %s: %s",
		a.Stage, rank, name, a, strings.Join(b.profile.Instructions(), ", "), way)
}

// byRule says how to come by an instruction that a profile lacks, with a rule of
// what it has.
func byRule(name string, measured []string) string {
	var rules []string
	for _, known := range []struct{ name, others string }{
		{"forward", "fwd fw f fprop forward_pass forward-pass forward_step"},
		{"backward", "bwd bw b bprop backward_pass backward-pass backward_step"},
	} {
		if slices.Contains(measured, known.name) {
			continue
		}
		for other := range strings.FieldsSeq(known.others) {
			if slices.Contains(measured, other) {
				rules = append(rules, known.name+"="+other)
				break
			}
		}
	}
	if len(rules) == 0 || !strings.Contains(strings.Join(rules, ","), name+"=") {
		rules = []string{name + "=" + measured[0] + "*0.5"}
		return "measure it, or give a rule for what it is, as in --derive " + rules[0]
	}
	return "rename it there, or say what it is called with --derive " + strings.Join(rules, ",")
}

// factors checks the microbatches' factors.
func (b *builder) factors() error {
	f := b.MicrobatchFactors
	if n := len(f); n > 0 && n != b.order.Size.Microbatches {
		return fmt.Errorf("--microbatch-factors: %d factors for %d microbatches", n, b.order.Size.Microbatches)
	}
	b.terms.MicrobatchFactors = f
	if len(f) > 0 {
		low := slices.MinFunc(f, func(a, b frontierfile.Factors) int { return cmp.Compare(a.Time, b.Time) })
		high := slices.MaxFunc(f, func(a, b frontierfile.Factors) int { return cmp.Compare(a.Time, b.Time) })
		b.note("microbatches: %v to %v times the measured time", low.Time, high.Time)
	}
	if n := len(b.OpFactors); n > 0 {
		b.note("ops: %d with factors of their own", n)
	}
	return nil
}

// CheckSchedule returns an error where the order in a frontier's header is not the
// one that the named schedule has at the header's sizes, with its fixed-time ops.
// A custom order and a graph have no name to be held to. It fails also where there
// is no such schedule or size. O(ops).
func CheckSchedule(h *frontierfile.Header) error {
	if h.Graph != nil || h.Order == nil || h.Schedule == "custom" {
		return nil
	}
	o, err := pipeline.Build(h.Schedule, pipeline.Size{Ranks: h.Ranks, Chunks: h.Chunks, Microbatches: h.Microbatches, Group: h.Group})
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	want := o.WithFixed(added(h.Fixed)).ToActions()
	for rank, actions := range h.Order {
		for i, a := range actions {
			switch {
			case rank >= len(want) || i >= len(want[rank]):
				return fmt.Errorf("order: rank %d has action %d, %s, but %s ends before it", rank, i+1, a, h.Schedule)
			case a != want[rank][i]:
				return fmt.Errorf("order: rank %d, action %d is %s, but %s has %s there", rank, i+1, a, h.Schedule, want[rank][i])
			}
		}
		if len(actions) < len(want[rank]) {
			return fmt.Errorf("order: rank %d ends after %d actions, but %s goes on with %s", rank, len(actions), h.Schedule, want[rank][len(actions)])
		}
	}
	return nil
}
