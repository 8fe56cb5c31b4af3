package jobs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/parallel"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ got, want any }{
		{first(ParseFixed("optimizer=20ms, all-reduce=1s,load=5us")), "[{load 0.000005s} {optimizer 0.02s} {reduce-gradient 1s}]"},
		{first(ParseCap("rank=3:1200MHz")), "[{3 1200}]"},
		{first(ParseCap("0-2:900")), "[{0 900} {1 900} {2 900}]"},
		{first(ParseMicrobatchFactors("1, 1.5:1.25 ,0.000000001")), "[{1 1} {1.5 1.25} {0.000000001 0.000000001}]"},
		{first(ReadMicrobatchFactors(strings.NewReader("\ufeffmicrobatch,time_factor,energy_factor\r\n1,2,3\r\n0, 1,1\r\n"), "m.csv")), "[{1 1} {2 3}]"},
		{first(ReadOpFactors(strings.NewReader("stage,microbatch,instruction,time_factor,energy_factor\n1,0,forward,2,3\n0,1,backward,1,1\n"), "o.csv")), "[{0 1 backward {1 1}} {1 0 forward {2 3}}]"},
	} {
		if fmt.Sprint(tt.got) != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	for list, is := range map[string]bool{"1,1.2:1.1, 3": true, "m.csv": false, "./1": false, "1e-3": false} {
		if IsFactorList(list) != is {
			t.Errorf("%q as a list: %v", list, !is)
		}
	}
}

func first[T any](v T, err error) any {
	if err != nil {
		return err
	}
	return v
}

// FuzzReadFactors has no text make the readers panic or give what is out of range.
func FuzzReadFactors(f *testing.F) {
	f.Add("microbatch,time_factor,energy_factor\n0,1,1\n1,1.25,0.9\n")
	f.Add("stage,microbatch,instruction,time_factor,energy_factor\n0,0,forward,1.5,1\n\"1\",0,backward,1,1\n")
	f.Add("1,1.5:1.25")
	f.Add("rank=0-3:1200MHz")
	f.Add("load=5ms,optimizer=20ms")
	f.Fuzz(func(t *testing.T, text string) {
		check := func(all []frontierfile.Factors, err error) {
			for _, f := range all {
				if err == nil && (f.Time < 1 || f.Energy < 1 || f.Time > 1000*frontierfile.One || f.Energy > 1000*frontierfile.One) {
					t.Errorf("%q gives %v", text, f)
				}
			}
		}
		check(ReadMicrobatchFactors(strings.NewReader(text), "m.csv"))
		check(ParseMicrobatchFactors(text))
		ops, err := ReadOpFactors(strings.NewReader(text), "o.csv")
		for i, o := range ops {
			check([]frontierfile.Factors{o.Factors}, err)
			if err == nil && i > 0 && ops[i-1].Stage > o.Stage {
				t.Errorf("%q is not sorted", text)
			}
		}
		if caps, err := ParseCap(text); err == nil && (len(caps) == 0 || caps[0].Rank < 0 || caps[0].MHz < 1) {
			t.Errorf("%q gives %v", text, caps)
		}
		if fixed, err := ParseFixed(text); err == nil && (len(fixed) == 0 || fixed[0].Time < 1) {
			t.Errorf("%q gives %v", text, fixed)
		}
	})
}

