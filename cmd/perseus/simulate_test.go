package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
)

// TestSimulate: a plan replayed from the frontier, and from its own file, has the
// plan's time and energy.
func TestSimulate(t *testing.T) {
	f, _ := exampleFiles(t)
	plan := must(t, "plan", f, "--slowdown", "1.05", "--effort", "fast", "--format", "json", "-q").stdout
	var want struct {
		Time   float64 `json:"time_s"`
		Energy float64 `json:"energy_j"`
	}
	if err := json.Unmarshal([]byte(plan), &want); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "plan.json", plan)
	for _, args := range [][]string{
		{f, "--slowdown", "1.05", "--effort", "fast"}, {f, "--plan", file}, {"--plan", file, "--blocking-power", "84"},
	} {
		var got struct {
			Time      float64 `json:"time_s"`
			Energy    float64 `json:"energy_j"`
			Pipelines []struct {
				Ranks []struct {
					Busy    float64 `json:"busy_s"`
					Blocked float64 `json:"blocked_s"`
				} `json:"ranks"`
			} `json:"pipelines"`
		}
		text := must(t, append([]string{"simulate", "--json"}, args...)...).stdout
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Time != want.Time || math.Abs(got.Energy/want.Energy-1) > 1e-9 {
			t.Errorf("%q: %v s, %v J, want %v s, %v J", args, got.Time, got.Energy, want.Time, want.Energy)
		}
		for r, u := range got.Pipelines[0].Ranks {
			if math.Abs(u.Busy+u.Blocked-got.Time) > 1e-9 {
				t.Errorf("%q: rank %d is busy %v s and blocked %v s of %v s", args, r, u.Busy, u.Blocked, got.Time)
			}
		}
	}
}

// TestSimulateConditions runs every condition at once, and shows it in each format.
func TestSimulateConditions(t *testing.T) {
	f, p := exampleFiles(t)
	trace := writeFile(t, "trace.csv", "time_s,pipeline,rank,factor\n0.5,1,2,1.5\n2,1,2,1\n")
	args := []string{
		"simulate", f, "--profile", p, "--straggler", "1.1", "--effort", "fast", "--pipelines", "3", "--slow", "0=1.1", "--trace", trace,
		"--iterations", "3", "--p2p-latency", "50us", "--noise", "1%", "--load-time", "1ms", "--optimizer-time", "50ms", "--fixed-power", "100",
		"--blocking-power", "1410=84,810=60", "--switch-latency", "1410=5ms,*=8ms", "--pipeline", "1",
	}
	text := must(t, args...).stdout
	for _, want := range []string{"3 pipeline(s) on 24 GPUs", "3 iterations", "pipeline 1", "extrinsic bloat"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if again := must(t, args...).stdout; again != text {
		t.Error("the same seed gives another text")
	}
	csv := must(t, append(args, "--format", "csv")...).stdout
	if n := strings.Count(csv, "\n"); n != 1+3*8*2*12 {
		t.Errorf("%d lines of csv", n)
	}
	if clocks := must(t, "simulate", f, "--profile", p, "--clocks", "1200").stdout; !strings.Contains(clocks, "fixed clocks") {
		t.Error(clocks)
	}
}

// TestCalibrate prints what the issue names, on published runs.
func TestCalibrate(t *testing.T) {
	runs := shareddata.Shared(t, "data", "runs", "gpt3-xl-a100-pp4-m128.jsonl")
	var got struct {
		Mean         *float64 `json:"mean_error_percent"`
		Max          *float64 `json:"max_error_percent"`
		Uncalibrated *float64 `json:"uncalibrated_mean_error_percent"`
		Plans        []struct {
			Predicted float64 `json:"predicted_s"`
			Measured  float64 `json:"measured_s"`
		} `json:"plans"`
	}
	if err := json.Unmarshal([]byte(must(t, "simulate", "--calibrate", runs, "--json").stdout), &got); err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for _, p := range got.Plans {
		mean += 100 * math.Abs(p.Predicted-p.Measured) / p.Measured / float64(len(got.Plans))
	}
	if *got.Mean > 0.5 || *got.Max > 1.5 || *got.Uncalibrated < 1 || math.Abs(mean-*got.Mean) > 1e-9 {
		t.Errorf("mean %v (recomputed %v), max %v, uncalibrated %v", *got.Mean, mean, *got.Max, *got.Uncalibrated)
	}
	if text := must(t, "simulate", "--calibrate", runs).stdout; strings.Contains(text, "DOES NOT FIT") {
		t.Error(text)
	}
}

func TestCompare(t *testing.T) {
	f, p := exampleFiles(t)
	small := smallProfile(t, 4, false)
	for _, args := range [][]string{
		{"compare", f},
		{"compare", f, "--profile", p},
		{"compare", "-p", small, "-m", "2", "--blocking-power", "80", "--noise", "1%", "--iterations", "3", "--pipelines", "2"},
	} {
		text := must(t, args...).stdout
		for _, want := range []string{"zeus-global", "zeus-per-stage", "envpipe", "perseus-published"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %s", args, want)
			}
		}
		if strings.Contains(text, "FAULT") {
			t.Error(text)
		}
	}
	if text := must(t, "compare", "--json", "-p", small, "-m", "4", "--blocking-power", "80").stdout; !json.Valid([]byte(text)) {
		t.Error(text)
	}
	if text := must(t, "compare", "--json", "--large-scale", "-p", small, "--blocking-power", "80").stdout; !strings.Contains(text, `"gpus": 8192`) {
		t.Error(text)
	}
}

