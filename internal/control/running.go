package control

import (
	"math"
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/campaign"
	"github.com/perseus-energy/perseus/internal/watch"
)

// enough iterations at maximum clock tell what an iteration takes besides its pipeline; baseMax of them are kept.
const (
	enough  = 5
	baseMax = 20
)

// enoughBase says whether the time of an iteration at maximum clock is known, or can never be: nobody reports.
func (j *Job) enoughBase() bool { return len(j.Base) >= enough || j.Iteration < 0 }

func (j *Job) calibrating() bool { return j.Frontier != "" && j.Kind == KindMax && !j.enoughBase() }

// calibrate takes the iteration time of a report at maximum clock.
func (j *Job) calibrate(r *api.RankReport) {
	if r.Unplanned > 0 || !(r.TimeS > 0) || math.IsInf(r.TimeS, 1) {
		return
	}
	if len(j.Base) == baseMax {
		j.Base = j.Base[1:]
	}
	j.Base = append(j.Base, r.TimeS)
}

// besides returns what an iteration takes besides its pipeline, in s, as measured at maximum clock; 0 if unknown.
func (j *Job) besides() float64 {
	if len(j.Base) == 0 || j.Landmarks == nil {
		return 0
	}
	return campaign.Median(j.Base) - j.Landmarks.MaxClockTimeS
}

// Expected is what an op takes by the plan in force: all ops of a stage and instruction at one clock take the same.
type Expected struct {
	Stage       int     `json:"s"`
	Instruction string  `json:"i"`
	MHz         int     `json:"f"`
	TimeS       float64 `json:"t"`
	EnergyJ     float64 `json:"e"`
	// Times and Energies are the newest measured ÷ expected of the first pipelines, each by itself.
	Times    [driftPipelines][]float64 `json:"rt"`
	Energies [driftPipelines][]float64 `json:"re"`
}

// Report takes the report of a rank. Advance follows once all reports at hand are taken. A report that cannot be of
// this job is refused with an *api.Error and changes nothing; one that came before changes nothing either.
func (j *Job) Report(r *api.RankReport, at Place) error {
	if j.Missing > 0 {
		return refuse(409, "ranks-missing", "job %s still waits for %d ranks to register", j.ID, j.Missing)
	}
	if r.Version > j.Version {
		return refuse(422, "version", "rank %d reports schedule version %d; the newest is %d", r.Rank, r.Version, j.Version)
	}
	if j.Ended() {
		return nil
	}
	if len(j.Last) != j.Spec.WorldSize {
		j.Last = make([]int64, j.Spec.WorldSize)
		for i := range j.Last {
			j.Last[i] = -1
		}
	}
	if r.Iteration <= j.Last[r.Rank] {
		return nil
	}
	j.Last[r.Rank], j.lastChanged = r.Iteration, true
	i := at.DP*j.Spec.PP + at.PP
	j.Heard[i] = max(j.Heard[i], r.Iteration)
	j.Iteration = max(j.Iteration, r.Iteration)
	if j.State == api.Stale {
		j.back("ranks report again")
	}
	if at.Lead && i == 0 {
		j.Unplanned += int64(r.Unplanned)
	}
	j.held(r.Rank, r.HoldS)
	switch {
	case j.State == api.Profiling:
		j.profiled(r, at)
	case j.Kind == KindMax && (r.Version == j.Version || j.Base == nil) && at.Lead && i == 0:
		j.calibrate(r)
	case j.Measuring != nil:
		j.measured(r)
	case j.State == api.Running && j.Kind == KindPlan && r.Version == j.Version && r.Iteration-int64(max(1, r.Iterations)) >= j.From:
		j.watched(r, at)
	}
	return nil
}

// watched takes a report of a rank that ran by the plan.
func (j *Job) watched(r *api.RankReport, at Place) {
	var took, expected float64
	for _, op := range r.Ops {
		e := j.expected(op.Stage, op.Instruction, op.FrequencyMHz)
		if e == nil || len(op.TimeS) == 0 {
			continue
		}
		t := campaign.Median(op.TimeS)
		took += t
		expected += e.TimeS
		if op.Capped || !(t > 0) {
			continue
		}
		if at.DP >= driftPipelines {
			continue
		}
		e.Times[at.DP] = keep(e.Times[at.DP], t/e.TimeS, driftWindow)
		if len(op.EnergyJ) > 0 && e.EnergyJ > 0 {
			e.Energies[at.DP] = keep(e.Energies[at.DP], campaign.Median(op.EnergyJ)/e.EnergyJ, driftWindow)
		}
	}
	if at.Lead && at.DP == 0 && at.PP == 0 && r.Unplanned == 0 && r.TimeS > 0 {
		j.Recent = keep(j.Recent, r.TimeS, 3)
	}
	if expected > 0 {
		if j.Detector == nil {
			j.Detector = watch.New(watch.Config{})
		}
		j.detectorChanged = true
		for _, c := range j.Detector.Observe(r.Rank, r.Iteration, took/expected) {
			j.detected(c, at)
		}
	}
	if at.Lead && at.DP == 0 && at.PP == 0 && j.Guardrail != nil && r.Unplanned == 0 {
		if v := j.Guardrail.Observe(max(1, r.Iterations), r.TimeS); v.Tripped && !j.heldUp() {
			j.trip(v.Reason)
		}
	}
}

func (j *Job) expected(stage int, instruction string, mhz int) *Expected {
	for i := range j.Expected {
		if e := &j.Expected[i]; e.Stage == stage && e.MHz == mhz && e.Instruction == instruction {
			return e
		}
	}
	return nil
}

func keep(v []float64, x float64, n int) []float64 {
	if len(v) >= n {
		v = v[len(v)-n+1:]
	}
	return append(v, x)
}

// Advance does what the reports taken since the last call lead to.
func (j *Job) Advance() {
	if j.Missing > 0 || j.Ended() {
		return
	}
	switch j.State {
	case api.Profiling:
		switch {
		case j.Campaign == nil:
		case j.Kind == KindMax && slices.Min(j.Heard) >= 0:
			j.step(true)
		case j.Kind == KindTry && slices.Min(j.Heard) >= j.From:
			j.step(false)
		}
	case api.Characterizing:
		if j.Frontier != "" && j.enoughBase() {
			j.proceed()
		}
	case api.Running:
		if j.Measuring != nil {
			j.nextBlock()
			return
		}
		if j.drifted() {
			return
		}
		if j.activeChanged() {
			j.Due = true
		}
	}
}
