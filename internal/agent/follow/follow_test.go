package follow_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/internal/agent/follow"
)

const ms = time.Millisecond

func constant(d time.Duration) follow.Latency {
	return func(int) (earliest, latest time.Duration) { return d, d }
}

// gpu is a GPU of which the follower asks clocks: ops take cycles/clock, clocks change a latency after a request, and a
// request replaces one that is under way.
type gpu struct {
	now, latency time.Duration
	top          int
	mhz, pending int
	pendingAt    time.Duration
	requests     int
	f            *follow.Follower
}

// pass lets time go on for d, or until cycles (in MHz·ns) are done where they are not 0, and returns when it stopped.
func (g *gpu) pass(d time.Duration, cycles float64) {
	end := g.now + d
	for {
		stop := end
		if cycles > 0 {
			stop = g.now + time.Duration(math.Ceil(cycles/float64(g.mhz)))
		}
		r, due := g.f.Next()
		at := max(r.At, g.now)
		asks := due && at < stop
		changes := g.pending != 0 && g.pendingAt < stop && (!asks || g.pendingAt <= at)
		switch {
		case changes:
			stop = g.pendingAt
		case asks:
			stop = at
		}
		cycles -= float64(stop-g.now) * float64(g.mhz)
		g.now = stop
		switch {
		case changes:
			g.mhz, g.pending = g.pending, 0
		case asks:
			g.requests++
			g.f.Asked(r)
			if g.pending = r.MHz; r.MHz == follow.Own {
				g.pending = g.top
			}
			g.pendingAt = g.now + g.latency
		default:
			return
		}
	}
}

// plan is the steady part of a pipeline: forwards and backwards in turn with waiting between, each at its own clock.
func plan(random *rand.Rand, unit time.Duration, ops int) (p follow.Plan, cycles []float64, gaps []time.Duration) {
	t := time.Duration(0)
	clocks := []int{1410, 1305, 1200, 1110, 990}
	for i := range ops {
		gap := time.Duration(0)
		if random.IntN(3) == 0 {
			gap = time.Duration(random.Int64N(int64(unit)))
		}
		name, d := "forward", unit
		if i%2 == 1 {
			name, d = "backward", 2*unit
		}
		mhz := clocks[random.IntN(len(clocks))]
		t += gap
		p.Ops = append(p.Ops, follow.Op{Instruction: name, Microbatch: i / 2, MHz: mhz, Start: t, Time: d})
		cycles = append(cycles, float64(d)*float64(mhz))
		gaps = append(gaps, t)
		t += d
	}
	p.Version, p.Mode, p.Iteration = 1, follow.Planned, t
	return p, cycles, gaps
}

// TestIterationTime runs plans on GPUs with switch latencies from none to longer than ops. Starts are never before the
// plan's, as other ranks would make this one wait.
func TestIterationTime(t *testing.T) {
	for _, latency := range []time.Duration{0, 5 * ms, 20 * ms, 60 * ms} {
		for _, unit := range []time.Duration{10 * ms, 40 * ms, 150 * ms} {
			t.Run(fmt.Sprint(latency, unit), func(t *testing.T) {
				p, cycles, starts := plan(rand.New(rand.NewPCG(1, uint64(unit))), unit, 32)
				f := follow.New(follow.Fine, constant(latency), 0)
				f.Offer(p)
				g := &gpu{latency: latency, mhz: 1410, top: 1410, f: f}
				for iteration := range 5 {
					begin := g.now
					f.StepBegin(g.now, false)
					for i, op := range p.Ops {
						g.pass(max(0, begin+starts[i]-g.now), 0)
						f.OpBegin(g.now, op.Instruction, op.Microbatch)
						g.pass(0, cycles[i])
						f.OpEnd(g.now)
					}
					g.pass(max(0, begin+p.Iteration-g.now), 0)
					f.StepEnd(g.now)
					if iteration == 0 {
						continue // the clock of the first op was not known before
					}
					if r := float64(g.now-begin) / float64(p.Iteration); r > 1.005 {
						t.Errorf("iteration %d takes %.4f of the plan", iteration, r)
					}
				}
				if n := f.Unplanned(); n != 0 {
					t.Errorf("%d iterations counted as unplanned", n)
				}
				if latency*10 <= unit && f.Merged() > 0 {
					t.Errorf("%d ops merged although they are long", f.Merged())
				}
				t.Logf("%d requests, %d of %d ops merged", g.requests, f.Merged(), len(p.Ops))
			})
		}
	}
}