// TestOddJobs: jobs with transfers, fixed work, other schedules and graphs are
// simulated and compared too.
func TestOddJobs(t *testing.T) {
	p := smallProfile(t, 4, false)
	graph := writeFile(t, "g.json", `{"format":"perseus-dag/1","resources":[{"name":"a","blocking_power_w":50},{"name":"b","blocking_power_w":50}],
"curves":[{"name":"c","options":[{"clock_mhz":1000,"time_s":1,"energy_j":100},{"clock_mhz":2000,"time_s":0.6,"energy_j":150}]}],
"ops":[{"name":"x","resource":"a","curve":"c"},{"name":"t","time_s":0.1},{"name":"y","resource":"b","curve":"c"}],"edges":[["x","t"],["t","y"]]}`)
	for _, args := range [][]string{
		{"-p", p, "--schedule", "1f1b", "-m", "4", "--blocking-power", "80", "--p2p-latency", "1ms", "--fixed", "load=2ms,optimizer=5ms"},
		{"-p", p, "--schedule", "zb-h1", "-m", "8", "--blocking-power", "80", "--derive", "split-backward"},
		{"--dag", graph},
	} {
		f, _ := frontierOf(t, args...)
		var plan, replayed struct {
			Time   float64 `json:"time_s"`
			Energy float64 `json:"energy_j"`
		}
		file := writeFile(t, "plan.json", must(t, "plan", f, "--fastest", "--effort", "fast", "--format", "json", "-q").stdout)
		for path, into := range map[string]any{read(t, file): &plan, must(t, "simulate", f, "--plan", file, "--json").stdout: &replayed} {
			if err := json.Unmarshal([]byte(path), into); err != nil {
				t.Fatal(err)
			}
		}
		if plan.Time != replayed.Time || math.Abs(plan.Energy/replayed.Energy-1) > 1e-9 {
			t.Errorf("%q: planned %+v, replayed %+v", args, plan, replayed)
		}
		if text := must(t, "compare", f).stdout; strings.Contains(text, "FAULT") {
			t.Error(text)
		}
	}
}

