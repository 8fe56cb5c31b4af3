package server

import (
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
