package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
)

// smallProfile writes a profile of a few clocks.
func smallProfile(t testing.TB, stages int, split bool) string {
	t.Helper()
	var b strings.Builder
	p := profile.Synthetic(profile.SyntheticConfig{Stages: stages, StepMHz: 200, Spread: 100, SplitBackward: split})
	if err := p.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "P.csv", b.String())
}

// frontierOf computes a frontier with the flags given and returns its file.
func frontierOf(t testing.TB, args ...string) (file string, r result) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "F.json")
	return file, must(t, append([]string{"frontier", "-o", file}, args...)...)
}

// TestReferenceOrders compares what schedules show prints with the orders that the
// schedules' own projects gave.
func TestReferenceOrders(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shareddata.Shared(t, "schedules"), "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("only %d reference orders: %v", len(files), err)
	}
	for _, file := range files {
		var want struct {
			Schedule                    string
			Ranks, Chunks, Microbatches int
			Group                       int `json:"group_size"`
			Order                       [][]string
		}
		if err := json.Unmarshal([]byte(read(t, file)), &want); err != nil {
			t.Fatal(err)
		}
		args := []string{
			"schedules", "show", want.Schedule, "--ranks", fmt.Sprint(want.Ranks), "--chunks", fmt.Sprint(want.Chunks),
			"--microbatches", fmt.Sprint(want.Microbatches), "--format", "csv",
		}
		if want.Group > 0 {
			args = append(args, "--group", fmt.Sprint(want.Group))
		}
		var text strings.Builder
		for _, rank := range want.Order {
			text.WriteString(strings.Join(rank, ",") + "\n")
		}
		if got := must(t, args...).stdout; got != text.String() {
			t.Errorf("%s: %q gives\n%swant\n%s", filepath.Base(file), args, got, text.String())
		}
	}
}

// TestEverySchedule computes the frontier of each schedule from a profile that has
// forwards and backwards only, verifies it, and makes a plan and a file of another
// schedule's name of it.
func TestEverySchedule(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	profiles := map[int]string{}
	for _, s := range pipeline.Schedules() {
		size := pipeline.Size{Ranks: 2, Microbatches: 4}
		order, err := pipeline.Build(s.Name, size)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name == "looped-bfs" || strings.HasPrefix(s.Name, "interleaved") {
			size.Chunks = 2
			if order, err = pipeline.Build(s.Name, size); err != nil {
				t.Fatal(err)
			}
		}
		if profiles[order.Stages] == "" {
			profiles[order.Stages] = smallProfile(t, order.Stages, false)
		}
		args := []string{"-p", profiles[order.Stages], "--schedule", s.Name, "-m", "4", "--blocking-power", "80,90", "--ranks", "2"}
		if size.Chunks > 0 {
			args = append(args, "--chunks", "2")
		}
		for _, terms := range [][]string{
			{"--derive", "split-backward,recompute,overlap"},
			{
				"--derive", "split-backward,recompute,overlap", "--fixed", "load=5ms,optimizer=20ms,reduce-grad=80ms", "--p2p-latency", "1.2ms",
				"--cap", "rank=1:1200MHz", "--microbatch-factors", "1,1.25,0.8:0.85,1", "--tp", "2", "--dp", "1",
			},
		} {
			file, r := frontierOf(t, append(terms, args...)...)
			derived := "derived, not measured: input-gradient=backward*0.5"
			if needs := strings.Contains(strings.Join(order.Instructions(), " "), "input-gradient"); needs != strings.Contains(r.stderr, derived) {
				t.Errorf("%s: %s", s.Name, r.stderr)
			}
			if v := must(t, "verify", file, "-p", profiles[order.Stages]); !strings.Contains(v.stdout, "exact") {
				t.Errorf("%s: %s", s.Name, v.stdout)
			}
			rows, err := csv.NewReader(strings.NewReader(must(t, "plan", file, "--slowdown", "1.1").stdout)).ReadAll()
			if err != nil || len(rows) < 1+order.Ops() {
				t.Errorf("%s: a plan of %d rows, %v", s.Name, len(rows), err)
			}
			if strings.Contains(s.Name, "1f1b") || s.Name == "gpipe" {
				continue
			}
			// The same order under another name is complete and free of deadlock, but false.
			other := "zb-h1"
			if s.Name == other {
				other = "interleaved-1f1b"
			}
			forged := writeFile(t, "forged.json", strings.Replace(read(t, file), `"schedule":"`+s.Name+`"`, `"schedule":"`+other+`"`, 1))
			if r := perseus(t, "", "verify", forged, "-p", profiles[order.Stages]); r.status != statusFailed {
				t.Errorf("%s as %s: %+v", s.Name, other, r)
			}
		}
	}
}

