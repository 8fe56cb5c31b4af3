package pipeline

import (
	"math/rand/v2"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// sizes yields sizes that the schedule has: all small ones and, of those up to 16
// ranks, 64 microbatches and 4 chunks, a sample.
func sizes(t *testing.T, s *Schedule, do func(Size)) {
	t.Helper()
	tried := 0
	try := func(z Size) {
		fitted, err := s.Fit(z)
		if err == nil {
			tried++
			do(fitted)
		}
	}
	for p := 1; p <= 6; p++ {
		for v := 1; v <= 3; v++ {
			for m := 1; m <= 14; m++ {
				try(Size{Ranks: p, Chunks: v, Microbatches: m})
				for g := p; g <= m && s.Name == "interleaved-1f1b"; g++ {
					try(Size{Ranks: p, Chunks: v, Microbatches: m, Group: g})
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		z := Size{Ranks: 1 + rng.IntN(16), Chunks: 1 + rng.IntN(4), Microbatches: 1 + rng.IntN(64)}
		if s.Name == "interleaved-1f1b" && rng.IntN(2) == 0 {
			z.Group = z.Ranks + rng.IntN(64)
		}
		try(z)
		z.Chunks = s.Example.Chunks
		try(z)
	}
	try(Size{Ranks: 16, Chunks: 4, Microbatches: 64})
	try(Size{Ranks: 16, Chunks: s.Example.Chunks, Microbatches: 64})
	if tried < 30 {
		t.Errorf("only %d sizes of %s", tried, s.Name)
	}
}

// forEachOrder runs do on the orders of all schedules at the sizes above.
func forEachOrder(t *testing.T, do func(t *testing.T, s *Schedule, o *Order)) {
	for _, s := range Schedules() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			sizes(t, &s, func(z Size) {
				if t.Failed() {
					return
				}
				o, err := Build(s.Name, z)
				if err != nil {
					t.Fatalf("%+v: %v", z, err)
				}
				do(t, &s, o)
				if t.Failed() {
					t.Logf("at %+v", o.Size)
				}
			})
		})
	}
}

// played is an order run action by action by the rules of the package comment,
// in the plainest way: it shares nothing with the code that makes the graph.
type played struct {
	done map[Part]int // rank by action
	next []int
}

func (g *played) has(kind Kind, s, m int32) bool {
	_, ok := g.done[Part{kind, s, m}]
	return ok
}

func (g *played) ready(o *Order, p Part) bool {
	last := int32(o.Stages - 1)
	switch p.Kind {
	case Forward:
		return p.Stage == 0 || g.has(Forward, p.Stage-1, p.Microbatch)
	case Recompute:
		return g.has(Forward, p.Stage, p.Microbatch)
	case Backward, InputGrad, RecomputeBackward:
		above := p.Stage == last || g.has(Backward, p.Stage+1, p.Microbatch) || g.has(InputGrad, p.Stage+1, p.Microbatch) || g.has(RecomputeBackward, p.Stage+1, p.Microbatch)
		return above && g.has(Forward, p.Stage, p.Microbatch)
	case WeightGrad:
		return g.has(InputGrad, p.Stage, p.Microbatch)
	}
	return true
}

// play runs the order to its end and fails where it hangs or does something twice.
func play(t *testing.T, o *Order) map[Part]int {
	t.Helper()
	g := &played{done: map[Part]int{}, next: make([]int, len(o.Ranks))}
	for progress := true; progress; {
		progress = false
		for r, actions := range o.Ranks {
			for g.next[r] < len(actions) {
				parts, n := actions[g.next[r]].Parts()
				if !g.ready(o, parts[0]) || n == 2 && !g.ready(o, parts[1]) {
					break
				}
				for _, p := range parts[:n] {
					if g.has(p.Kind, p.Stage, p.Microbatch) {
						t.Fatalf("%v twice", p)
					}
					g.done[p] = r
				}
				g.next[r]++
				progress = true
			}
		}
	}
	for r, actions := range o.Ranks {
		if g.next[r] < len(actions) {
			t.Fatalf("rank %d hangs at %v", r, actions[g.next[r]])
		}
	}
	return g.done
}

// placed returns the rank of a stage and microbatch by the rules of the reference
// orders' README.
func placed(o *Order, s, m int) int {
	p := len(o.Ranks)
	switch o.Placement {
	case V:
		if s < p {
			return s
		}
		return 2*p - 1 - s
	case Bidirectional:
		if m >= o.Size.Microbatches/2 {
			return p - 1 - s
		}
		return s
	}
	return s % p
}

func TestOrdersAreCompleteAndRun(t *testing.T) {
	forEachOrder(t, func(t *testing.T, s *Schedule, o *Order) {
		done := play(t, o)
		count := 0
		for st := range o.Stages {
			for m := range o.Size.Microbatches {
				has := map[Kind]bool{}
				for _, kind := range []Kind{Forward, Backward, RecomputeBackward, InputGrad, WeightGrad, Recompute} {
					rank, ok := done[Part{kind, int32(st), int32(m)}]
					if !ok {
						continue
					}
					if rank != placed(o, st, m) {
						t.Errorf("%v of stage %d, microbatch %d is on rank %d", kind, st, m, rank)
					}
					has[kind] = true
				}
				count += len(has)
				back := has[Backward] || has[RecomputeBackward] || has[InputGrad] && has[WeightGrad]
				want := 2
				if has[InputGrad] || has[Recompute] {
					want = 3
				}
				if o.ForwardOnly() {
					back, want = true, 1
				}
				if !has[Forward] || !back || len(has) != want {
					t.Errorf("stage %d, microbatch %d has %v", st, m, has)
				}
			}
		}
		if count != len(done) {
			t.Errorf("%d actions, of which %d are of a stage and microbatch", len(done), count)
		}
		if _, err := o.Graph(); err != nil {
			t.Errorf("graph: %v", err)
		}
	})
}

// TestGraphsFollowTheRule derives each graph again with maps.
func TestGraphsFollowTheRule(t *testing.T) {
	forEachOrder(t, func(t *testing.T, s *Schedule, o *Order) {
		if o.Ops() > 2000 {
			return
		}
		ops, arcs := map[Part]int32{}, map[dag.Arc]bool{}
		id := int32(0)
		for _, actions := range o.Ranks {
			for i, a := range actions {
				parts, n := a.Parts()
				for _, p := range parts[:n] {
					if p.Kind == InputGrad || p.Kind == RecomputeBackward {
						p.Kind = Backward
					}
					ops[p] = id
				}
				if i > 0 {
					arcs[dag.Arc{From: id - 1, To: id}] = true
				}
				id++
			}
		}
		arc := func(from, to Part) {
			f, ok := ops[from]
			if g, both := ops[to]; ok && both {
				arcs[dag.Arc{From: f, To: g}] = true
			}
		}
		for s := range int32(o.Stages) {
			for m := range int32(o.Size.Microbatches) {
				at := func(s int32, kind Kind) Part { return Part{kind, s, m} }
				arc(at(s, Forward), at(s+1, Forward))
				arc(at(s, Backward), at(s-1, Backward))
				arc(at(s, Forward), at(s, Backward))
				arc(at(s, Backward), at(s, WeightGrad))
				arc(at(s, Forward), at(s, Recompute))
				arc(at(s, Recompute), at(s, Backward))
			}
		}
		g, err := o.Graph()
		if err != nil {
			t.Fatal(err)
		}
		if g.Ops != int(id) || g.Dependencies != len(arcs) {
			t.Errorf("%d ops and %d arcs, want %d and %d", g.Ops, g.Dependencies, id, len(arcs))
		}
		for _, a := range g.Arcs[:g.Dependencies] {
			if !arcs[a] {
				t.Errorf("arc %v is none of the rule's", a)
			}
		}
	})
}

// TestPeaksAreThePapers compares the memory with what the papers say, in
// stage-microbatches: "GPipe" 2.3 (all), PipeDream-Flush (P−r), Megatron-LM's
// interleaved warmup, "Zero Bubble" table 1 (ZB-H1 as 1F1B's most loaded rank),
// "Controllable Memory" (ZB-V as 1F1B), DualPipe's README (P+1, and half of 2P+1
// for DualPipeV).
func TestPeaksAreThePapers(t *testing.T) {
	forEachOrder(t, func(t *testing.T, s *Schedule, o *Order) {
		p, v, m, g := o.Size.Ranks, o.Size.Chunks, o.Size.Microbatches, o.Size.Group
		for r, got := range o.Peaks() {
			want := Peak{}
			most := false // want is a bound that need not be reached
			switch s.Name {
			case "gpipe", "gpipe-forward", "looped-bfs":
				want.Activations = v * m
			case "1f1b":
				want.Activations = min(p-r, m)
			case "1f1b-early-recompute":
				want = Peak{Activations: 1, Checkpoints: min(p-r, m)}
			case "interleaved-1f1b":
				want.Activations = min((v-1)*g+2*(p-1-r)+1, v*m)
			case "interleaved-zero-bubble":
				want.Activations = min((v-1)*g+p, v*m)
			case "zb-h1", "zb-h1-quickstart":
				want.Activations, most = min(p, m), s.Name == "zb-h1-quickstart"
			case "zbv":
				want.Activations, most = min(2*p, 2*m), m < 2*p-1
			case "dualpipe":
				want.Activations = p + 1
			case "dualpipev":
				want.Activations = 2*p + 1
			}
			if got != want && !(most && got.Activations <= want.Activations && got.Checkpoints == want.Checkpoints) {
				t.Errorf("rank %d: %+v, want %+v", r, got, want)
			}
		}
	})
}

// span returns the makespan where F, I, W take one unit, B two, a pair three.
func span(t *testing.T, o *Order) int {
	t.Helper()
	g, err := o.Graph()
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]Kind, 0, g.Ops)
	for _, a := range o.All() {
		kinds = append(kinds, a.Kind)
	}
	return int(g.Starts(make([]unit.Time, g.Ops), func(op int32) unit.Time { return unit.Time(drawn(kinds[op])) }))
}

