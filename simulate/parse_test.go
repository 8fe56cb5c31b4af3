package simulate

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

func TestReadTrace(t *testing.T) {
	ranks := []int{4, 4}
	csv := "time_s,pipeline,rank,factor\n0,0,1,1.2\n1.5,*,,1\n2,1,3,150%\n"
	jsonl := `{"time_s": 0, "pipeline": 0, "rank": 1, "factor": 1.2}` + "\n\n" + `{"time_s": 1.5, "factor": 1}` + "\n" + `{"time_s": 2, "pipeline": 1, "rank": 3, "factor": 1.5}`
	want := []Slowdown{{0, 0, 1, 12e8}, {15e8, All, All, 1e9}, {2e9, 1, 3, 15e8}}
	for _, text := range []string{csv, jsonl, "\ufeff" + csv, strings.ReplaceAll(csv, "\n", "\r\n")} {
		got, err := ReadTrace(strings.NewReader(text), "trace", ranks)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%+v", got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("line %d: %+v, want %+v", i, got[i], want[i])
			}
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "trace: is empty"},
		{"time_s,speed\n", `trace:1: column "speed"`},
		{"time_s,time_s,factor\n", `trace:1: column "time_s"`},
		{"time_s,rank\n", "trace:1: column factor is missing"},
		{"time_s,factor\n1,1.2\n0.5,1.3\n", "trace:3: time 0.5s goes back, from 1s"},
		{"time_s,factor\n-1,1.2\n", "trace:2: time_s \"-1\": it is negative"},
		{"time_s,factor\nsoon,1.2\n", `trace:2: time_s "soon"`},
		{"time_s,rank,factor\n0,4,1.2\n", "trace:2: there is no rank 4: pipeline 0 has 0 … 3"},
		{"time_s,rank,factor\n0,-1,1.2\n", `trace:2: rank "-1"`},
		{"time_s,pipeline,factor\n0,2,1.2\n", "trace:2: there is no pipeline 2: the job has 0 … 1"},
		{"time_s,factor\n0,0.9\n", `trace:2: factor "0.9": expected 1 … 1000`},
		{"time_s,factor\n0,2,3\n", "trace:2: wrong number of fields"},
		{`{"time_s": 0, "factor": 1.2}` + "\n" + `{"time_s": 0, "fcator": 1.2}`, "trace:2: json: unknown field"},
		{`{"time_s": 0, "factor": 1.2} {}`, "trace:1: text after the object"},
		{`{"factor": 1.2}`, `trace:1: time_s ""`},
		{`{"time_s": 0, "rank": 0.5, "factor": 1.2}`, `trace:1: rank "0.5"`},
	} {
		if _, err := ReadTrace(strings.NewReader(c.text), "trace", ranks); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	p, err := ParsePowerTable("1410=84,900=60, 1200=71")
	if err != nil {
		t.Fatal(err)
	}
	for clock, want := range map[int32]unit.Power{100: 60e6, 900: 60e6, 1050: 655e5, 1200: 71e6, 1410: 84e6, 2000: 84e6} {
		if got := p.At(clock); got != want {
			t.Errorf("power at %d MHz is %v, want %v", clock, got, want)
		}
	}
	s, err := ParseSwitchTable("1410=15ms,1200:900=40ms,*=20ms")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to int32
		want     unit.Time
	}{{900, 1410, 15e6}, {1200, 900, 40e6}, {1410, 900, 20e6}, {900, 1200, 20e6}} {
		if got := s.Latency(c.from, c.to); got != c.want {
			t.Errorf("%d to %d MHz takes %v, want %v", c.from, c.to, got, c.want)
		}
	}
	if all, err := ParseSwitchTable("15ms"); err != nil || all.Latency(1, 2) != 15e6 {
		t.Error(all, err)
	}
	for _, bad := range []string{"x", "-1", "1410=84,1410=85", "0=84", "1410", "1410=", "=84", "1410=84,", "1410=-84"} {
		if _, err := ParsePowerTable(bad); err == nil && bad != "1410" {
			t.Errorf("power %q is taken", bad)
		}
	}
	for _, bad := range []string{"x", "-1ms", "1410=1ms,1410=2ms", "*=1ms,*=2ms", "a:b=1ms", "1:=1ms", "1410=-1ms"} {
		if _, err := ParseSwitchTable(bad); err == nil {
			t.Errorf("latency %q is taken", bad)
		}
	}
	if d, err := ParseSlowdown("1:3=1.2"); err != nil || d != (Slowdown{0, 1, 3, 12e8}) {
		t.Error(d, err)
	}
	for _, bad := range []string{"1.2", "x=1.2", "0=0.5", "0:x=1.2", "0=1001", "-2=1.1"} {
		if _, err := ParseSlowdown(bad); err == nil {
			t.Errorf("slowdown %q is taken", bad)
		}
	}
}