func TestBadSimulation(t *testing.T) {
	f, _ := exampleFiles(t)
	back := writeFile(t, "back.csv", "time_s,rank,factor\n1,0,1.2\n0.5,0,1\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"simulate"}, "what to simulate is missing"},
		{[]string{"simulate", f, "--trace", back}, "back.csv:3: time 0.5s goes back"},
		{[]string{"simulate", f, "--p2p-latency=-1ms"}, "p2p latency -0.001s"},
		{[]string{"simulate", f, "--slow", "0:8=1.2"}, "there is no rank 8"},
		{[]string{"simulate", f, "--slow", "0=0.9"}, "--slow: slowdown"},
		{[]string{"simulate", f, "--noise", "20%"}, "noise 20%"},
		{[]string{"simulate", f, "--clocks", "1411"}, "nearest is 1410 MHz"},
		{[]string{"simulate", f, "--switch-latency", "1410=x"}, "--switch-latency: pair 1"},
		{[]string{"simulate", f, "--blocking-power=-3"}, "--blocking-power: power"},
		{[]string{"simulate", f, "--pipeline", "1"}, "--pipeline 1"},
		{[]string{"simulate", "--calibrate", back}, "back.csv:1: "},
		{[]string{"simulate", "--calibrate", back, f}, "stands alone"},
		{[]string{"compare"}, "what to compare is missing"},
		{[]string{"compare", f, "--paper", "."}, "leave out F.json"},
		{[]string{"compare", "--large-scale"}, "needs --profile"},
		{[]string{"compare", "--paper", t.TempDir()}, "there is no profile"},
		{[]string{"compare", f, "--noise", "20%"}, "--noise 20%"},
		{[]string{"compare", f, "--pipelines", "0"}, "--pipelines 0"},
	} {
		r := perseus(t, "", c.args...)
		if r.status != statusBadInput || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: status %d, %s, want %q", c.args, r.status, r.stderr, c.want)
		}
	}
}

// TestSimulateStraggler has the text say what each pipeline runs.
func TestSimulateStraggler(t *testing.T) {
	file, _ := frontierOf(t, "-p", smallProfile(t, 2, false), "--schedule", "1f1b", "-m", "3", "--blocking-power", "60")
	text := must(t, "simulate", file, "--straggler", "1.2", "--pipelines", "4", "--slow", "0=1.2").stdout
	for _, want := range []string{"fastest and straggler", "pipeline 0: fastest", "pipelines 1–3: straggler", " J each\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if alone := must(t, "simulate", file, "--straggler", "1.2").stdout; !strings.HasPrefix(alone, "straggler") || strings.Contains(alone, "pipelines 0") {
		t.Errorf("%s", alone)
	}
	for _, slow := range []string{"0=1.2", "*=1.2"} {
		if r := perseus(t, "", "simulate", file, "--straggler", "1.2", "--slow", slow); r.status != statusBadInput || !strings.Contains(r.stderr, "give more --pipelines") {
			t.Errorf("%+v", r)
		}
	}
}

// TestSimulateRefuses has no flag be ignored.
func TestSimulateRefuses(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "3", "--blocking-power", "60")
	plan := writeFile(t, "plan.csv", must(t, "plan", file, "--fastest").stdout)
	for _, args := range [][]string{
		{file, "--max-clocks", "--margin", "1%"},
		{file, "--clocks", "1410", "--margin", "1%"},
		{file, "--plan", plan, "--margin", "1%"},
		{"--plan", plan, "--blocking-power", "60", "--profile", profile},
	} {
		if r := perseus(t, "", append([]string{"simulate"}, args...)...); r.status != statusBadInput || !strings.Contains(r.stderr, "has no use here") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, flags := range [][]string{{"--noise", "1%"}, {"--plan", plan}, {"--pipelines", "2"}, {"--max-clocks"}, {"--min-energy"}} {
		if r := perseus(t, "", append([]string{"simulate", "--calibrate", plan}, flags...)...); r.status != statusBadInput || !strings.Contains(r.stderr, "stands alone") {
			t.Errorf("%q: %+v", flags, r)
		}
	}
}