// TestSpansAreThePapers compares the length at equal times of F, I and W with the
// papers' bubbles, in the sizes for which they give them.
func TestSpansAreThePapers(t *testing.T) {
	forEachOrder(t, func(t *testing.T, s *Schedule, o *Order) {
		p, v, m := o.Size.Ranks, o.Size.Chunks, o.Size.Microbatches
		want := 0
		switch {
		case s.Name == "gpipe" || s.Name == "1f1b":
			want = 3 * (m + p - 1)
		case s.Name == "gpipe-forward":
			want = m + p - 1
		case s.Name == "interleaved-1f1b" && m%p == 0 && o.Size.Group == p, s.Name == "looped-bfs" && m >= p:
			want = 3*m*v + 3*(p-1) // 1/v of 1F1B's bubble
		case (s.Name == "zb-h1" || s.Name == "zb-h1-quickstart") && m > 2*p:
			want = 3*m + p - 1
		case s.Name == "interleaved-zero-bubble" && m%p == 0:
			want = 3*m*v + p - 1
		case s.Name == "zbv" && m >= 2*p-1:
			want = 6*m + p - 1 // no bubble, but that ranks start one after the other
		default:
			return
		}
		if got := span(t, o); got != want {
			t.Errorf("span %d, want %d", got, want)
		}
	})
}
