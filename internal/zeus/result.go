package zeus

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
)

// profilingResult is Zeus's ProfilingResult: times in s, energies in J. A breakdown holds, for each instruction, the
// list of its ops' values for each iteration.
type profilingResult struct {
	Rank            *int                   `json:"rank"`
	IterTime        *[]float64             `json:"iter_time"`
	IterEnergy      *[]float64             `json:"iter_energy"`
	TimeBreakdown   map[string][][]float64 `json:"time_breakdown"`
	EnergyBreakdown map[string][][]float64 `json:"energy_breakdown"`
}

// Bounds of package api for one report.
const (
	maxSeconds = 86400
	maxJoules  = 1e9
	maxValues  = 65536
)

// result passes on what a rank measured with the schedule that it was last told.
func (h *Handler) result(w http.ResponseWriter, r *http.Request, job string) error {
	var res profilingResult
	if err := readBody(r, maxResult, &res); err != nil {
		return err
	}
	ctx := r.Context()
	known, err := h.Service.Job(ctx, job)
	if err != nil {
		return err
	}
	if err := res.check(known.Spec.WorldSize); err != nil {
		return err
	}
	rank, n := *res.Rank, len(*res.IterTime)
	told, ok := h.served.last(job, rank)
	if !ok {
		if told, err = h.current(ctx, &known, rank); err != nil {
			return err
		}
		h.served.put(job, rank, told, known.Iteration)
	}
	report := res.report(told.steps)
	report.Version = told.version
	report.Iteration = h.served.count(job, rank, n, known.Iteration)
	if _, err := h.Service.Report(ctx, job, api.Reports{Generation: told.generation, Ranks: []api.RankReport{report}}); err != nil {
		return err
	}
	h.served.accepted(job, rank, n)
	writeJSON(w, http.StatusOK, nil)
	return nil
}

// current returns what a rank would be told now.
func (h *Handler) current(ctx context.Context, known *api.Job, rank int) (servedRank, error) {
	self, err := h.Service.Rank(ctx, known.ID, rank)
	if err != nil {
		return servedRank{}, err
	}
	now, err := h.Service.Schedules(ctx, known.ID, api.ScheduleQuery{Ranks: []int{rank}})
	if err != nil {
		return servedRank{}, err
	}
	ops, err := h.steps(&known.Spec, &self, &now)
	return servedRank{generation: now.Generation, version: now.Version, steps: ops}, err
}

// check returns what is wrong with a result, if anything: after it, rank and iteration times are there, and all
// breakdowns have the same iterations.
func (p *profilingResult) check(world int) error {
	var bad invalid
	bad.integer("rank", p.Rank, 0, world-1)
	within := func(field string, values []float64, high float64) {
		for i, v := range values {
			if v < 0 || v > high {
				bad.add(field, "value %d: %v: must be from 0 to %v", i, v, high)
				return
			}
		}
	}
	var n int
	switch {
	case p.IterTime == nil:
		bad.missing("iter_time")
	case len(*p.IterTime) == 0 || len(*p.IterTime) > maxValues:
		bad.add("iter_time", "%d values: must be from 1 to %d", len(*p.IterTime), maxValues)
	default:
		n = len(*p.IterTime)
		within("iter_time", *p.IterTime, maxSeconds)
	}
	switch {
	case p.IterEnergy == nil:
		bad.missing("iter_energy")
	case len(*p.IterEnergy) != 0 && len(*p.IterEnergy) != n:
		bad.add("iter_energy", "%d values beside %d iter_time: one for each iteration, or none", len(*p.IterEnergy), n)
	default:
		within("iter_energy", *p.IterEnergy, maxJoules)
	}
	breakdown := func(field string, by map[string][][]float64, high float64) {
		for _, name := range slices.Sorted(maps.Keys(by)) {
			if len(by[name]) != n {
				bad.add(field, "%q has %d iterations beside %d iter_time", shorten(name, 64), len(by[name]), n)
			}
			for _, values := range by[name] {
				within(field, values, high)
			}
		}
	}
	breakdown("time_breakdown", p.TimeBreakdown, maxSeconds)
	breakdown("energy_breakdown", p.EnergyBreakdown, maxJoules)
	if err := bad.orNil(); err != nil {
		bad.details = bad.details[:min(len(bad.details), 16)]
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.EnergyBreakdown)) {
		times := p.TimeBreakdown[name]
		for i, energies := range p.EnergyBreakdown[name] {
			if times == nil || len(times[i]) != len(energies) {
				bad.add("energy_breakdown", "%q, iteration %d: not as many ops as in time_breakdown", shorten(name, 64), i)
				return &bad
			}
		}
	}
	return nil
}

// report returns a checked result as the control plane wants it, but for version and iteration: ops are grouped by
// stage, instruction and clock, in the order in which they first run. An iteration whose ops are not those of the
// schedule is counted, and its ops are left out. O(ops·iterations).
func (p *profilingResult) report(s *steps) api.RankReport {
	n := len(*p.IterTime)
	out := api.RankReport{Rank: *p.Rank, Iterations: n, TimeS: mean(*p.IterTime), EnergyJ: mean(*p.IterEnergy)}
	if len(p.TimeBreakdown) == 0 {
		return out
	}
	counts := map[string]int{}
	for i := range s.mhz {
		counts[s.name(i)]++
	}
	planned := make([]bool, n)
	for i := range planned {
		planned[i] = true
		for name, by := range p.TimeBreakdown {
			planned[i] = planned[i] && len(by[i]) == counts[name]
		}
		for name := range counts {
			planned[i] = planned[i] && p.TimeBreakdown[name] != nil
		}
		if !planned[i] {
			out.Unplanned++
		}
	}
	type group struct {
		name       string
		stage, mhz uint16
	}
	index := map[group]int{}
	position := make([]int, len(s.names)) // of the op among those of its name
	for op := range s.mhz {
		name := s.name(op)
		k := position[s.instruction[op]]
		position[s.instruction[op]]++
		g := group{name, s.stage[op], s.mhz[op]}
		at, ok := index[g]
		if !ok {
			at = len(out.Ops)
			index[g] = at
			out.Ops = append(out.Ops, api.OpReport{Stage: int(g.stage), Instruction: name, FrequencyMHz: int(g.mhz)})
		}
		for i := range planned {
			if !planned[i] || len(out.Ops[at].TimeS) == maxValues {
				continue
			}
			out.Ops[at].TimeS = append(out.Ops[at].TimeS, p.TimeBreakdown[name][i][k])
			if by := p.EnergyBreakdown[name]; by != nil {
				out.Ops[at].EnergyJ = append(out.Ops[at].EnergyJ, by[i][k])
			}
		}
	}
	out.Ops = slices.DeleteFunc(out.Ops, func(o api.OpReport) bool { return len(o.TimeS) == 0 })
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}
