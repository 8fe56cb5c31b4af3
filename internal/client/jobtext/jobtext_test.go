package jobtext

import (
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/api"
)

func TestRankList(t *testing.T) {
	for _, test := range []struct {
		ranks []int
		total int
		want  string
	}{
		{nil, 0, ""},
		{[]int{3}, 1, "3"},
		{[]int{4, 3}, 2, "3, 4"},
		{[]int{1, 2, 3, 5, 7, 8, 8}, 7, "1–3, 5, 7, 8"},
		{[]int{0, 1, 2}, 10, "0–2 and 7 more"},
	} {
		if got := rankList(test.ranks, test.total); got != test.want {
			t.Errorf("%v: %s, want %s", test.ranks, got, test.want)
		}
	}
}

// TestParseState knows each state, and says which there are.
func TestParseState(t *testing.T) {
	for _, s := range states {
		if got, err := ParseState(string(s)); err != nil || got != s {
			t.Errorf("%s: %s, %v", s, got, err)
		}
	}
	if got, err := ParseState(""); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ParseState("Running"); err == nil || !strings.Contains(err.Error(), `"Running": expected one of registered`) {
		t.Error(err)
	}
}

// TestWrite holds what a job's page says in states that are not the regular one.
func TestWrite(t *testing.T) {
	for _, test := range []struct {
		job            api.Job
		want, unwanted string
	}{
		{api.Job{ID: "j", State: api.Paused}, "paused (perseus jobs resume j lets it go on)\n", "Plan"},
		{api.Job{State: api.Stale, Reason: "rank 3 is silent", MissingRanks: []int{3}, MissingRanksCount: 1}, "stale: rank 3 is silent\n", "Frontier"},
		{api.Job{Spec: api.JobSpec{ScheduleCSV: "F0", Microbatches: 1, ForwardOnly: true}}, "an order of its own, 1 microbatch, forward only\n", "chunk"},
		{api.Job{Plan: &api.Plan{TimeS: 2, WaitTimeS: 2, Note: "below the least"}}, "NOT FEASIBLE the nearest there is\n", "waits"},
		{api.Job{Profiling: &api.Profile{DoneFraction: 1, Iterations: 1, Warm: true}}, "100.00 % done in 1 iteration\n", "more"},
		{api.Job{Profiling: &api.Profile{Warm: true}}, "of an earlier job, only checked\n", ""},
		{api.Job{Measurement: &api.Measured{Blocks: 12}}, "0 of 12 blocks\n", "95 %"},
		{api.Job{Measurement: &api.Measured{Blocks: 12, BlocksDone: 8, SavingPercent: 5}}, "saving       5.00 %", ""},
		{api.Job{}, "as fast as possible\n", "Measured"},
		{api.Job{Goal: api.Goal{TimeS: 2.9}}, "at most 2.90000 s an iteration\n", ""},
		{api.Job{Goal: api.Goal{PowerW: 15000}}, "at most 15000.0 W on average, one pipeline\n", ""},
		{api.Job{Goal: api.Goal{LeastEnergy: true}}, "goal         the least energy\n", ""},
		{api.Job{UnplannedCount: 1}, "1 iteration ran", ""},
	} {
		var b strings.Builder
		if err := Write(&b, &test.job); err != nil || !strings.Contains(b.String(), test.want) || test.unwanted != "" && strings.Contains(b.String(), test.unwanted) {
			t.Errorf("%v: want %q, not %q, in\n%s", err, test.want, test.unwanted, &b)
		}
	}
}

// TestWriteSchedules says so where there are none.
func TestWriteSchedules(t *testing.T) {
	var b strings.Builder
	if err := WriteSchedules(&b, &api.Schedules{State: api.Registered}); err != nil || !strings.HasSuffix(b.String(), "registered\nno rank has a schedule yet: all train at maximum clock\n") {
		t.Errorf("%v, %s", err, &b)
	}
}
