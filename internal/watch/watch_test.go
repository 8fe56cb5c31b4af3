package watch

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// feed gives rank 0 n reports of one ratio and returns the changes.
func feed(d *Detector, at *int64, n int, ratio float64) []Change {
	var all []Change
	for range n {
		*at++
		all = append(all, d.Observe(0, *at, ratio)...)
	}
	return all
}

func TestDetector(t *testing.T) {
	d, at := New(Config{}), int64(0)
	steps := []struct {
		n     int
		ratio float64
		want  []Change
	}{
		{10, 1, nil},
		{2, 1.2, nil},
		{1, 1.2, []Change{{0, 1.2}}},
		{10, 1.22, nil},
		{5, 1.301, []Change{{0, 1.31}}},
		{22, 1, nil},
		{1, 1, []Change{{0, 1}}},
		{2, 1.2, nil},
		{1, 1.2, []Change{{0, 1.2}}}, // a return: the hold is 40 now
		{42, 1, nil},
		{1, 1, []Change{{0, 1}}},
		{1000, 1, nil},
		{3, 1.2, []Change{{0, 1.2}}}, // forgotten: 20 again
		{22, 1, nil},
		{1, 1, []Change{{0, 1}}},
	}
	for i, s := range steps {
		if got := feed(d, &at, s.n, s.ratio); !reflect.DeepEqual(got, s.want) {
			t.Fatalf("step %d: got %v, want %v", i, got, s.want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		d.Observe(0, 0, bad)
	}
	d.Observe(0, at, 9)
	if d.Ignored != 4 || d.Repeated != 1 {
		t.Errorf("ignored %d, repeated %d; want 4, 1", d.Ignored, d.Repeated)
	}
	if feed(d, &at, 100, 1); d.Ranks[0].Episode != nil || len(d.Ranks[0].Ratios) != 5 {
		t.Error("a rank with nothing unusual keeps more than the window")
	}
}

func TestFlapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slow, fast := rapid.IntRange(1, 60).Draw(t, "slow"), rapid.IntRange(1, 60).Draw(t, "fast")
		base := rapid.Float64Range(0.9, 1.1).Draw(t, "base")
		d, at, changes := New(Config{}), int64(0), 0
		for range 200 {
			changes += len(feed(d, &at, slow, 1.3))
			changes += len(feed(d, &at, fast, base))
		}
		// The hold outgrows such a fast phase after one doubling or two, and then nothing changes any more.
		if fast <= 40 && changes > 12 {
			t.Fatalf("%d changes", changes)
		}
	})
}

func TestSteady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, at := New(Config{}), int64(0)
		if got := feed(d, &at, 200, rapid.Float64Range(0.01, 1.05).Draw(t, "ratio")); got != nil {
			t.Fatal(got)
		}
	})
}

func TestJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0.9, 1.4), 1, 200).Draw(t, "ratios")
		a, b := New(Config{Hold: 3}), New(Config{Hold: 3})
		for i, x := range v {
			data, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			b = &Detector{}
			if err := json.Unmarshal(data, b); err != nil {
				t.Fatal(err)
			}
			if p, q := a.Observe(i%2, int64(i), x), b.Observe(i%2, int64(i), x); !reflect.DeepEqual(p, q) {
				t.Fatalf("%v after a round trip, %v without", q, p)
			}
		}
	})
}

func TestGuardrail(t *testing.T) {
	g := NewGuardrail(1, 0, 0)
	if v := g.Observe(19, 2); v.Tripped {
		t.Error("tripped before the window was full")
	}
	if v := g.Observe(1, 2); !v.Tripped || v.Mean != 2 || !strings.Contains(v.Reason, "planned 1 s") {
		t.Errorf("%+v", v)
	}
	if v := g.Observe(15, 1); v.Mean != 1.25 || v.Iterations != 20 {
		t.Errorf("%+v", v)
	}
	g.Reset(2)
	if v := g.Observe(50, 2.01); v.Tripped || v.Iterations != 20 {
		t.Errorf("%+v", v)
	}
	if g.Observe(0, 1); g.Ignored != 1 {
		t.Error("not ignored")
	}
}

func TestStudentT(t *testing.T) {
	for dof, want := range map[int]float64{1: 12.706205, 2: 4.302653, 3: 3.182446, 5: 2.570582, 10: 2.228139, 30: 2.042272} {
		if got := studentT(0.95, dof); math.Abs(got-want) > 1e-6 {
			t.Errorf("%d: got %v, want %v", dof, got, want)
		}
	}
}

func TestMeasurementCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	hit, runs := 0, 2000
	for range runs {
		m := NewMeasurement(6, 3, 1)
		for i := range m.Iterations() {
			e, s := 100*math.Exp(0.05*r.NormFloat64()+0.0005*float64(i)), 1.0
			if m.Arm(i) == Planned {
				e, s = e*0.8, 1.01
			}
			m.Observe(i, s, e)
		}
		saving, slow, ok := m.Result()
		if !ok || !m.Done() || math.Abs(slow.Value-1) > 1e-9 {
			t.Fatal(ok, m.Done(), slow)
		}
		if saving.Low <= 20 && 20 <= saving.High {
			hit++
		}
	}
	if share := float64(hit) / float64(runs); share < 0.93 || share > 0.97 {
		t.Errorf("the interval holds the truth %.3f of the time", share)
	}
}
