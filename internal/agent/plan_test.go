package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/wire"
)

func TestPlanOf(t *testing.T) {
	whole := api.RankSchedule{
		Mode: api.Planned, Instructions: []string{"forward"}, Instruction: []int{0, 0}, Stage: []int{1, 1}, Microbatch: []int{0, 1},
		FrequencyMHz: []int{900, 1200}, StartNs: []int64{5, 20}, TimeNs: []int64{10, 10}, IterationNs: 40,
	}
	all := api.Schedules{Version: 3, EffectiveIteration: 7}
	p := planOf(all, &whole)
	if p.Version != 3 || p.From != 7 || p.Mode != follow.Planned || p.Iteration != 40 || len(p.Ops) != 2 ||
		p.Ops[1] != (follow.Op{Instruction: "forward", Stage: 1, Microbatch: 1, MHz: 1200, Start: 20, Time: 10 * time.Nanosecond}) {
		t.Errorf("got %+v", p)
	}
	for name, c := range map[string]struct {
		change func(r *api.RankSchedule)
		want   follow.Mode
	}{
		"uniform":    {func(r *api.RankSchedule) { r.Mode = api.Uniform }, follow.Uniform},
		"max":        {func(r *api.RankSchedule) { r.Mode = api.MaxClock }, follow.Maximum},
		"no times":   {func(r *api.RankSchedule) { r.StartNs, r.TimeNs = nil, nil }, follow.Uniform},
		"short":      {func(r *api.RankSchedule) { r.StartNs = r.StartNs[:1] }, follow.Maximum},
		"no op":      {func(r *api.RankSchedule) { r.Instruction = nil }, follow.Maximum},
		"no name":    {func(r *api.RankSchedule) { r.Instruction = []int{0, 1} }, follow.Maximum},
		"of nothing": {func(r *api.RankSchedule) { *r = api.RankSchedule{} }, follow.Maximum},
	} {
		r := whole
		c.change(&r)
		if got := planOf(all, &r); got.Mode != c.want {
			t.Errorf("%s: mode %v, want %v", name, got.Mode, c.want)
		}
	}
}

func TestStagesOf(t *testing.T) {
	h := wire.Hello{Spec: api.JobSpec{PP: 4, Microbatches: 8, Chunks: 2, Schedule: "interleaved"}, PP: 1}
	if got := stagesOf(h); !slices.Equal(got, []int{1, 5}) {
		t.Errorf("got %v", got)
	}
	h.Spec = api.JobSpec{PP: 4096, Microbatches: 65536}
	if got := stagesOf(h); got != nil {
		t.Errorf("a pipeline of 2^28 ops: got %v", got)
	}
}

func TestListed(t *testing.T) {
	d := &driver{clocks: []int{1410, 1395, 1200, 210}}
	for asked, want := range map[int]int{1410: 1410, 2000: 1410, 1396: 1410, 1200: 1200, 1000: 1200, 1: 210} {
		if got := d.listed(asked); got != want {
			t.Errorf("%d MHz: %d, want %d", asked, got, want)
		}
	}
	if got := (&driver{}).listed(900); got != 900 {
		t.Errorf("without a list: %d", got)
	}
}
