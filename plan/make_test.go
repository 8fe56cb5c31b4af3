package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/reference"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// drawRequest returns any request that makes sense, feasible for f or not.
func drawRequest(t *rapid.T, f *frontierfile.File) Request {
	h := &f.Header
	r := Request{
		Goal:   Goal(rapid.IntRange(0, int(LeastEnergy)).Draw(t, "goal")),
		Effort: rapid.SampledFrom([]round.Effort{round.Fast, round.Normal}).Draw(t, "effort"),
	}
	factor := Ratio(rapid.Int64Range(int64(One), 3*int64(One)).Draw(t, "factor"))
	switch r.Goal {
	case WithinTime:
		r.Time = times(factor, h.TMin) - h.TMin/4
	case Slowdown, Straggler:
		r.Factor = factor
	case AveragePower:
		p := rapid.SampledFrom(f.Points).Draw(t, "point")
		draws := unit.Power(float64(p.Energy) / float64(p.Time) * 1e6)
		r.Power = max(1, draws+unit.Power(rapid.Int64Range(-20, 20).Draw(t, "power"))*unit.Watt/4)
	}
	if r.Effort != round.Fast && rapid.Bool().Draw(t, "with margin") {
		r.Margin = Ratio(rapid.Int64Range(1, int64(One)/10).Draw(t, "margin"))
	}
	return r
}

// TestPlans checks each plan of random requests against the file and the
// definition of its goal, from the plan's own ops alone.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrontier(t)
		n := quick(t, f)
		r := drawRequest(t, f)
		p, err := n.Make(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		simulate(t, n, p)
		checkGoal(t, f, p)
		if again, err := quick(t, f).Make(r); err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v: another plan the second time, %v", r, err)
		}
	})
}

// simulate runs the plan's ops: starts, time and energies must come out as the
// plan says.
func simulate(t rapid.TB, n *Planner, p *Plan) {
	var starts, times []unit.Time
	var energy unit.Energy128
	for rank, ops := range p.Ranks {
		busy := unit.Time(0)
		for i, o := range ops {
			if a := n.order.Ranks[rank][i]; a.Stage != o.Stage || a.Microbatch != o.Microbatch || a.Kind.Instruction() != o.Instruction {
				t.Fatalf("rank %d, op %d is %+v, but runs %v", rank, i, o, a)
			}
			starts, times = append(starts, o.Start), append(times, o.Time)
			energy = energy.Add(o.Energy.Widen())
			busy += o.Time
		}
		energy = energy.Add(unit.Product(n.file.Header.BlockingPower[rank], p.Time-busy))
	}
	end := unit.Time(0)
	for op := range starts {
		ready := unit.Time(0)
		for _, a := range n.problem.Graph.In(int32(op)) {
			if from := n.problem.Graph.Arcs[a].From; from >= 0 {
				ready = max(ready, starts[from]+times[from])
			}
		}
		if ready != starts[op] {
			t.Fatalf("op %d starts at %v, not at %v", op, starts[op], ready)
		}
		end = max(end, starts[op]+times[op])
	}
	if end != p.Time {
		t.Fatalf("it takes %v, not %v", end, p.Time)
	}
	// Effective energies are rounded to a picojoule each.
	if off := frontierfile.InNanojoules(energy, unit.Nearest) - p.Energy; off < -1 || off > 1 {
		t.Fatalf("it uses %v, not %v", frontierfile.InNanojoules(energy, unit.Nearest), p.Energy)
	}
	if p.Bound > p.Energy {
		t.Fatalf("bound %v over energy %v", p.Bound, p.Energy)
	}
	if within := unit.Product(p.AveragePower, p.Time).Sub(wide(p.Energy-1)).Sign() >= 0; !within {
		t.Fatalf("average power %v over %v is less than %v", p.AveragePower, p.Time, p.Energy)
	}
}

