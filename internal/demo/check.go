package demo

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// checked is what the simulator and the frontier say.
type checked struct {
	simulated, frontier float64 // savings in percent
	checks              []Check
}

// check compares what the GPUs took with what the simulator takes by the profile that the server measured, and with the
// frontier of the profile that drives the GPUs, if there is one.
func (s *story) check(ctx context.Context, by api.Schedules, maximum, planned span) (c checked, err error) {
	atMax, atPlan, err := s.simulate(ctx, by)
	if err != nil {
		return c, fmt.Errorf("simulate the schedule: %w", err)
	}
	c.simulated = less(atMax.energy, atPlan.energy)
	saving := less(maximum.energy, planned.energy)
	off := func(got, want float64) float64 { return 100 * (got/want - 1) }
	worst := max(math.Abs(off(maximum.energy, atMax.energy)), math.Abs(off(planned.energy, atPlan.energy)))
	c.checks = append(c.checks,
		Check{fmt.Sprintf("the simulator saves %.2f %%, 1 point from that at most", c.simulated), math.Abs(c.simulated-saving) <= 1},
		Check{fmt.Sprintf("its energies are those of the GPUs: %.2f %% apart, 1 %% at most", worst), worst <= 1})
	if s.Profile == nil {
		return c, nil
	}
	if c.frontier, err = s.best(ctx); err != nil {
		return c, fmt.Errorf("the frontier of the profile: %w", err)
	}
	c.checks = append(c.checks,
		Check{fmt.Sprintf("the frontier of the profile saves %.2f %%, 1 point from that at most", c.frontier), math.Abs(c.frontier-saving) <= 1})
	return c, nil
}

// simulate returns what the simulator says of iterations at maximum clock and by a schedule, from what the server
// measured.
func (s *story) simulate(ctx context.Context, by api.Schedules) (atMax, atPlan span, err error) {
	var text bytes.Buffer
	if err := s.world.client.Profile(ctx, jobID, &text); err != nil {
		return atMax, atPlan, err
	}
	measured, err := profile.Read(&text, "profile of the server", profile.Options{})
	if err != nil {
		return atMax, atPlan, err
	}
	text.Reset()
	if err := s.world.client.Frontier(ctx, jobID, &text); err != nil {
		return atMax, atPlan, err
	}
	f, err := frontierfile.Read(&text, "frontier of the server")
	if err != nil {
		return atMax, atPlan, err
	}
	p, err := simulate.New(&f.Header, measured)
	if err != nil {
		return atMax, atPlan, err
	}
	if atMax, err = s.run(simulate.Member{Schedule: p.MaxClocks(), Copies: s.Pipelines}); err != nil {
		return atMax, atPlan, err
	}
	ranks := map[int]api.RankSchedule{}
	for _, r := range by.Ranks {
		ranks[r.Rank] = r
	}
	var members []simulate.Member
	for d := range s.Pipelines {
		schedule := &simulate.Schedule{Pipeline: p, Name: "as deployed", Option: make([]dag.Option, p.Problem.Graph.Ops)}
		for r := range p.Ranks() {
			from, to := p.Rank(r)
			clocks := ranks[s.world.rank(d, r)].FrequencyMHz
			if len(clocks) != int(to-from) {
				return atMax, atPlan, fmt.Errorf("pipeline %d, rank %d: a schedule of %d ops for %d", d, r, len(clocks), to-from)
			}
			for i, mhz := range clocks {
				op := from + int32(i)
				o, ok := p.At(p.Problem.CurveOf[op], int32(mhz))
				if mhz == 0 || !ok {
					o = p.Problem.Curve(op).Top
				}
				schedule.Option[op] = o
			}
		}
		members = append(members, simulate.Member{Schedule: schedule})
	}
	atPlan, err = s.run(members...)
	return atMax, atPlan, err
}

func (s *story) run(members ...simulate.Member) (span, error) {
	it, err := simulate.Run(members, simulate.Options{})
	if err != nil {
		return span{}, err
	}
	return span{it.Time.Seconds(), it.Energy().Joules()}, nil
}

// best returns what the fastest plan saves by the profile that drives the GPUs, where clocks are kept for as long as their
// switches take.
func (s *story) best(ctx context.Context) (float64, error) {
	job, err := jobs.New(s.Profile, s.cluster.order, []unit.Power{s.Blocking})
	if err != nil {
		return 0, err
	}
	f, err := characterize.Run(ctx, job, characterize.Options{})
	if err != nil {
		return 0, err
	}
	planner, err := plan.New(f)
	if err != nil {
		return 0, err
	}
	fastest, err := planner.Make(plan.Request{Goal: plan.Fastest, Hold: plan.HoldFor(unit.Time(s.Latency))})
	if err != nil {
		return 0, err
	}
	return 100 * fastest.Saving.Float(), nil
}
