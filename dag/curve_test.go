package dag_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func options(t *rapid.T) []dag.Option {
	n := rapid.IntRange(1, 12).Draw(t, "n")
	out := make([]dag.Option, n)
	for i := range out {
		out[i] = dag.Option{
			Knobs:  dag.Knobs{ClockMHz: int32(rapid.IntRange(1, 20).Draw(t, "clock"))},
			Time:   unit.Time(rapid.Int64Range(0, 12).Draw(t, "time")),
			Energy: unit.Energy(rapid.Int64Range(-40, 40).Draw(t, "energy")),
		}
	}
	return out
}

// TestCurve compares the front, the hull and the certificate with their
// definitions.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		measured := options(t)
		before := slices.Clone(measured)
		blocking := unit.Power(rapid.Int64Range(0, 5000).Draw(t, "blocking"))
		c, err := dag.NewCurve(measured, blocking)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, measured) {
			t.Fatal("the input was changed")
		}
		effective := func(o dag.Option) unit.Energy { return dag.Effective(o.Energy, blocking, o.Time) }
		for i, o := range c.Options {
			if o.Effective != effective(o) {
				t.Fatalf("effective energy %d, want %d", o.Effective, effective(o))
			}
			if i > 0 && (o.Time >= c.Options[i-1].Time || o.Effective <= c.Options[i-1].Effective) {
				t.Fatal("the front does not fall in time and rise in energy")
			}
		}
		for _, m := range measured {
			if !slices.ContainsFunc(c.Options, func(o dag.Option) bool { return o.Time <= m.Time && o.Effective <= effective(m) }) {
				t.Fatalf("nothing on the front is as good as %+v", m)
			}
			if m.Knobs.ClockMHz > c.Top.Knobs.ClockMHz {
				t.Fatalf("top is %d MHz, there is %d MHz", c.Top.Knobs.ClockMHz, m.Knobs.ClockMHz)
			}
		}
		if c.Vertex(0) != c.Slowest() || c.Vertex(len(c.Hull)-1) != c.Fastest() {
			t.Fatal("the hull does not have the front's ends")
		}
		if len(c.Slope) != len(c.Hull)-1 {
			t.Fatalf("%d slopes for %d vertices", len(c.Slope), len(c.Hull))
		}
		for k, slope := range c.Slope {
			if slope < 1 || k > 0 && slope <= c.Slope[k-1] {
				t.Fatalf("slopes %v", c.Slope)
			}
		}
		// At any price of time the best option is a vertex, up to the rounding of slopes.
		for _, flow := range append(slices.Clone(c.Slope), 0, 1, 1000, 1e6) {
			least := c.Least(flow)
			best := c.Vertex(0).Effective.Widen().Add(unit.Product(flow, c.Vertex(0).Time))
			for k := range c.Hull {
				v := c.Vertex(k)
				if at := v.Effective.Widen().Add(unit.Product(flow, v.Time)); at.Cmp(best) < 0 {
					best = at
				}
			}
			allowed := unit.Product(1, c.Slowest().Time-c.Fastest().Time)
			if best.Sub(least).Cmp(allowed) > 0 || best.Cmp(least) < 0 {
				t.Fatalf("at flow %d the vertices have %v J, all options %v J", flow, best.Joules(), least.Joules())
			}
		}
	})
}

func TestCurveRefuses(t *testing.T) {
	cases := map[string]struct {
		options  []dag.Option
		blocking unit.Power
	}{
		"no option":      {nil, 0},
		"blocking power": {[]dag.Option{{Time: 1}}, -1},
		"blocking":       {[]dag.Option{{Time: 1}}, unit.MaxPower + 1},
		"time":           {[]dag.Option{{Time: -1}}, 0},
		"op's time":      {[]dag.Option{{Time: unit.MaxOpTime + 1}}, 0},
		"energy":         {[]dag.Option{{Energy: unit.MaxOpEnergy + 1}}, 0},
		"effective":      {[]dag.Option{{Time: unit.MaxOpTime, Energy: 1}}, unit.MaxPower},
		"±":              {[]dag.Option{{Time: unit.MaxOpTime, Energy: unit.MaxOpEnergy}}, 1e6 * unit.Watt},
		"too steep":      {[]dag.Option{{Time: 1, Energy: 10 * unit.Joule}, {Time: 2, Energy: 1}}, 0},
	}
	for want, c := range cases {
		if _, err := dag.NewCurve(c.options, c.blocking); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

// TestCurveTies has options that differ in knobs alone.
func TestCurveTies(t *testing.T) {
	c, err := dag.NewCurve([]dag.Option{
		{Knobs: dag.Knobs{ClockMHz: 3}, Time: 5, Energy: 7},
		{Knobs: dag.Knobs{ClockMHz: 1}, Time: 5, Energy: 7},
		{Knobs: dag.Knobs{ClockMHz: 2}, Time: 5, Energy: 8},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Options) != 1 || c.Options[0].Knobs.ClockMHz != 1 || c.Top.Knobs.ClockMHz != 3 {
		t.Errorf("front %+v, top %+v", c.Options, c.Top)
	}
}
