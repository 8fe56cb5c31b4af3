package server

import (
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/api"
)

// TestLife takes a job from its registration to a plan, through a straggler, a proof and the guardrail.
func TestLife(t *testing.T) {
	s, _ := start(t, file(t), nil)
	tr := newTrainer(t, s, "job", api.JobSpec{PP: 4, DP: 2, TP: 2, Microbatches: 6, ModelKey: "m"})
	tr.register()
	if j := tr.job(); j.State != api.Profiling {
		t.Fatalf("state %s (%s)", j.State, j.Reason)
	}
	j := tr.until(300, running)
	t.Logf("after %d iterations: %+v\n%+v", tr.iteration, *j.Plan, *j.Profiling)
	if j.Plan.SavingPercent < 5 || j.Plan.TimeS > j.Frontier.MaxClockTimeS*1.0001 {
		t.Errorf("plan %+v of frontier %+v", *j.Plan, *j.Frontier)
	}
	planned := tr.until(60, func(api.Job) bool { return tr.versions[len(tr.versions)-1].from < tr.iteration-2 })
	if got, want := tr.run(), planned.Plan.TimeS+tr.overhead; got > want*1.0001 {
		t.Errorf("an iteration takes %g s, planned are %g", got, want)
	}
	tr.slow[0] = 1.2 // rank 0 is the first stage of pipeline 0
	j = tr.until(200, func(j api.Job) bool {
		return len(j.Stragglers) > 0 && j.Plan != nil && j.Plan.WaitTimeS > j.Plan.TimeS*0.999 && j.Plan.TimeS > planned.Plan.TimeS
	})
	t.Logf("straggler: %+v %+v", j.Stragglers, *j.Plan)
	delete(tr.slow, 0)
	j = tr.until(600, func(j api.Job) bool {
		return len(j.Stragglers) == 0 && running(j) && j.Plan.TimeS == planned.Plan.TimeS
	})
	if _, err := s.Measure(t.Context(), "job", api.MeasureRequest{Blocks: 8, Iterations: 10}); err != nil {
		t.Fatal(err)
	}
	j = tr.until(200, func(j api.Job) bool { return j.Measurement != nil && j.Measurement.Done })
	t.Logf("measured %+v", *j.Measurement)
	if m := j.Measurement; m.SavingPercent < 5 || m.SlowdownHigh > 0.1 || m.SavingLow > m.SavingPercent {
		t.Errorf("measured %+v", *m)
	}
	tr.overhead *= 3
	j = tr.until(300, func(j api.Job) bool { return j.State == api.Paused })
	t.Logf("guardrail: %s", j.Reason)
	if _, err := s.Resume(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	tr.until(100, running)
	if _, err := s.Finish(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	warm := newTrainer(t, s, "warm", api.JobSpec{PP: 4, DP: 2, TP: 2, Microbatches: 6, ModelKey: "m"})
	warm.register()
	j = warm.until(20, running)
	if !j.Profiling.Warm {
		t.Error("not warm")
	}
	warm.drift = 0.1
	j = warm.until(200, func(j api.Job) bool { return j.State == api.Profiling })
	j = warm.until(400, func(j api.Job) bool { return running(j) })
	if j.Frontier.Version != 2 {
		t.Errorf("frontier version %d", j.Frontier.Version)
	}
	events, err := s.Events(t.Context(), "job", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		t.Log(e.ID, e.Kind, e.Text)
	}
}

// TestStragglerBeforeGuardrail has a GPU become so slow that iterations leave the plan before the detector is sure: it
// is answered as a straggler, and the job is not paused.
func TestStragglerBeforeGuardrail(t *testing.T) {
	s, _ := start(t, file(t), nil)
	tr := newTrainer(t, s, "job", api.JobSpec{PP: 4, DP: 4, Microbatches: 6, ReportEvery: 10})
	tr.register()
	tr.until(300, running)
	for range 40 {
		tr.run()
	}
	before := tr.job()
	tr.slow[0] = 1.3
	for range 120 {
		tr.run()
		if j := tr.job(); j.State != api.Running {
			t.Fatalf("iteration %d: %s (%s)", tr.iteration, j.State, j.Reason)
		}
	}
	j := tr.job()
	if len(j.Stragglers) != 1 || j.Plan.TimeS <= before.Plan.TimeS*1.05 {
		t.Errorf("stragglers %+v, plan %+v", j.Stragglers, j.Plan)
	}
	if took := tr.run(); j.Plan.WaitTimeS+tr.overhead > took*1.001 {
		t.Errorf("planned for %g s, an iteration takes %g s", j.Plan.WaitTimeS+tr.overhead, took)
	}
}

// TestCeilings puts clock ceilings on two GPUs of one pipeline. That pipeline gets a plan under both, the others wait for
// it; beside a slower straggler it waits too.
func TestCeilings(t *testing.T) {
	s, _ := start(t, file(t), nil)
	tr := newTrainer(t, s, "job", api.JobSpec{PP: 4, DP: 3, Microbatches: 6})
	tr.register()
	free := tr.until(300, running)
	refused := func(mhz int) error {
		rank := 0
		_, err := s.AddStraggler(t.Context(), "job", api.Straggler{Rank: &rank, MaxFrequencyMHz: mhz})
		return err
	}
	if err := refused(499); err == nil || !strings.Contains(err.Error(), "500 MHz") {
		t.Errorf("a ceiling under the lowest clock: %v", err)
	}
	// limit puts a ceiling on a stage of pipeline 1, waits for the answer, and returns the time that others take then.
	limit := func(pp, mhz int, more func(api.Job) bool) float64 {
		t.Helper()
		rank := pp*tr.spec.DP + 1
		before := tr.job().Version
		if _, err := s.AddStraggler(t.Context(), "job", api.Straggler{Rank: &rank, MaxFrequencyMHz: mhz}); err != nil {
			t.Fatal(err)
		}
		j := tr.until(100, func(j api.Job) bool {
			tr.settleBackground()
			return running(j) && j.Version > before && more(j)
		})
		return j.Plan.WaitTimeS
	}
	// clocks returns the highest clock and the sum of those of a rank by the newest schedule.
	clocks := func(pp, dp int) (highest, sum int) {
		t.Helper()
		all, err := s.Schedules(t.Context(), "job", api.ScheduleQuery{Ranks: []int{pp*tr.spec.DP + dp}})
		if err != nil || len(all.Ranks) != 1 || all.Ranks[0].Mode != api.Planned {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, mhz := range all.Ranks[0].FrequencyMHz {
			highest, sum = max(highest, mhz), sum+mhz
		}
		return highest, sum
	}
	one := limit(0, 800, func(j api.Job) bool { return j.Plan.WaitTimeS > free.Plan.WaitTimeS*1.01 })
	both := limit(3, 900, func(j api.Job) bool { return j.Plan.WaitTimeS > one*1.01 })
	t.Logf("free %g s, one ceiling %g s, two %g s", free.Plan.WaitTimeS, one, both)
	first, sum := clocks(0, 1)
	if last, _ := clocks(3, 1); first != 800 || last != 900 {
		t.Errorf("under ceilings of 800 and 900 MHz ranks run at up to %d and %d", first, last)
	}
	for range 30 {
		tr.run()
	}
	if took := tr.run(); took > (both+tr.overhead)*1.0001 || tr.job().State != api.Running {
		t.Errorf("an iteration takes %g s, planned are %g s (%s)", took, both+tr.overhead, tr.job().State)
	}
	slower := 2
	if _, err := s.AddStraggler(t.Context(), "job", api.Straggler{Rank: &slower, Slowdown: both / free.Frontier.MinTimeS * 1.3}); err != nil {
		t.Fatal(err)
	}
	if highest, now := clocks(0, 1); highest > 800 || float64(now) > 0.95*float64(sum) {
		t.Errorf("beside a slower straggler the sum of the capped rank's clocks goes from %d to %d", sum, now)
	}
	for _, rank := range []int{slower, 1, 3*tr.spec.DP + 1} {
		if _, err := s.AddStraggler(t.Context(), "job", api.Straggler{Rank: &rank, Slowdown: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if j := tr.job(); len(j.Stragglers) != 0 || j.Plan.WaitTimeS != free.Plan.WaitTimeS {
		t.Errorf("stragglers %+v, plan %+v", j.Stragglers, *j.Plan)
	}
}
