package agent

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/pipeline"
)

// planOf turns the server's schedule of a rank into the follower's. A plan by op without times is one to measure by: its
// clocks are run in turn, an iteration each, as those of a uniform one are. A plan whose slices do not fit together is
// maximum clock.
func planOf(all api.Schedules, r *api.RankSchedule) follow.Plan {
	p := follow.Plan{Version: all.Version, From: all.EffectiveIteration, Iteration: time.Duration(r.IterationNs), Hold: time.Duration(r.HoldNs)}
	n := len(r.Instruction)
	switch {
	case r.Mode == api.Uniform:
		p.Mode, p.MHz = follow.Uniform, r.Uniform
	case r.Mode == api.Planned && n > 0 && len(r.FrequencyMHz) == n && len(r.StartNs) == 0:
		p.Mode, p.MHz = follow.Uniform, map[string]int{}
		for i, mhz := range r.FrequencyMHz {
			p.MHz[strconv.Itoa(i)] = mhz
		}
	case r.Mode == api.Planned && n > 0 && len(r.FrequencyMHz) == n && len(r.StartNs) == n && len(r.TimeNs) == n &&
		len(r.Stage) == n && len(r.Microbatch) == n &&
		!slices.ContainsFunc(r.Instruction, func(i int) bool { return i < 0 || i >= len(r.Instructions) }):
		p.Mode = follow.Planned
		for i, name := range r.Instruction {
			p.Ops = append(p.Ops, follow.Op{
				Instruction: r.Instructions[name], Stage: r.Stage[i], Microbatch: r.Microbatch[i], MHz: r.FrequencyMHz[i],
				Start: time.Duration(r.StartNs[i]), Time: time.Duration(r.TimeNs[i]),
			})
		}
	}
	return p
}

// mostActions bounds the pipelines whose order the agent works out for itself.
const mostActions = 1 << 18

// orderOf returns the ops of a pipeline rank in execution order, without clocks and times; nil where the job's schedule
// does not say, or is too large.
func orderOf(spec api.JobSpec, rank int) []follow.Op {
	chunks := max(spec.Chunks, 1)
	if spec.PP*spec.Microbatches*chunks > mostActions {
		return nil
	}
	var o *pipeline.Order
	var err error
	if spec.ScheduleCSV != "" {
		o, err = pipeline.ReadCSV(strings.NewReader(spec.ScheduleCSV), "schedule_csv")
	} else {
		name := spec.Schedule
		if name == "" {
			name = "1f1b"
		}
		o, err = pipeline.Build(name, pipeline.Size{Ranks: spec.PP, Chunks: chunks, Microbatches: spec.Microbatches})
	}
	if err != nil || rank < 0 || rank >= len(o.Ranks) {
		return nil // the server says what is wrong with it
	}
	var ops []follow.Op
	for _, a := range o.Ranks[rank] {
		if !a.Kind.Fixed() && !a.Kind.Communication() {
			ops = append(ops, follow.Op{Instruction: a.Kind.Instruction(), Stage: int(a.Stage), Microbatch: int(a.Microbatch)})
		}
	}
	return ops
}

// order returns orderOf the link's job, worked out once.
func (l *link) order(rank int) []follow.Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	ops, ok := l.orders[rank]
	if !ok {
		ops = orderOf(l.spec, rank)
		l.orders[rank] = ops
	}
	return ops
}

// stagesOf returns the stages of a rank's chunks: its stages in rising order. Nil where the schedule does not say.
func stagesOf(h wire.Hello) []int {
	var stages []int
	for _, op := range orderOf(h.Spec, h.PP) {
		if !slices.Contains(stages, op.Stage) {
			stages = append(stages, op.Stage)
		}
	}
	slices.Sort(stages)
	return stages
}
