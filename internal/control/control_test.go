package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// world is a job with what surrounds it: its ranks, the plans that exist, and all that was published.
type world struct {
	t        *rapid.T
	j        *Job
	places   []Place
	ranks    []api.Rank
	last     map[int]int64 // by generation: the newest first iteration
	version  int64
	reported int64 // newest iteration of the generation that a rank has reported
}

// fakePlan has each op of a 2-stage 1F1B run at some clock.
func fakePlan(j *Job, w Want) *plan.Plan {
	o, err := j.Order()
	if err != nil {
		panic(err)
	}
	p := &plan.Plan{Request: w.Request, Time: unit.Second, WaitTime: unit.Second, Feasible: true}
	for _, actions := range o.Ranks {
		var ops []plan.Op
		for _, a := range actions {
			ops = append(ops, plan.Op{
				Stage: a.Stage, Microbatch: a.Microbatch, Instruction: a.Kind.Instruction(), Knobs: dag.Knobs{ClockMHz: 1000},
				Time: unit.Second / 10, Energy: 10 * unit.Joule,
			})
		}
		p.Ranks = append(p.Ranks, ops)
	}
	return p
}

// settle does the effects, as a server does, and checks what is published.
func (w *world) settle(made map[string]*plan.Plan) {
	for range 20 {
		for _, e := range w.j.Effects() {
			switch e := e.(type) {
			case Publish:
				if e.Version != w.version+1 {
					w.t.Fatalf("version %d after %d", e.Version, w.version)
				}
				w.version = e.Version
				if from, ok := w.last[w.j.Generation]; ok && e.From <= from {
					w.t.Fatalf("version %d holds from %d on, the one before from %d", e.Version, e.From, from)
				}
				if e.From <= w.reported && w.reported >= 0 {
					w.t.Fatalf("version %d holds from %d on, but %d was reported already", e.Version, e.From, w.reported)
				}
				w.last[w.j.Generation] = e.From
				if e.Body == nil && (e.Like <= 0 || e.Like >= e.Version) {
					w.t.Fatalf("version %d is like %d", e.Version, e.Like)
				}
				if e.Body != nil {
					for dp := range w.j.Spec.DP {
						for pp := range w.j.Spec.PP {
							if r := e.Body.Rank(dp, pp); r.Rank != pp {
								w.t.Fatalf("pipeline rank %d has the schedule of %d", pp, r.Rank)
							}
						}
					}
				}
			case Profiled:
				w.j.Profile = "measured"
			}
		}
		if !w.j.Due {
			return
		}
		if want := w.j.Deploy(func(q Want) *plan.Plan { return made[q.String()] }); want != nil {
			made[want.String()] = fakePlan(w.j, *want)
		}
	}
	w.t.Fatal("a job is due again and again")
}

// reload saves and loads the job: nothing may change by that.
func (w *world) reload() {
	parts, err := w.j.Parts()
	if err != nil {
		w.t.Fatal(err)
	}
	doc, err := json.Marshal(w.j)
	if err != nil {
		w.t.Fatal(err)
	}
	loaded := new(Job)
	if err := json.Unmarshal(doc, loaded); err != nil {
		w.t.Fatal(err)
	}
	again, err := json.Marshal(loaded)
	if err != nil || string(again) != string(doc) {
		w.t.Fatalf("saved %s\nloaded and saved %s, %v", doc, again, err)
	}
	campaign, detector, last := w.j.Campaign, w.j.Detector, w.j.Last
	loaded.Campaign, loaded.Detector, loaded.Last = campaign, detector, last
	for name, text := range parts {
		other := new(Job)
		if err := other.LoadParts(func(n string) ([]byte, error) {
			if n == name {
				return text, nil
			}
			return nil, nil
		}); err != nil {
			w.t.Fatal(err)
		}
		switch name {
		case "campaign":
			if !reflect.DeepEqual(other.Campaign, campaign) && !sameJSON(other.Campaign, campaign) {
				w.t.Fatal("the campaign changed by being saved")
			}
		case "last":
			if !reflect.DeepEqual(other.Last, last) && len(last) > 0 {
				w.t.Fatal("what ranks reported last changed by being saved")
			}
		}
	}
	w.j = loaded
}