// TestBadOptions: what is out of range is an error that names it.
func TestBadOptions(t *testing.T) {
	_, pipe := example(t, 4)
	one := []Member{{Schedule: pipe.MaxClocks()}}
	negative := -unit.Watt
	for want, o := range map[string]Options{
		"p2p latency":           {P2P: -1},
		"data loading":          {Load: -1},
		"optimizer time":        {Optimizer: -1},
		"straggler time":        {Until: -1},
		"noise":                 {Noise: MaxNoise + 1},
		"fixed power":           {FixedPower: &negative},
		"slowdown 1: factor":    {Slow: []Slowdown{{Factor: 5e8}}},
		"there is no rank 8":    {Slow: []Slowdown{{Rank: 8, Factor: 1e9}}},
		"there is no pipeline":  {Slow: []Slowdown{{Pipeline: 1, Factor: 1e9}}},
		"slowdown 2: time 0s":   {Slow: []Slowdown{{From: 1, Factor: 1e9}, {Factor: 1e9}}},
		"slowdown 1: time -1ns": {Slow: []Slowdown{{From: -1, Factor: 1e9}}},
	} {
		if _, err := NewSimulator(one, o); err == nil || !strings.Contains(err.Error(), want) && want != "slowdown 1: time -1ns" {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := NewSimulator(nil, Options{}); err == nil {
		t.Error("a job without pipelines")
	}
	if _, err := pipe.Clocks([]int32{1411}); err == nil || !strings.Contains(err.Error(), "nearest is 1410 MHz") {
		t.Error(err)
	}
	if _, err := pipe.Clocks([]int32{1410, 1395}); err == nil {
		t.Error("two clocks for eight stages")
	}
	if s, err := pipe.Clocks([]int32{1395}); err != nil || s.Option[0].Knobs.ClockMHz != 1395 {
		t.Error(err)
	}
}

// TestRates: work is done when the rate adds up to it, and never earlier for
// beginning later.
func TestRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slow []Slowdown
		from := unit.Time(0)
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			slow = append(slow, Slowdown{From: from, Factor: plan.Ratio(rapid.Int64Range(1e9, 4e9).Draw(t, "factor"))})
			from += unit.Time(rapid.Int64Range(0, 50).Draw(t, "long"))
		}
		rates, err := newRates(slow, []int{1})
		if err != nil {
			t.Fatal(err)
		}
		r := rates[0][0]
		work := unit.Time(rapid.Int64Range(0, 100).Draw(t, "work"))
		before := unit.Time(0)
		for begin := range unit.Time(200) {
			end := r.end(0, begin, work)
			if end < before || end < begin+work {
				t.Fatalf("%d of work from %d ends at %d, from the ns before at %d", work, begin, end, before)
			}
			if done := r.work(r.piece(0, end), end) - r.work(r.piece(0, begin), begin); done < work {
				t.Fatalf("only %d of %d done by %d", done, work, end)
			}
			if end > begin {
				if done := r.work(r.piece(0, end-1), end-1) - r.work(r.piece(0, begin), begin); done >= work && work > 0 {
					t.Fatalf("%d of work from %d was done before %d", work, begin, end)
				}
			}
			before = end
		}
	})
}

