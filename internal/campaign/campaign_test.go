package campaign

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func descending(n int) []int {
	clocks := make([]int, n)
	for i := range clocks {
		clocks[i] = 1410 - 15*i
	}
	return clocks
}

// gpu is an op whose effective energy at 70 W is least at 1410 − 15·least MHz.
func gpu(clock, least int) (timeS, energyJ float64) {
	timeS = 100 / float64(clock)
	d := float64(clock - (1410 - 15*least))
	return timeS, 70*timeS + 10 + d*d/1e4
}

// run plays steps until the campaign ends and returns how many there were. bad of ten samples are ten times too large.
func run(t rapid.TB, c *Campaign, least, bad int) (steps int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for ; ; steps++ {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Campaign
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		clocks, more := c.Step()
		if again, moreAgain := back.Step(); !reflect.DeepEqual(again, clocks) || moreAgain != more {
			t.Fatal("a campaign that was saved and loaded takes another step")
		}
		if !more {
			return steps
		}
		if steps > 10000 {
			t.Fatal("the campaign does not end")
		}
		c.AddIteration(1, 70, 0.5, 35)
		for r := range clocks {
			for i, op := range c.Config.Ops {
				timeS, energyJ := gpu(clocks[r][i], least)
				if rng.IntN(10) < bad {
					timeS, energyJ = 10*timeS, 10*energyJ
				}
				c.Add(Sample{Stage: op.Stage, Instruction: op.Instruction, ClockMHz: clocks[r][i], TimeS: timeS, EnergyJ: energyJ})
			}
		}
	}
}

// TestStops shows that the way down ends five clocks below the least effective energy, and that replicas share it.
func TestStops(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		replicas, least, want, most int
		power                       float64
	}{
		{"one replica", 1, 10, 16, 16 * MinSamples, 70},
		{"blocking power from iterations", 1, 10, 16, 16 * MinSamples, 0},
		{"the top clock is best", 1, 0, 6, 6 * MinSamples, 70},
		{"never rises often enough", 1, 37, 40, 40 * MinSamples, 70},
		{"four replicas", 4, 10, 16, 5 * MinSamples, 70},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(Config{
				Ops: []Op{{0, "forward", descending(40)}, {0, "backward", descending(40)}}, Replicas: tt.replicas, Rises: 5,
				BlockingPowerW: tt.power,
			})
			if err != nil {
				t.Fatal(err)
			}
			if steps := run(t, c, tt.least, 0); steps > tt.most {
				t.Errorf("%d steps, want at most %d", steps, tt.most)
			}
			for i := range c.Points {
				tried := 0
				for j, p := range c.Points[i] {
					if len(p.TimesS) < MinSamples {
						continue
					}
					tried++
					timeS, energyJ := gpu(c.Config.Ops[i].ClocksMHz[j], tt.least)
					if Median(p.TimesS) != timeS || Median(p.EnergiesJ) != energyJ {
						t.Errorf("clock %d: not as measured", j)
					}
				}
				if tried < tt.want || tried > tt.want+tt.replicas-1 {
					t.Errorf("op %d: %d clocks tried, want %d", i, tried, tt.want)
				}
			}
			if w, ok := c.BlockingPower(); !ok || math.Abs(w-70) > 1e-9 {
				t.Errorf("BlockingPower() = %g, %t", w, ok)
			}
		})
	}
}

// TestLeftOut shows that what is no measurement changes nothing and is counted.
func TestLeftOut(t *testing.T) {
	c, err := New(Config{Ops: []Op{{0, "forward", []int{1410, 1395}}}, Replicas: 1, Rises: 5})
	if err != nil {
		t.Fatal(err)
	}
	good := Sample{Instruction: "forward", ClockMHz: 1410, TimeS: 1, EnergyJ: 1}
	for _, spoil := range []func(*Sample){
		func(s *Sample) { s.TimeS = math.NaN() },
		func(s *Sample) { s.TimeS = 0 },
		func(s *Sample) { s.EnergyJ = math.Inf(1) },
		func(s *Sample) { s.EnergyJ = -1 },
		func(s *Sample) { s.Capped = true },
		func(s *Sample) { s.Stage = 1 },
		func(s *Sample) { s.ClockMHz = 1400 },
	} {
		s := good
		spoil(&s)
		c.Add(s)
	}
	c.AddIteration(math.NaN(), 1, 1, 1)
	c.AddIteration(1, 1, 0.5, 2)
	if c.LeftOut != 9 || len(c.Points[0][0].TimesS) != 0 || len(c.Waiting) != 0 {
		t.Errorf("%d left out, want 9; %+v", c.LeftOut, c)
	}
	for range MaxSamples + 3 {
		c.Add(good)
	}
	if n := len(c.Points[0][0].TimesS); n != MaxSamples || c.Dropped != 3 {
		t.Errorf("%d kept, %d dropped", n, c.Dropped)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, ops := range [][]Op{
		nil,
		{{0, "forward", nil}},
		{{0, "forward", []int{1395, 1410}}},
		{{0, "forward", []int{1410, 1410}}},
		{{0, "forward", []int{1410}}, {0, "forward", []int{1410}}},
	} {
		if _, err := New(Config{Ops: ops, Replicas: 1, Rises: 5}); err == nil {
			t.Errorf("New(%v) succeeded", ops)
		}
	}
}

// TestEnds shows that any campaign ends within a sample a clock and step, outliers or not.
func TestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "clocks")
		c, err := New(Config{
			Ops: []Op{{0, "forward", descending(n)}}, Replicas: rapid.IntRange(1, 6).Draw(t, "replicas"),
			Rises: rapid.IntRange(1, 6).Draw(t, "rises"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps := run(t, c, rapid.IntRange(0, 40).Draw(t, "least"), rapid.IntRange(0, 10).Draw(t, "bad")); steps > n*MoreSamples {
			t.Fatalf("%d steps for %d clocks", steps, n)
		}
	})
}