func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// TestAnyHistory takes a job through random histories. Versions and first iterations only grow, a schedule never holds
// for an iteration that a rank has reported, saving changes nothing, and a refusal is an *api.Error.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := api.JobSpec{PP: 2, DP: rapid.IntRange(1, 3).Draw(t, "dp"), TP: rapid.IntRange(1, 2).Draw(t, "tp"), Microbatches: 3, BlockingPowerW: 50}
		spec.WorldSize = spec.PP * spec.DP * spec.TP
		j, err := New("job", spec, Standard())
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, j: j, last: map[int]int64{}, reported: -1}
		for r := range spec.WorldSize {
			tp, dp, pp := r%spec.TP, r/spec.TP%spec.DP, r/spec.TP/spec.DP
			w.ranks = append(w.ranks, api.Rank{Rank: r, PP: pp, DP: dp, TP: tp, FrequencyMHz: []int{1400, 1200, 1000}})
			w.places = append(w.places, Place{DP: dp, PP: pp, Lead: tp == 0})
		}
		made := map[string]*plan.Plan{}
		w.settle(made)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			j := w.j
			var err error
			switch action := rapid.IntRange(0, 11).Draw(t, "action"); action {
			case 0:
				if j.Missing > 0 && !j.Ended() {
					j.Ready(w.ranks)
				}
			case 1, 2, 3, 4:
				if j.Missing > 0 {
					break
				}
				j.At(w.places)
				iteration := w.reported + int64(rapid.IntRange(0, 3).Draw(t, "passed"))
				slow := rapid.SampledFrom([]float64{1, 1, 1, 1.3}).Draw(t, "slow")
				hold := rapid.SampledFrom([]float64{0, 0, 0.005, 0.06, 0.061, 2, 5000}).Draw(t, "hold")
				if iteration >= 0 {
					w.reported = max(w.reported, iteration)
				}
				for r := range w.ranks {
					if iteration < 0 {
						continue
					}
					report := api.RankReport{Rank: r, Version: j.Version, Iteration: iteration, TimeS: slow, EnergyJ: 300, HoldS: hold}
					for _, name := range []string{"forward", "backward"} {
						for _, mhz := range []int{1400, 1200, 1000} {
							s := 140.0 / float64(mhz) * slow
							report.Ops = append(report.Ops, api.OpReport{Stage: w.ranks[r].PP, Instruction: name, FrequencyMHz: mhz, TimeS: []float64{s, s, s}, EnergyJ: []float64{20 * s, 20 * s, 20 * s}})
						}
					}
					if e := j.Report(&report, w.places[r]); e != nil {
						err = e
					}
				}
				j.Ahead(int64(rapid.IntRange(0, 5).Draw(t, "ahead")))
				j.Advance()
			case 5:
				err = j.Pause("test")
			case 6:
				err = j.Resume()
			case 7:
				if j.Missing > 0 {
					break
				}
				rank := rapid.IntRange(0, len(w.ranks)-1).Draw(t, "rank")
				err = j.SetStraggler(api.Straggler{
					Slowdown:    rapid.SampledFrom([]float64{0, 0.5, 1, 1.1, 1.5}).Draw(t, "slowdown"),
					AtIteration: int64(rapid.IntRange(0, 20).Draw(t, "at")), UntilIteration: int64(rapid.IntRange(0, 40).Draw(t, "until")),
				}, w.places[rank], rank)
			case 8:
				err = j.SetGoal(rapid.SampledFrom([]api.Goal{{}, {Slowdown: 1.2}, {LeastEnergy: true}, {TimeS: 3}, {Slowdown: 1.1, TimeS: 2}}).Draw(t, "goal"))
			case 9:
				err = j.Measure(api.MeasureRequest{Blocks: 8, Iterations: 5})
			case 10:
				if j.State == api.Characterizing && j.Frontier == "" && j.Profile != "" {
					j.FrontierReady(fmt.Sprint("frontier-", j.Frontiers), api.Frontier{MinTimeS: 0.9, MaxTimeS: 2, MaxClockTimeS: 0.95, Points: 3})
				}
			case 11:
				switch rapid.IntRange(0, 5).Draw(t, "rarely") {
				case 0:
					j.Silent([]int{0}, "1m")
				case 1:
					if !j.Ended() && j.Missing == 0 {
						j.NewGeneration("test")
						w.reported = -1
					}
				case 2:
					j.Better()
				case 3:
					w.reload()
				}
			}
			var refused *api.Error
			if err != nil && (!errors.As(err, &refused) || refused.Status < 400 || refused.Status >= 500 || refused.Code == "" || refused.Detail == "") {
				t.Fatalf("refused with %v", err)
			}
			w.settle(made)
			if w.j.State == api.Running && w.j.Measuring == nil && w.j.Kind != KindPlan {
				t.Fatalf("running by schedule %q", w.j.Kind)
			}
			if (w.j.State == api.Paused || w.j.State == api.Stale || w.j.Ended()) && w.j.Version > 0 && w.j.Missing == 0 && w.j.Kind != KindMax {
				t.Fatalf("%s by schedule %q", w.j.State, w.j.Kind)
			}
		}
	})
}