// TestPlanFiles: a plan written and read runs as before, with a frontier and
// without.
func TestPlanFiles(t *testing.T) {
	f, pipe := example(t, 4)
	p := planOf(t, f, plan.Request{Goal: plan.Straggler, Factor: 11e8})
	var csv, json bytes.Buffer
	if err := p.WriteCSV(&csv); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteJSON(&json); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{csv.String(), json.String()} {
		read, err := ReadPlan(strings.NewReader(text), "plan")
		if err != nil {
			t.Fatal(err)
		}
		with, err := pipe.Plan(read)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := FromPlan(read, f.Header.BlockingPower)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Schedule{with, alone} {
			n := replay(t, Options{}, Member{Schedule: s})
			if got, _ := n.Energy().Nanojoules(unit.Nearest); abs(got-int64(p.Energy)) > 1 || n.Time != p.Time {
				t.Errorf("%v, %d nJ; the plan has %v, %d nJ", n.Time, got, p.Time, p.Energy)
			}
		}
	}
	for _, c := range []struct{ text, want string }{
		{"", "plan: is empty"},
		{"a,b\n", "plan:1: header"},
		{planColumns + "\n", "plan: has no ops"},
		{planColumns + "\n0,0,0,forward,1410,0,x,1\n", `plan:2: time_s "x"`},
		{planColumns + "\n0,0,0,forward,-1,0,1,1\n", `plan:2: frequency_mhz "-1"`},
		{planColumns + "\n1,0,0,forward,1410,0,1,1\n", "plan:2: rank 1 after rank -1"},
		{planColumns + "\n0,0,0,forward,1410,0,1,-1\n", "plan:2: energy_j"},
		{planColumns + "\n0,0,0,forward\n", "plan:2: wrong number of fields"},
		{`{"format": "perseus-plan/9"}`, `plan: format "perseus-plan/9"`},
		{`{"format": "perseus-plan/1"}`, "plan: ranks: is missing"},
		{`{`, "plan: unexpected EOF"},
	} {
		if _, err := ReadPlan(strings.NewReader(c.text), "plan"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	other, _ := example(t, 5)
	if _, err := pipe.Plan(planOf(t, other, plan.Request{Goal: plan.Fastest})); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Error(err)
	}
}

func TestReadRuns(t *testing.T) {
	const good = `{"plan":0,"iter_time_s":[5.5],"forward_s":[[1,1]],"backward_s":[[1,1]]}`
	runs, err := ReadRuns(strings.NewReader(good+"\n\n"+`{"plan":7,"iter_time_s":6.6,"forward_s":[[1,1]],"backward_s":[[1,2]],"new_field":[{}]}`), "runs")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Calibrate(runs)
	if err != nil {
		t.Fatal(err)
	}
	if c.Overhead != 15e8 || c.Plans[1].Predicted != 65e8 || c.Plans[1].Measured != 66e8 {
		t.Errorf("%+v", c)
	}
	if e := c.Errors(); e.Fits() || e.Worst != 7 {
		t.Errorf("%+v", e)
	}
	var text bytes.Buffer
	if err := c.WriteText(&text); err != nil || !strings.Contains(text.String(), "DOES NOT FIT") {
		t.Error(text.String(), err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "runs: has no run"},
		{"{", "runs:1: unexpected end"},
		{`{"iter_time_s":[1]}`, "runs:1: forward_s: has 0 stages"},
		{`{"forward_s":[[1]],"backward_s":[[1]]}`, "runs:1: iter_time_s: is missing"},
		{`{"iter_time_s":[-1],"forward_s":[[1]],"backward_s":[[1]]}`, "runs:1: iter_time_s[0]"},
		{`{"iter_time_s":[1],"forward_s":[[1],[1,2]],"backward_s":[[1],[1]]}`, "runs:1: forward_s[1]: has 2 times where 1 are expected"},
		{`{"iter_time_s":[1],"pp":3,"forward_s":[[1]],"backward_s":[[1]]}`, "runs:1: forward_s: has 1 stages where 3"},
		{`{"iter_time_s":[1],"forward_s":[[1]],"backward_s":[[0]]}`, "runs:1: backward_s[0][0]"},
		{`{"iter_time_s":[1],"forward_s":[["x"]],"backward_s":[[0]]}`, "runs:1: "},
		{good + "\n" + `{"iter_time_s":[1],"forward_s":[[1]],"backward_s":[[1]]}`, "runs:2: microbatches: 1, but line 1 has 2"},
	} {
		if _, err := ReadRuns(strings.NewReader(c.text), "runs"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// FuzzRead: whatever a file holds is read or is an error.
func FuzzRead(f *testing.F) {
	f.Add("time_s,pipeline,rank,factor\n0,0,1,1.2\n")
	f.Add(`{"time_s": 0, "factor": 1.2}`)
	f.Add(planColumns + "\n0,0,0,forward,1410,0,1,1\n0,0,0,backward,1410,1,1,1\n")
	f.Add(`{"format": "perseus-plan/1", "ranks": [{"ops": [{"instruction": "forward", "time_s": 1, "knobs": {"clock_mhz": 3}}]}]}`)
	f.Add(`{"plan":0,"iter_time_s":[5.5],"forward_s":[[1,1]],"backward_s":[[1,1]]}`)
	f.Add("1200:900=40ms,*=20ms")
	f.Fuzz(func(t *testing.T, text string) {
		if slow, err := ReadTrace(strings.NewReader(text), "f", []int{2, 3}); err == nil {
			if _, err := newRates(slow, []int{2, 3}); err != nil {
				t.Error(err)
			}
		}
		if p, err := ReadPlan(strings.NewReader(text), "f"); err == nil && len(p.Ranks) < 100 {
			if s, err := FromPlan(p, make([]unit.Power, len(p.Ranks))); err == nil {
				if _, err := Run([]Member{{Schedule: s}}, Options{P2P: 1, Load: 1}); err != nil {
					t.Error(err)
				}
			}
		}
		if runs, err := ReadRuns(strings.NewReader(text), "f"); err == nil {
			if c, err := Calibrate(runs); err == nil {
				c.Errors()
			}
		}
		if s, err := ParseSwitchTable(text); err == nil && s.Latency(1, 2) < 0 {
			t.Error("negative latency")
		}
		if p, err := ParsePowerTable(text); err == nil && p.At(1) < 0 {
			t.Error("negative power")
		}
	})
}