// checkGoal compares the plan with what its goal promises and with every point
// of the file.
func checkGoal(t rapid.TB, f *frontierfile.File, p *Plan) {
	h, r := &f.Header, p.Request
	limit := unit.MaxMakespan
	switch r.Goal {
	case Fastest:
		limit = h.TMin
	case WithinTime:
		limit = r.Time
	case Slowdown, Straggler:
		limit = times(r.Factor, h.TMin)
	}
	if feasible := limit >= h.TMin; r.Goal != AveragePower && p.Feasible != feasible {
		t.Fatalf("%+v: feasible %v, want %v: %s", r, p.Feasible, feasible, p.Note)
	}
	if !p.Feasible {
		if p.Note == "" {
			t.Fatal("not feasible, and no note")
		}
		limit = h.TMin
	}
	if r.Goal == AveragePower {
		limit = unit.MaxMakespan
	}
	if p.Time > limit {
		t.Fatalf("%+v: takes %v, over %v", r, p.Time, limit)
	}
	if r.Goal == Straggler && p.WaitTime != max(p.Time, times(r.Factor, h.TMin)) || r.Goal != Straggler && p.WaitTime != p.Time {
		t.Fatalf("%+v: waits until %v", r, p.WaitTime)
	}
	if want := max(h.MaxClockTime, p.WaitTime); r.Goal == Straggler && p.BaselineTime != want || r.Goal != Straggler && p.BaselineTime != h.MaxClockTime {
		t.Fatalf("%+v: the baseline waits until %v; top clocks take %v", r, p.BaselineTime, h.MaxClockTime)
	}
	budget := unit.Product(r.Power, p.Time).Sub(wide(p.Energy-1)).Sign() >= 0
	if r.Goal == AveragePower && p.Feasible && !budget {
		t.Fatalf("%+v: draws %v", r, p.AveragePower)
	}
	if r.Margin > 0 {
		return // the file's points have none
	}
	for i := range f.Points {
		q := &f.Points[i]
		if q.Time > limit {
			continue
		}
		var better bool
		switch r.Goal {
		case Fastest, Straggler:
			better = q.Effective < p.Effective
		case AveragePower:
			better = draws(q, r.Power) && (!p.Feasible || q.Time < p.Time)
		default:
			better = q.Energy < p.Energy
		}
		if better {
			t.Fatalf("%+v: point %d is better: %+v, plan %v %v %v", r, i, *q, p.Time, p.Energy, p.Effective)
		}
	}
}

// TestBound compares the bound of plans with the optimum that the slow reference
// solver finds at their times.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrontier(t)
		n := quick(t, f)
		r := drawRequest(t, f)
		p, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		relaxed := reference.Solve(n.problem, p.Time)
		base, price := n.problem.Bound(relaxed.Flow)
		want := frontierfile.InNanojoules(base.Add(unit.Product(n.problem.BlockingPower-price, p.Time)), unit.Down)
		// Slopes are rounded to a microwatt, so that two optimal flows may prove
		// bounds that differ by half of one over the times of all ops.
		var times unit.Time
		for op := range int32(n.problem.Graph.Ops) {
			times += n.problem.Curve(op).Slowest().Time
		}
		tolerance := frontierfile.InNanojoules(unit.Product(unit.Microwatt, times), unit.Up) + 1
		if off := p.Bound - want; off > tolerance || off < -tolerance {
			t.Errorf("%+v: bound %v, reference %v", r, p.Bound, want)
		}
	})
}

// TestMargin checks that ops that were slowed down can take up to the margin
// longer, each by as much as it likes, without the plan taking longer than the
// time that it was made for.
func TestMargin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrontier(t)
		n := quick(t, f)
		r := drawRequest(t, f)
		r.Effort, r.Margin = round.Normal, Ratio(rapid.Int64Range(1, int64(One)/5).Draw(t, "the margin"))
		p, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		var times []unit.Time
		for _, ops := range p.Ranks {
			for _, o := range ops {
				op := len(times)
				if o.Time != n.problem.Curve(int32(op)).Fastest().Time && rapid.IntRange(0, 3).Draw(t, "noise") > 0 {
					o.Time += unit.Time(float64(o.Time) * float64(r.Margin) / float64(One) * 0.999999)
				}
				times = append(times, o.Time)
			}
		}
		start := make([]unit.Time, len(times))
		if took := n.problem.Graph.Starts(start, func(op int32) unit.Time { return times[op] }); took > p.RelaxedTime {
			t.Errorf("%+v: with noise it takes %v, planned for %v", r, took, p.RelaxedTime)
		}
	})
}