func ask(t *testing.T, f *follow.Follower, want int) follow.Request {
	t.Helper()
	r, ok := f.Next()
	if !ok || r.MHz != want {
		t.Fatalf("request %+v, %v; want %d MHz", r, ok, want)
	}
	f.Asked(r)
	return r
}

func none(t *testing.T, f *follow.Follower) {
	t.Helper()
	if r, ok := f.Next(); ok {
		t.Fatalf("request %+v, want none", r)
	}
}

func two() follow.Plan {
	return follow.Plan{Version: 1, Mode: follow.Planned, Iteration: 300 * ms, Ops: []follow.Op{
		{Instruction: "forward", MHz: 900, Time: 100 * ms},
		{Instruction: "backward", MHz: 1200, Start: 100 * ms, Time: 200 * ms},
	}}
}

func TestAhead(t *testing.T) {
	f := follow.New(follow.Fine, constant(20*ms), 0)
	none(t, f)
	f.Offer(two())
	ask(t, f, 900)
	f.StepBegin(1000*ms, false)
	f.OpBegin(1000*ms, "forward", 0)
	// Up: early, by a twentieth of the latency and half a millisecond.
	if r := ask(t, f, 1200); r.At != 1078500*time.Microsecond {
		t.Errorf("asked at %v", r.At)
	}
	f.OpEnd(1100 * ms)
	f.OpBegin(1101*ms, "backward", 0)
	// Down, for the next iteration: late.
	if r := ask(t, f, 900); r.At != 1282500*time.Microsecond {
		t.Errorf("asked at %v", r.At)
	}
	f.OpEnd(1301 * ms)
	f.StepEnd(1301 * ms)
	none(t, f)
	f.StepBegin(1302*ms, false)
	f.OpBegin(1302*ms, "forward", 0)
	ask(t, f, 1200)
}

// TestDiffer: what is not in the plan runs at the highest clock, and the next iteration as planned.
func TestDiffer(t *testing.T) {
	for name, play := range map[string]func(f *follow.Follower){
		"another op":         func(f *follow.Follower) { f.OpBegin(0, "backward", 0) },
		"another microbatch": func(f *follow.Follower) { f.OpBegin(0, "forward", 1) },
		"one more": func(f *follow.Follower) {
			f.OpBegin(0, "forward", 0)
			f.OpBegin(1, "backward", -1)
			f.OpBegin(2, "backward", -1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow.New(follow.Fine, constant(20*ms), 0)
			f.Offer(two())
			f.StepBegin(0, false)
			ask(t, f, 900)
			play(f)
			ask(t, f, follow.Own)
			f.OpBegin(3, "forward", 0)
			none(t, f)
			f.StepEnd(4)
			ask(t, f, 900)
			if n := f.Unplanned(); n != 1 {
				t.Errorf("counted %d times", n)
			}
		})
	}
	f := follow.New(follow.Fine, constant(20*ms), 0)
	f.Offer(two())
	f.StepBegin(0, false)
	f.OpBegin(0, "forward", 0)
	f.StepEnd(1)
	if n := f.Unplanned(); n != 1 {
		t.Errorf("a short iteration was counted %d times", n)
	}
}