// TestNothingToDo is PyTorch's first stage, of which input gradients do nothing.
func TestNothingToDo(t *testing.T) {
	for _, split := range []bool{false, true} {
		profile := smallProfile(t, 2, split)
		file, r := frontierOf(t, "-p", profile, "--schedule", "zb-h1", "-m", "3", "--blocking-power", "84", "--derive", "split-backward-torch")
		want := "derived, not measured: input-gradient@0=backward*0\n"
		if split {
			want = "derived, in place of what was measured: input-gradient@0=backward*0\n"
		}
		if !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "measured: input-gradient=backward*0.5") == split {
			t.Errorf("%s", r.stderr)
		}
		must(t, "verify", file, "-p", profile)
		rows, err := csv.NewReader(strings.NewReader(must(t, "plan", file, "--fastest").stdout)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			if nothing := row[3] == "input-gradient" && row[1] == "0"; nothing != (row[6] == "0") || nothing != (row[4] == "0") {
				t.Errorf("%q", row)
			}
		}
		forged := writeFile(t, "F.json", strings.Replace(read(t, file), "weight-gradient@0=backward", "weight-gradient@0=backward*1.1", 1))
		if r := perseus(t, "", "verify", forged, "-p", profile); r.status != statusFailed {
			t.Errorf("%+v", r)
		}
	}
}

// TestForgedTerms changes in a file what a job has beyond its profile.
func TestForgedTerms(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "zb-h1", "-m", "3", "--blocking-power", "84", "--derive", "split-backward",
		"--fixed", "load=5ms,optimizer=20ms", "--p2p-latency", "1.2ms", "--cap", "rank=1:1210MHz", "--microbatch-factors", "1,1.25,0.8:0.85",
		"--op-factors", writeFile(t, "ops.csv", "stage,microbatch,instruction,time_factor,energy_factor\n1,2,forward,2,1.5\n"), "--tp", "2")
	text := read(t, file)
	if r := perseus(t, "", "verify", file, "-p", profile); r.status != statusDone || !strings.Contains(r.stdout, "terms: derived input-gradient=backward*0.5") {
		t.Fatalf("%+v", r)
	}
	for _, change := range [][2]string{
		{`input-gradient=backward*0.5`, `input-gradient=backward*0.6`},
		{`"derived":["input-gradient=backward*0.5",`, `"derived":[`},
		{`{"instruction":"load","time_s":0.005}`, `{"instruction":"load","time_s":0.006}`},
		{`"transfer_time_s":0.0012,`, `"transfer_time_s":0.0013,`},
		{`"transfer_time_s":0.0012,` + "\n", ``},
		{`"caps":[{"rank":0,"clock_mhz":1210}]`, `"caps":[{"rank":0,"clock_mhz":1010}]`},
		{`"caps":[{"rank":0,`, `"caps":[{"rank":1,`},
		{`[1.25,1.25]`, `[1.25,1.24]`},
		{`"time_factor":2,"energy_factor":1.5`, `"time_factor":2,"energy_factor":1.4`},
		{`{"stage":1,"microbatch":2,"instruction":"forward"`, `{"stage":1,"microbatch":1,"instruction":"forward"`},
		{`"parallel":{"tp":2,`, `"parallel":{"tp":1,`},
		{`"gpus_per_rank":2`, `"gpus_per_rank":1`},
		{`["0LOAD0","0F0"`, `["0F0","0LOAD0"`},
	} {
		if !strings.Contains(text, change[0]) {
			t.Errorf("the file lacks %s", change[0])
			continue
		}
		forged := writeFile(t, "F.json", strings.Replace(text, change[0], change[1], 1))
		if r := perseus(t, "", "verify", forged, "-p", profile); r.status != statusFailed {
			t.Errorf("%s for %s: %+v", change[1], change[0], r)
		}
	}
}