// TestNormal makes a few plans as users do: what the other tests check holds for
// effort normal, too.
func TestNormal(t *testing.T) {
	f := exampleFrontier(t)
	n := planner(t, f)
	h := &f.Header
	for _, r := range []Request{
		{Goal: Fastest},
		{Goal: WithinTime, Time: h.TMin + h.TMin/20},
		{Goal: Straggler, Factor: 12 * One / 10},
		{Goal: AveragePower, Power: 950 * unit.Watt},
		{Goal: Slowdown, Factor: 11 * One / 10, Margin: One / 100},
	} {
		r.Effort = round.Normal
		p, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		simulate(t, n, p)
		checkGoal(t, f, p)
	}
}

// TestEffort checks that more effort is never worse.
func TestEffort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrontier(t)
		n := quick(t, f)
		r := drawRequest(t, f)
		r.Margin, r.Effort = 0, round.Fast
		fast, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		if fast.Point < 0 {
			t.Fatal("effort fast made a plan of its own")
		}
		r.Effort = round.Normal
		normal, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		worse := normal.Energy > fast.Energy
		switch r.Goal {
		case Fastest, Straggler:
			worse = normal.Effective > fast.Effective
		case AveragePower:
			worse = fast.Feasible && (!normal.Feasible || normal.Time > fast.Time)
		}
		if worse {
			t.Errorf("%+v: normal %v %v, fast %v %v", r, normal.Time, normal.Energy, fast.Time, fast.Energy)
		}
	})
}

// TestOutside holds what is answered outside the frontier.
func TestOutside(t *testing.T) {
	f := exampleFrontier(t)
	n := quick(t, f)
	h := &f.Header
	last := f.Points[len(f.Points)-1]
	for _, effort := range []round.Effort{round.Fast, round.Normal} {
		for _, test := range []struct {
			name     string
			request  Request
			feasible bool
			time     unit.Time // at most
			note     string    // part of it
		}{
			{"time below the least", Request{Goal: WithinTime, Time: h.TMin - 1}, false, h.TMin, "no plan is as fast as"},
			{"the least time", Request{Goal: WithinTime, Time: h.TMin}, true, h.TMin, ""},
			{"time above the greatest", Request{Goal: WithinTime, Time: h.TMax + 1}, true, h.TMax - 1, "would use more energy"},
			{"slowdown of 1", Request{Goal: Slowdown, Factor: One}, true, h.TMin, ""},
			{"slowdown of 3", Request{Goal: Slowdown, Factor: 3 * One}, true, h.TMax - 1, "would use more energy"},
			{"straggler of 1", Request{Goal: Straggler, Factor: One}, true, h.TMin, ""},
			{"straggler of 3", Request{Goal: Straggler, Factor: 3 * One}, true, h.TMax, "no op saves anything by being slower"},
			{"power that cannot be met", Request{Goal: AveragePower, Power: unit.Watt}, false, h.TMax, "draws as little as"},
			{"more power than any plan draws", Request{Goal: AveragePower, Power: unit.MaxPower}, true, h.TMin, ""},
		} {
			t.Run(effort.String()+"/"+test.name, func(t *testing.T) {
				r := test.request
				r.Effort = effort
				p, err := n.Make(r)
				if err != nil {
					t.Fatal(err)
				}
				if p.Feasible != test.feasible || p.Time > test.time || !strings.Contains(p.Note, test.note) || (p.Note == "") != (test.note == "") {
					t.Errorf("feasible %v, %v, %q", p.Feasible, p.Time, p.Note)
				}
			})
		}
		p, err := n.Make(Request{Goal: Straggler, Factor: 3 * One, Effort: effort})
		if err != nil || p.Time != last.Time || p.WaitTime != 3*h.TMin || p.BaselineTime != 3*h.TMin {
			t.Errorf("straggler of 3: %v until %v, baseline until %v, %v", p.Time, p.WaitTime, p.BaselineTime, err)
		}
	}
}