func TestEvaluationAndVersions(t *testing.T) {
	f := follow.New(follow.Fine, constant(time.Millisecond), 0)
	f.Offer(two())
	later := two()
	later.Version, later.From = 2, 2
	later.Ops[0].MHz, later.Ops[1].MHz = 600, 600
	f.Offer(later)
	f.Offer(two()) // late: version 2 is known
	run := func() {
		f.StepBegin(0, false)
		f.OpBegin(0, "forward", 0)
		f.OpBegin(0, "backward", 0)
	}
	ask(t, f, 900)
	f.StepBegin(0, true)
	ask(t, f, follow.Own)
	f.OpBegin(0, "forward", 7)
	f.StepEnd(0)
	ask(t, f, 900)
	run()
	if f.Iteration() != 0 || f.Version() != 1 {
		t.Errorf("iteration %d, version %d", f.Iteration(), f.Version())
	}
	f.StepEnd(0)
	run()
	ask(t, f, 1200)
	f.StepEnd(0)
	ask(t, f, 600)
	run()
	none(t, f)
	if f.Iteration() != 2 || f.Version() != 2 || f.Unplanned() != 0 {
		t.Errorf("iteration %d, version %d", f.Iteration(), f.Version())
	}
	f.Override(true)
	ask(t, f, follow.Own)
	none(t, f)
	f.Override(false)
	ask(t, f, 600)
	f.Restart()
	none(t, f)
	if f.Iteration() != -1 {
		t.Errorf("iteration %d in a new generation", f.Iteration())
	}
}

// TestUniform: each iteration has one clock, of the instructions in turn.
func TestUniform(t *testing.T) {
	f := follow.New(follow.Auto, constant(20*ms), 3)
	f.Offer(follow.Plan{Version: 1, Mode: follow.Uniform, MHz: map[string]int{"forward": 1000, "backward": 1200}})
	for i, want := range []int{1000, 1200, 1000} {
		f.StepBegin(0, false)
		if int(f.Iteration()) != 3+i {
			t.Errorf("iteration %d", f.Iteration())
		}
		if i == 0 {
			ask(t, f, want)
		}
		f.OpBegin(0, "backward", -1)
		none(t, f)
		f.StepEnd(0)
		ask(t, f, 2200-want)
	}
}

// TestMerge: the merged clocks are never below those planned, and no stretch is shorter than the rule says.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := time.Duration(rapid.IntRange(1, 200).Draw(t, "unit")) * ms
		latency := time.Duration(rapid.IntRange(0, 100).Draw(t, "latency")) * ms
		s := rapid.SampledFrom([]follow.Switching{follow.Auto, follow.Fine, follow.Phase, follow.Step}).Draw(t, "switching")
		p, _, _ := plan(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), unit, rapid.IntRange(1, 60).Draw(t, "ops"))
		f := follow.New(s, constant(latency), 0)
		f.Offer(p)
		f.StepBegin(0, false)
		var asked []follow.Request
		for i, op := range p.Ops {
			f.OpBegin(op.Start, op.Instruction, op.Microbatch)
			until := p.Iteration
			if i+1 < len(p.Ops) {
				until = p.Ops[i+1].Start - 1
			}
			for r, ok := f.Next(); ok && r.At <= until; r, ok = f.Next() {
				r.At = max(r.At, op.Start)
				if n := len(asked); n > 1 && float64(r.At-asked[n-1].At+ms) < 0.9*float64(latency) {
					t.Fatalf("op %d: another request after %v", i, r.At-asked[n-1].At)
				}
				f.Asked(r)
				asked = append(asked, r)
			}
			clock := asked[0].MHz
			for _, r := range asked[1:] {
				// A rise may come a little after the op has begun, a fall not before the op before has ended.
				late := time.Duration(0)
				if r.MHz > clock {
					late = latency/10 + ms
				}
				if r.At+latency <= op.Start+late {
					clock = r.MHz
				}
			}
			if clock < op.MHz {
				t.Fatalf("op %d: %d MHz, planned %d: %+v", i, clock, op.MHz, p.Ops)
			}
		}
	})
}

// TestHeld: a plan that was made for the latency is followed op by op, whatever the ops' length.
func TestHeld(t *testing.T) {
	p := two()
	p.Ops[0].Time, p.Ops[1].Start, p.Ops[1].Time, p.Iteration = 90*ms, 90*ms, 90*ms, 180*ms
	for hold, want := range map[time.Duration]int{0: 1, 74 * ms: 1, 78 * ms: 0} {
		f := follow.New(follow.Auto, constant(60*ms), 0)
		p.Hold = hold
		f.Offer(p)
		if n := f.Merged(); n != want {
			t.Errorf("held for %v: %d ops merged, want %d", hold, n, want)
		}
	}
}