// TestGPUs gives a plan by global rank, on 2 pipelines of 2 ranks of 2 GPUs each,
// of which one GPU is capped.
func TestGPUs(t *testing.T) {
	profile := smallProfile(t, 2, false)
	common := []string{"-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84", "--tp", "2", "--world-size", "8"}
	file, r := frontierOf(t, common...)
	if !strings.Contains(r.stderr, "2 work together, in 2 pipelines") || !strings.Contains(r.stderr, "each of the 2 that work together counts like it") {
		t.Errorf("%s", r.stderr)
	}
	rows := func(args ...string) [][]string {
		t.Helper()
		all, err := csv.NewReader(strings.NewReader(must(t, append([]string{"plan"}, args...)...).stdout)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := rows(file, "--fastest", "--per-gpu")
	if len(all) != 1+8*4 || strings.Join(all[0], ",") != "global_rank,pipeline,rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s" {
		t.Fatalf("%d rows, %q", len(all), all[0])
	}
	of := func(rows [][]string, rank string) (s []string) {
		for _, r := range rows[1:] {
			if r[0] == rank {
				s = append(s, strings.Join(r[2:], ","))
			}
		}
		return s
	}
	// Global ranks 0–3 are the first pipeline rank, 0 and 1 of the first pipeline.
	for _, same := range [][2]string{{"0", "3"}, {"4", "7"}} {
		if a, b := of(all, same[0]), of(all, same[1]); fmt.Sprint(a) != fmt.Sprint(b) || len(a) != 4 {
			t.Errorf("ranks %q: %q and %q", same, a, b)
		}
	}
	if fmt.Sprint(of(all, "0")) == fmt.Sprint(of(all, "4")) {
		t.Error("both pipeline ranks have one plan")
	}
	if zeus := must(t, "plan", file, "--fastest", "--per-gpu", "--format", "zeus").stdout; strings.Count(zeus, "\n[(") != 8 {
		t.Errorf("zeus: %s", zeus)
	}
	if text := must(t, "plan", file, "--fastest", "--format", "json").stdout; !strings.Contains(text, `"global_ranks": [[4,5],[6,7]]`) {
		t.Errorf("json: %s", text)
	}

	capped, r := frontierOf(t, append(common, "--cap", "rank=6:1210")...)
	if !strings.Contains(r.stderr, "pipeline rank 1 runs at up to 1210 MHz") || !strings.Contains(r.stderr, "pipeline 1 of 2") {
		t.Errorf("%s", r.stderr)
	}
	all = rows(capped, "--fastest", "--per-gpu")
	if len(all) != 1+4*4 || len(of(all, "6")) != 4 || len(of(all, "4")) != 0 {
		t.Errorf("%d rows", len(all))
	}
	for _, r := range all[1:] {
		if r[2] == "1" && r[6] > "1210" {
			t.Errorf("a capped GPU runs at %s MHz", r[6])
		}
	}
	must(t, "verify", capped, "-p", profile)
	if r := perseus(t, "", "plan", capped, "--fastest", "--per-gpu", "--format", "zeus"); r.status != statusFailed && r.status != statusBadInput {
		t.Errorf("%+v", r)
	}
	plain, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84")
	if r := perseus(t, "", "plan", plain, "--fastest", "--per-gpu"); r.status != statusBadInput || !strings.Contains(r.stderr, "--tp") {
		t.Errorf("%+v", r)
	}
}

// TestSeveralProfiles has stages on GPUs of two types, in two files.
func TestSeveralProfiles(t *testing.T) {
	whole := read(t, smallProfile(t, 2, false))
	var parts [2]strings.Builder
	for i, line := range strings.SplitAfter(whole, "\n") {
		switch {
		case i == 0:
			parts[0].WriteString(line)
			parts[1].WriteString(line)
		case strings.HasPrefix(line, "0,"):
			parts[0].WriteString(line)
		default:
			parts[1].WriteString(strings.Replace(line, ",1410,", ",1500,", 1))
		}
	}
	a, b := writeFile(t, "a.csv", parts[0].String()), writeFile(t, "b.csv", parts[1].String())
	file, r := frontierOf(t, "-p", a, "-p", b, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84,70")
	if !strings.Contains(r.stderr, "2 stages") {
		t.Errorf("%s", r.stderr)
	}
	must(t, "verify", file, "-p", a, "-p", b)
	if r := perseus(t, "", "verify", file, "-p", b, "-p", a); r.status != statusFailed || !strings.Contains(r.stderr, "sha256") {
		t.Errorf("in another order: %+v", r)
	}
	other := writeFile(t, "c.csv", strings.Replace(parts[1].String(), "stage,instruction", "instruction,stage", 1))
	if r := perseus(t, "", "frontier", "-p", a, "-p", other, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84"); r.status != statusBadInput || !strings.Contains(r.stderr, other+":1: the header is") {
		t.Errorf("%+v", r)
	}
}

// graphText is a job that is no pipeline, with a curve that two ops share, an op
// that occupies nothing, and names that need quotes.
const graphText = `{
  "format": "perseus-dag/1",
  "resources": [{"name": "gpu0", "blocking_power_w": 83.64}, {"name": "gpu, 1", "blocking_power_w": 80}],
  "curves": [{"name": "forward", "options": [
    {"clock_mhz": 1410, "time_s": 0.0312, "energy_j": 9.1},
    {"clock_mhz": 1200, "time_s": 0.0355, "energy_j": 8.2}]}],
  "ops": [
    {"name": "f0", "resource": "gpu0", "curve": "forward"},
    {"name": "send", "time_s": 0.0004},
    {"name": "f \"2\", é<", "resource": "gpu, 1", "curve": "forward"},
    {"name": "f1", "resource": "gpu0", "options": [{"time_s": 0.031, "energy_j": 9}, {"clock_mhz": 5, "time_s": 0.04, "energy_j": 2}]}],
  "edges": [["f0", "send"], ["send", "f \"2\", é<"]]
}`

// TestGraph is the way of a job that is no pipeline.
func TestGraph(t *testing.T) {
	text := strings.Replace(graphText, `{"time_s": 0.031,`, `{"clock_mhz": 9, "time_s": 0.031,`, 1)
	graph := writeFile(t, "G.json", text)
	file, r := frontierOf(t, "--dag", graph)
	if !strings.Contains(r.stderr, "4 ops on 2 resources") {
		t.Errorf("%s", r.stderr)
	}
	for _, flag := range []string{"--dag", "-p"} {
		if v := must(t, "verify", file, flag, graph); !strings.Contains(v.stdout, "order: dag, 2 ranks") {
			t.Errorf("%s", v.stdout)
		}
	}
	must(t, "show", file)
	rows, err := csv.NewReader(strings.NewReader(must(t, "plan", file, "--fastest").stdout)).ReadAll()
	if err != nil || len(rows) != 4 || rows[3][3] != `f "2", é<` || rows[3][0] != "1" || rows[3][5] != "0.0316" {
		t.Errorf("plan %q, %v", rows, err)
	}
	must(t, "plan", file, "--min-energy", "--format", "json")
	must(t, "plan", file, "--slowdown", "1.1", "--format", "zeus")
	kept := read(t, file)
	for _, change := range [][2]string{
		{`"edges":[[0,3],[3,2]]`, `"edges":[[0,3]]`},
		{`"edges":[[0,3],[3,2]]`, `"edges":[[0,3],[3,2],[0,2]]`},
		{`"name":"f1","resource":0`, `"name":"f9","resource":0`},
		{`"blocking_power_w":[83.64,80]`, `"blocking_power_w":[83.64,81]`},
		{`"resources":["gpu0"`, `"resources":["gpu7"`},
		{`"schedule":"dag"`, `"schedule":"1f1b"`},
		{`"curve":"forward"`, `"curve":"f0"`},
		{`"time_s":0.0004,`, `"time_s":0.0005,`},
	} {
		if !strings.Contains(kept, change[0]) {
			t.Errorf("the file lacks %s: %s", change[0], kept)
			continue
		}
		forged := writeFile(t, "F.json", strings.Replace(kept, change[0], change[1], 1))
		if r := perseus(t, "", "verify", forged, "--dag", graph); r.status != statusFailed {
			t.Errorf("%s for %s: %+v", change[1], change[0], r)
		}
	}
	if r := perseus(t, "", "verify", file, "--dag", writeFile(t, "G.json", text+" ")); r.status != statusFailed {
		t.Errorf("with another graph: %+v", r)
	}
	if r := perseus(t, "", "frontier", "--dag", graph, "--tp", "2"); r.status != statusBadInput || !strings.Contains(r.stderr, "--dag says by itself") {
		t.Errorf("%+v", r)
	}
	var schema struct{ Title string }
	if err := json.Unmarshal([]byte(must(t, "schedules", "dag-schema").stdout), &schema); err != nil || schema.Title != "perseus-dag/1" {
		t.Errorf("%+v, %v", schema, err)
	}
	// Nothing waits for any GPU here.
	none, _ := frontierOf(t, "--dag", writeFile(t, "N.json", `{"format":"perseus-dag/1","ops":[{"name":"a","options":[{"clock_mhz":1,"time_s":2,"energy_j":1},{"clock_mhz":2,"time_s":1,"energy_j":3}]}]}`))
	must(t, "show", none)
	must(t, "plan", none, "--fastest")
}

// TestBadJobs holds what is said of pipelines and jobs that cannot be.
func TestBadJobs(t *testing.T) {
	profile := smallProfile(t, 2, false)
	good := []string{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84"}
	order := func(text string) []string {
		return []string{"frontier", "-p", profile, "--blocking-power", "84", "--schedule-csv", writeFile(t, "S.csv", text)}
	}
	with := func(flags ...string) []string { return append(append([]string{}, good...), flags...) }
	named := func(schedule string, flags ...string) []string {
		return append([]string{"frontier", "-p", profile, "--schedule", schedule, "-m", "2", "--blocking-power", "84"}, flags...)
	}
	graph := func(text string) []string { return []string{"frontier", "--dag", writeFile(t, "G.json", text)} }
	for _, tt := range []struct {
		args []string
		want string
	}{
		// Orders: the first offending action is named.
		{order("0F0,0B0\n1B0,1F0\n"), "S.csv:2: cell 1: deadlock: 1B0 on rank 1"},
		{order("0F0,0B0\n1F0\n"), "1B0 is missing"},
		{order("0F0,0B0,0F0\n1F0,1B0\n"), "S.csv:1: cell 3: 0F0"},
		{order("0F0,0Q0\n1F0,1B0\n"), `S.csv:1: cell 2: action "0Q0": unknown kind "Q"`},
		{order("0F0,0SEND_F0,0B0\n1F0,1B0\n"), "S.csv:1: cell 3: 0B0: 0RECV_B0 is missing before it"},
		{order("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"), "S.csv:1: cell 3: 0RECV_B0: its 1SEND_B0 on rank 1 is missing"},
		{order("0F0,0B0\n1F1000000000,1B0\n"), "S.csv:2: cell 1"},
		{order(""), "no action in it"},
		{order("0F0,0B0\n"), "the order has 1 stages, but the profile has 2"},
		{order("0F0,0I0,0W0\n1F0,1B0\n"), "stage 0 on rank 0 needs input-gradient (0I0), which the profile lacks; it has backward, forward: measure it, or ask for it to be derived with --derive split-backward"},
		// Sizes.
		{[]string{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "1000000000", "--blocking-power", "84"}, "1f1b: microbatches = 1000000000: an order has at most 16777216 actions"},
		{[]string{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "0", "--blocking-power", "84"}, "--microbatches 0: at least 1 is needed"},
		{[]string{"frontier", "-p", profile, "--schedule", "1f1b", "--microbatches=-3", "--blocking-power", "84"}, "--microbatches -3: at least 1 is needed"},
		{named("interleaved-1f1b", "--chunks", "2", "--ranks", "1", "--group", "7"), "group"},
		{named("dualpipe"), "dualpipe: 2 microbatches on 2 ranks: their number must be even and at least 4"},
		{named("1f1b", "--chunks", "2"), "1 chunks: it has 1"[2:]},
		{named("zbv", "--chunks", "3", "--ranks", "2"), "zbv: 3 chunks"},
		{named("2f2b"), "unknown schedule"},
		{[]string{"schedules", "show", "1f1b", "-m", "0"}, "--microbatches 0: at least 1"},
		{[]string{"schedules", "show", "1f1b", "-m", "1000000000", "--format", "csv"}, "at most 16777216"},
		// Derivations.
		{named("zb-h1"), "stage 0 on rank 0 needs input-gradient (0I0)"},
		{named("zb-h1", "--derive", "input-gradient=forward"), "needs weight-gradient"},
		{named("zb-h1", "--derive", "input-gradient=sideways,weight-gradient=backward"), "stage 0 has no sideways in the profile; it has backward, forward"},
		{named("1f1b-early-recompute"), "--derive recompute (recompute=forward"},
		{with("--derive", "nonsense"), "--derive: derivation \"nonsense\": expected INSTRUCTION=SUM"},
		// Fixed-time ops.
		{with("--fixed", "coffee=5ms"), "the names are load, reduce-grad (or all-reduce) and optimizer"},
		{with("--fixed", "load=5m"), "expected a time as in 20ms"},
		{with("--fixed", "load=0s"), "outside 1ns"},
		{with("--fixed", "load=1ms,load=2ms"), "has a time already"},
		{with("--p2p-latency=-1ms"), "--p2p-latency"},
		// Groups.
		{with("--tp", "2", "--dp", "3", "--world-size", "16"), "world size 16 is not tp·cp·dp·pp = 2·1·3·2 = 12"},
		{with("--pp", "4"), "1f1b on 4 ranks with 1 chunk each has 4 stages, but the profile has 2"},
		{with("--pp", "4", "--ranks", "2"), "pp is 4, but 1f1b has 2 ranks"},
		{with("--tp", "2", "--rank-order", "dp-pp"), "tp is missing, and its size is 2"},
		{with("--cap", "rank=2:1200MHz"), "there is no rank 2; there are 0 … 1"},
		{with("--cap", "3@1200"), "expected as in rank=3:1200MHz"},
		{with("--cap", "rank=1:1GHz"), "whole number of MHz"},
		{with("--cap", "rank=1:100MHz"), "nothing was measured up to the cap of 100 MHz; the lowest clock is"},
		{with("--dp", "2", "--cap", "rank=0:1210", "--cap", "rank=1:1210"), "ranks 0 and 1 are in two pipelines"},
		// Factors.
		{with("--microbatch-factors", "1,2,3"), "3 factors for 2 microbatches"},
		{with("--microbatch-factors", "1,0"), "above 0"},
		{with("--microbatch-factors", writeFile(t, "m.csv", "microbatch,time_factor,energy_factor\n0,1,1\n0,1,1\n")), "m.csv:3: microbatch 0 is there twice"},
		{with("--microbatch-factors", writeFile(t, "m.csv", "microbatch,time_factor,energy_factor\n1,1,1\n")), "microbatch 0 is missing"},
		{with("--microbatch-factors", writeFile(t, "m.csv", "a,b\n1,1\n")), "m.csv:1: 3 columns are expected"},
		{with("--op-factors", writeFile(t, "o.csv", "stage,microbatch,instruction,time_factor,energy_factor\n0,9,forward,1,1\n")), "there is no forward of stage 0 and microbatch 9"},
		{with("--op-factors", writeFile(t, "o.csv", "stage,microbatch,instruction,time_factor,energy_factor\n0,x,forward,1,1\n")), `o.csv:2: microbatch "x"`},
		{with("--op-factors", writeFile(t, "o.csv", "stage,microbatch,instruction,time_factor,energy_factor\n")), "the file has no op"},
		// Graphs.
		{graph(`{"format":"perseus-dag/1","ops":[{"name":"a","time_s":1},{"name":"b","time_s":1}],"edges":[["a","b"],["b","a"]]}`), "G.json"},
		{graph(`{"format":"perseus-dag/2","ops":[]}`), `format "perseus-dag/2"`},
		{graph(`{"format":"perseus-dag/1","ops":[{"name":"a","time_s":1},{"name":"a","time_s":1}]}`), `the name "a" is that of op 1`},
		{graph(`{"format":"perseus-dag/1","ops":[{"name":"a","resource":"r","time_s":1}]}`), `there is no resource "r"`},
		{graph(graphText), `op "f1"`},
	} {
		r := perseus(t, "", tt.args...)
		if r.status != statusBadInput || !strings.Contains(r.stderr, tt.want) || r.stdout != "" || strings.Count(r.stderr, "\n") > 2 {
			t.Errorf("%q: status %d, %s; want %s", tt.args, r.status, r.stderr, tt.want)
		}
	}
}

// TestOddPipelines holds pipelines that are small or balanced, and right.
func TestOddPipelines(t *testing.T) {
	one, two := smallProfile(t, 1, true), smallProfile(t, 2, true)
	for _, args := range [][]string{
		{"-p", one, "--schedule", "1f1b", "-m", "1"},
		{"-p", one, "--schedule", "gpipe", "-m", "3"},
		{"-p", one, "--schedule", "gpipe-forward", "-m", "1", "--fixed", "load=1ms,optimizer=1ms"},
		{"-p", two, "--schedule", "1f1b", "-m", "1"},
		{"-p", two, "--schedule", "gpipe", "-m", "1"},
		{"-p", two, "--schedule", "zb-h1", "-m", "1"},
		{"-p", two, "--schedule", "zbv", "-m", "1"},
		{"-p", two, "--schedule", "interleaved-1f1b", "-m", "1", "--ranks", "1", "--chunks", "2"},
		{"-p", two, "--schedule", "interleaved-1f1b", "-m", "5", "--ranks", "2", "--chunks", "1", "--group", "3"},
	} {
		file, _ := frontierOf(t, append(args, "--blocking-power", "84")...)
		must(t, "verify", file, "-p", args[1])
	}
	list := must(t, "schedules", "--json").stdout
	var all struct {
		Schedules []struct {
			Name    string
			Picture []string
			Order   [][]string
		}
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil || len(all.Schedules) != len(pipeline.Schedules()) || len(all.Schedules[0].Picture) < 4 || len(all.Schedules[0].Order) == 0 {
		t.Errorf("%v, %+v", err, all)
	}
}
