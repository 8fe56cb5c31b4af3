package simulate

import (
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// twoOps returns a forward and a backward on one rank. At 1,000 MHz either takes
// 100 ms and 10 J, at 2,000 MHz 50 ms and 20 J.
func twoOps(t *testing.T, forward, backward int32) *Schedule {
	t.Helper()
	order, err := pipeline.Build("1f1b", pipeline.Size{Ranks: 1, Microbatches: 1})
	if err != nil {
		t.Fatal(err)
	}
	g, err := order.Graph()
	if err != nil {
		t.Fatal(err)
	}
	const w = 10 * unit.Watt
	options := []dag.Option{
		{Knobs: dag.Knobs{ClockMHz: 1000}, Time: 100 * unit.Millisecond, Energy: 10 * unit.Joule},
		{Knobs: dag.Knobs{ClockMHz: 2000}, Time: 50 * unit.Millisecond, Energy: 20 * unit.Joule},
	}
	c, err := dag.NewCurve(options, w)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pipeline{Order: order, GPUsPerRank: 1, Blocking: []unit.Power{w}, Options: [][]dag.Option{options}, Stage: []int{0}, Instruction: []string{"forward"}}
	if p.Problem, err = dag.NewProblem(g, []dag.Curve{c}, []int32{0, 0}, w); err != nil {
		t.Fatal(err)
	}
	p.index()
	s := &Schedule{Pipeline: p}
	for _, clock := range []int32{forward, backward} {
		o, _ := p.At(0, clock)
		s.Option = append(s.Option, o)
	}
	return s
}

// TestSwitching follows switches by hand.
func TestSwitching(t *testing.T) {
	const ms = unit.Millisecond
	for _, c := range []struct {
		name              string
		forward, backward int32
		latency           string
		want              [2]unit.Time
		joules            [2]float64
		switches          int
	}{
		{"none needed", 2000, 2000, "30ms", [2]unit.Time{50 * ms, 50 * ms}, [2]float64{20, 20}, 0},
		// The iteration before ended at 1,000 MHz: 20 ms at that clock are a fifth of
		// the forward, and the rest takes 40 ms at 2,000 MHz. The backward then does
		// 20 ms at 2,000 MHz, two fifths of it, and 60 ms at 1,000 MHz.
		{"both ways", 2000, 1000, "20ms", [2]unit.Time{60 * ms, 80 * ms}, [2]float64{2 + 16, 8 + 6}, 2},
		// Neither op lives to see its switch; the second request calls the first off,
		// since the clock in force is the one it wants.
		{"too slow", 2000, 1000, "1s", [2]unit.Time{100 * ms, 100 * ms}, [2]float64{10, 10}, 1},
		{"by target", 2000, 1000, "2000=20ms", [2]unit.Time{60 * ms, 100 * ms}, [2]float64{18, 10}, 2},
		{"by pair", 2000, 1000, "2000:1000=20ms", [2]unit.Time{50 * ms, 80 * ms}, [2]float64{20, 14}, 2},
	} {
		table, err := ParseSwitchTable(c.latency)
		if err != nil {
			t.Fatal(err)
		}
		n := replay(t, Options{Switch: table}, Member{Schedule: twoOps(t, c.forward, c.backward)})
		line := n.Timelines[0]
		for op := range c.want {
			if line.Duration[op] != c.want[op] || line.Energy[op].Joules() != c.joules[op] {
				t.Errorf("%s: op %d takes %v and %v, want %v and %v J", c.name, op, line.Duration[op], line.Energy[op], c.want[op], c.joules[op])
			}
		}
		if line.Ranks[0].Switches != c.switches {
			t.Errorf("%s: %d switches, want %d", c.name, line.Ranks[0].Switches, c.switches)
		}
	}
}

// TestBlockingByClock: a GPU waits at the clock that its last op left.
func TestBlockingByClock(t *testing.T) {
	table, err := ParsePowerTable("1000=40,2000=100")
	if err != nil {
		t.Fatal(err)
	}
	n := replay(t, Options{Blocking: table, Until: unit.Second}, Member{Schedule: twoOps(t, 2000, 1000)})
	u := n.Timelines[0].Ranks[0]
	if u.Blocked != 850*unit.Millisecond || u.Blocking.Joules() != 34 {
		t.Errorf("waits %v for %v J, want 850 ms for 34 J", u.Blocked, u.Blocking.Joules())
	}
	// While a switch is on its way, it waits at the clock in force.
	latency, _ := ParseSwitchTable("100ms")
	n = replay(t, Options{Blocking: table, Switch: latency, Until: unit.Second}, Member{Schedule: twoOps(t, 1000, 2000)})
	u = n.Timelines[0].Ranks[0]
	// Both ops run at the clock that was: the forward at 2,000 MHz, because its
	// switch takes twice as long, and the backward asks for the clock in force.
	if u.Busy != 100*unit.Millisecond || u.Blocking.Joules() != 90 {
		t.Errorf("busy %v, waits for %v J", u.Busy, u.Blocking.Joules())
	}
}

// TestFixedWork: loading and the optimizer count as fixed, at their own power.
func TestFixedWork(t *testing.T) {
	power := 50 * unit.Watt
	n := replay(t, Options{Load: 10 * unit.Millisecond, Optimizer: 100 * unit.Millisecond, FixedPower: &power}, Member{Schedule: twoOps(t, 2000, 2000)})
	u := n.Timelines[0].Ranks[0]
	if n.Time != 210*unit.Millisecond || u.Fixed != 110*unit.Millisecond || u.FixedEnergy.Joules() != 5.5 || u.Blocked != 0 {
		t.Errorf("%v, %+v", n.Time, u)
	}
	causes, err := n.Timelines[0].Causes(n.Time - n.Optimizer)
	if err != nil {
		t.Fatal(err)
	}
	if sum := causes.Needed.Add(causes.Intrinsic).Add(causes.Extrinsic); sum.Cmp(causes.Total) != 0 || causes.Fixed.Joules() != 5.5 {
		t.Errorf("%+v", causes)
	}
}

// TestNoise: the same seed gives the same times, on average as measured.
func TestNoise(t *testing.T) {
	n := newNoise(1, 2, 1e7)
	sum, square := 0.0, 0.0
	const draws = 200_000
	for range draws {
		z := float64(n.next()-1e9) / 1e7
		sum += z
		square += z * z
	}
	if mean, variance := sum/draws, square/draws; mean < -0.01 || mean > 0.01 || variance < 0.98 || variance > 1.02 {
		t.Errorf("mean %v, variance %v", mean, variance)
	}
	// Golden: PCG(1, 2), as math/rand/v2 defines it for all time.
	n = newNoise(1, 2, 1e8)
	for i, want := range []int64{1079856872, 1042376708, 957841492} {
		if got := int64(n.next()); got != want {
			t.Errorf("draw %d is %d, want %d", i, got, want)
		}
	}
}