// TestGroups checks what a rank draws waiting and uses, with a profile of one GPU
// and with one of all that work together.
func TestGroups(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 2, StepMHz: 300})
	o, err := Order("1f1b", pipeline.Size{Microbatches: 2}, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Grid: GridSpec{Degrees: parallel.Degrees{TP: 2, CP: 2}}}
	job, notes, err := s.Job(p, o, []unit.Power{80 * unit.Watt, 70 * unit.Watt})
	if err != nil {
		t.Fatal(err)
	}
	if job.GPUsPerRank != 4 || job.BlockingPower[0] != 320*unit.Watt || job.BlockingPower[1] != 280*unit.Watt || len(notes) != 2 {
		t.Errorf("%d GPUs, %v, %q", job.GPUsPerRank, job.BlockingPower, notes)
	}
	one, err := p.Options(1, "backward")
	if err != nil {
		t.Fatal(err)
	}
	all, err := job.Measurements.Options(1, "backward")
	if err != nil || len(all) != len(one) || all[0].Energy != 4*one[0].Energy || all[0].Time != one[0].Time {
		t.Errorf("%v, %v, want 4 times %v", all, err, one)
	}

	var text strings.Builder
	text.WriteString("rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n")
	for rank := range 4 {
		for _, instruction := range []string{"forward", "backward"} {
			fmt.Fprintf(&text, "%d,0,%d,%d,%d,%s,1000,0.1,%d\n", rank, rank/2, rank%2, rank/2, instruction, 10+rank)
		}
	}
	ranked, err := profile.Read(strings.NewReader(text.String()), "P.csv", profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Job(ranked, o, []unit.Power{unit.Watt}); err == nil || !strings.Contains(err.Error(), "the profile has 2 GPUs that run a stage together, but with tp 2, cp 2, ep 1 and etp 2 there are 4") {
		t.Error(err)
	}
	s.Grid.CP = 1
	if job, _, err = s.Job(ranked, o, []unit.Power{unit.Watt}); err != nil || job.GPUsPerRank != 2 || job.BlockingPower[1] != 2*unit.Watt {
		t.Errorf("%+v, %v", job, err)
	}
}

func TestSavings(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 4, StepMHz: 150})
	rows, err := Savings(context.Background(), p, 4, 84*unit.Watt, 0, nil)
	if err != nil || len(rows) != len(pipeline.Schedules()) {
		t.Fatalf("%d of %d schedules, %v", len(rows), len(pipeline.Schedules()), err)
	}
	of := map[string]ScheduleSavings{}
	for _, r := range rows {
		of[r.Schedule] = r
		if r.Idle < 0 || r.Idle > 0.5 || r.Fastest.Plan.Saving < 0 || r.LeastEnergy.Plan.Saving < r.Fastest.Plan.Saving || r.Header.Ranks != 2 {
			t.Errorf("%+v", r)
		}
	}
	if !(of["zb-h1"].Idle < of["1f1b"].Idle && of["zbv"].Idle < of["interleaved-1f1b"].Idle) {
		t.Errorf("zero-bubble schedules idle as much as others: %v, %v", of["zb-h1"].Idle, of["1f1b"].Idle)
	}
	if _, err := Savings(context.Background(), profile.Synthetic(profile.SyntheticConfig{Stages: 3}), 4, 0, 0, nil); err == nil {
		t.Error("3 stages on 1½ ranks")
	}
}

// TestCheckSchedule holds that a false name is caught.
func TestCheckSchedule(t *testing.T) {
	p := profile.Synthetic(profile.SyntheticConfig{Stages: 4, StepMHz: 600})
	o, err := Order("interleaved-1f1b", pipeline.Size{Ranks: 2, Chunks: 2, Microbatches: 5, Group: 3}, 4)
	if err != nil {
		t.Fatal(err)
	}
	job, err := New(p, o, []unit.Power{unit.Watt})
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(context.Background(), job, characterize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(h *frontierfile.Header)
		want   string
	}{
		"as it is":       {func(*frontierfile.Header) {}, ""},
		"another group":  {func(h *frontierfile.Header) { h.Group = 5 }, "rank 0, action"},
		"another name":   {func(h *frontierfile.Header) { h.Schedule, h.Group = "looped-bfs", 0 }, "rank 0, action"},
		"no such name":   {func(h *frontierfile.Header) { h.Schedule = "2f2b" }, "unknown schedule"},
		"no such size":   {func(h *frontierfile.Header) { h.Group = 1 }, "schedule: "},
		"custom":         {func(h *frontierfile.Header) { h.Schedule = "custom" }, ""},
		"an action less": {func(h *frontierfile.Header) { h.Order[1] = h.Order[1][:3] }, "rank 1 ends after 3 actions"},
		"an action more": {func(h *frontierfile.Header) { h.Order[1] = append(h.Order[1], "0F9") }, "rank 1 has action 21"},
	} {
		h := f.Header
		h.Order = o.ToActions()
		tt.change(&h)
		if err := CheckSchedule(&h); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