func TestRequestErrors(t *testing.T) {
	n := quick(t, exampleFrontier(t))
	for _, test := range []struct {
		request Request
		want    string
	}{
		{Request{Goal: WithinTime}, "time 0s: "},
		{Request{Goal: WithinTime, Time: -1}, "time -0.000000001s: "},
		{Request{Goal: Straggler, Factor: One - 1}, "straggler 0.999999999: expected a factor of at least 1"},
		{Request{Goal: Straggler, Factor: 9 * One / 10}, "straggler 0.9: "},
		{Request{Goal: Slowdown, Factor: 1 << 62}, "slowdown 4611686018.427387904: "},
		{Request{Goal: AveragePower}, "power 0W: "},
		{Request{Goal: Fastest, Margin: -1}, "margin "},
		{Request{Goal: Fastest, Margin: 2 * One, Effort: round.Normal}, "margin 200%: "},
		{Request{Goal: Fastest, Margin: One / 200}, "effort fast: takes a point of the file"},
	} {
		_, err := n.Make(test.request)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %s…", test.request, err, test.want)
		}
	}
	if _, err := n.Make(Request{Goal: 77}); err == nil {
		t.Error("an unknown goal is no error")
	}
}

// TestHold plans for GPUs that switch slowly: no clock is kept for less than asked, no plan is slower than without, and its
// bound holds.
func TestHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFrontier(t)
		n := quick(t, f)
		r := drawRequest(t, f)
		free, err := n.Make(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		r.Hold = 1 + unit.Time(rapid.Int64Range(0, int64(2*free.Time)).Draw(t, "hold"))
		p, err := n.Make(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		simulate(t, n, p)
		if p.Time > free.Time || p.Bound > p.Energy {
			t.Errorf("takes %v and %v for %v without holding, bound %v", p.Time, p.Energy, free.Time, p.Bound)
		}
	})
}

// TestHeld checks on a job like real ones how long clocks are kept, and that hardly anything is lost where that is little.
func TestHeld(t *testing.T) {
	f := exampleFrontier(t)
	n := planner(t, f)
	for _, r := range []Request{{Goal: Fastest}, {Goal: Straggler, Factor: 6 * One / 5}, {Goal: Slowdown, Factor: 11 * One / 10, Effort: round.Normal}, {Goal: LeastEnergy}} {
		free, err := n.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, hold := range []unit.Time{unit.Millisecond, 30 * unit.Millisecond, 80 * unit.Millisecond, 200 * unit.Millisecond, 500 * unit.Millisecond, unit.MaxMakespan} {
			r.Hold = hold
			p, err := n.Make(r)
			if err != nil {
				t.Fatal(err)
			}
			changes := 0
			for rank, ops := range p.Ranks {
				begin := 0
				for i := 1; i <= len(ops); i++ {
					end := free.Time + ops[0].Start
					if i < len(ops) {
						if ops[i].Knobs == ops[begin].Knobs {
							continue
						}
						end = ops[i].Start
						changes++
					}
					if held := end - ops[begin].Start; held < hold && (begin > 0 || i < len(ops)) {
						t.Errorf("%v, hold %v: rank %d keeps the clock of ops %d to %d for %v", r.Goal, hold, rank, begin, i, held)
					}
					begin = i
				}
			}
			t.Logf("%v, %v: saves %s, %s without; %d changes", r.Goal, hold, p.Saving.Percent(), free.Saving.Percent(), changes)
			if hold == unit.Millisecond && (p.Energy != free.Energy || p.Point != free.Point) {
				t.Errorf("%v: another plan although all ops are longer", r.Goal)
			}
			if p.Time > free.Time || p.Saving < 0 || p.Bound > p.Energy {
				t.Errorf("%v, hold %v: %v saves %s", r.Goal, hold, p.Time, p.Saving.Percent())
			}
		}
	}
}