// TestHold: plans keep clocks for as long as any rank asks, and a little more does not make them anew.
func TestHold(t *testing.T) {
	j, err := New("job", api.JobSpec{PP: 2, DP: 2, WorldSize: 4, Microbatches: 3}, Standard())
	if err != nil {
		t.Fatal(err)
	}
	var ranks []api.Rank
	for r := range 4 {
		ranks = append(ranks, api.Rank{Rank: r, PP: r / 2, DP: r % 2, FrequencyMHz: []int{1400, 1000}})
	}
	j.Ready(ranks)
	j.State, j.Frontier, j.Landmarks, j.Due = api.Running, "frontier", &api.Frontier{MinTimeS: 0.9, MaxTimeS: 2, MaxClockTimeS: 0.95}, true
	made := map[string]*plan.Plan{}
	for i, c := range []struct {
		rank   int
		hold   float64
		want   unit.Time
		change bool
	}{
		{0, 0, 0, true}, // the first plan
		{0, 0.004, 10 * unit.Millisecond, true},
		{1, 0.0101, 12500 * unit.Microsecond, true},
		{0, 0.011, 12500 * unit.Microsecond, false},
		{0, 0.004, 12500 * unit.Microsecond, false},
		{3, 5000, 12500 * unit.Microsecond, false}, // cannot be
		{2, 0.05, 59604645 * unit.Nanosecond, true},
	} {
		if err := j.Report(&api.RankReport{Rank: c.rank, Version: j.Version, Iteration: int64(i), HoldS: c.hold}, Place{DP: c.rank % 2, PP: c.rank / 2}); err != nil {
			t.Fatal(err)
		}
		j.Advance()
		version := j.Version
		j.Effects()
		for j.Due {
			if want := j.Deploy(func(q Want) *plan.Plan { return made[q.String()] }); want != nil {
				made[want.String()] = fakePlan(j, *want)
			}
		}
		got := unit.Time(-1)
		for _, e := range j.Effects() {
			if p, ok := e.(Publish); ok {
				got = unit.Time(p.Body.Rank(0, 0).HoldNs)
			}
		}
		if (j.Version != version) != c.change || c.change && (got-c.want).Seconds() > 1e-6 || c.change && (c.want-got).Seconds() > 1e-6 {
			t.Errorf("after %v of rank %d: version %d, before %d, held for %v; want %v", c.hold, c.rank, j.Version, version, got, c.want)
		}
	}
}
