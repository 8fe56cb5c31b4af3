package control

import (
	"fmt"
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

// Measuring is a proof that is under way.
type Measuring struct {
	*watch.Measurement
	Start int64 `json:"start"`
	// Shown is how many blocks have their schedule; Versions is that of each.
	Shown    int     `json:"shown"`
	Versions []int64 `json:"versions"`
	// Sums holds the iterations that not all ranks have reported.
	Sums map[int64]*Sum `json:"sums"`
}

// Sum is an iteration over the ranks that have reported it.
type Sum struct {
	Ranks int     `json:"n"`
	TimeS float64 `json:"t"`
	J     float64 `json:"e"`
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

// heldUp takes slow ranks that the detector is not sure of yet for stragglers, where some pipelines have none: then it is
// they that make iterations longer than planned, and not the plan. It says whether it found one that was not known.
func (j *Job) heldUp() bool {
	if j.Detector == nil || len(j.Base) < enough || len(j.places) < j.Spec.WorldSize {
		return false
	}
	slow, pipelines := map[int]float64{}, map[int]bool{}
	for rank, seen := range j.Detector.Ranks {
		if m := campaign.Median(seen.Ratios); len(seen.Ratios) > 0 && m > j.Detector.Config.Enter {
			slow[rank] = m
			pipelines[j.places[rank].DP] = true
		}
	}
	if len(slow) == 0 || len(pipelines) >= j.Spec.DP {
		return false
	}
	fresh := false
	for _, rank := range sortedKeys(slow) {
		known := slices.ContainsFunc(j.Stragglers, func(s Straggler) bool { return *s.Rank == rank && s.ObservedS > 0 })
		if known {
			continue
		}
		fresh = true
		c := watch.Change{Rank: rank, Slowdown: math.Ceil(slow[rank]*100) / 100}
		j.Detector.Ranks[rank].Episode = &watch.Episode{Slowdown: c.Slowdown, Hold: j.Detector.Config.Hold}
		j.detectorChanged = true
		j.detected(c, j.places[rank])
	}
	if fresh {
		j.Guardrail.Reset(j.Guardrail.Planned)
	}
	return fresh
}

func (j *Job) trip(reason string) {
	j.note("guardrail", "%s", reason)
	if len(j.Base) < enough && !j.Redeployed {
		// What an iteration takes besides its pipeline was unknown: measure it, and try the plan once more.
		j.Redeployed = true
		j.atMaximum("guardrail: " + reason)
		j.enter(api.Characterizing, "measuring iterations at maximum clock: "+reason)
		return
	}
	j.Before = api.Running
	j.enter(api.Paused, "guardrail: "+reason)
	j.atMaximum("guardrail: " + reason)
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

// driftPipelines is how many pipelines are looked at for drift: an op has drifted when it is off in all of them, as one
// straggler would not make it. driftWindow is how many of its reports that takes in each.
const (
	driftPipelines = 4
	driftWindow    = 10
)

// driftLimit is how far the median of an op's time or energy may leave the profile.
const driftLimit = 0.05

// drifted starts profiling anew for ops that no longer are as their profile says.
func (j *Job) drifted() bool {
	var ops []string
	for _, e := range j.Expected {
		if n := min(driftPipelines, j.Spec.DP); off(e.Times[:n]) || off(e.Energies[:n]) {
			ops = append(ops, fmt.Sprintf("stage %d %s", e.Stage, e.Instruction))
			j.forget(e.Stage, e.Instruction)
		}
	}
	if len(ops) == 0 || j.Spec.NoProfiling || len(j.Clocks) == 0 || len(j.Clocks[0]) == 0 {
		return false
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	j.note("drift", "%d ops have left their profile (%s …): profiling them again", len(ops), ops[0])
	j.Profile, j.Frontier, j.Inputs = "", "", ""
	j.Plan, j.Guardrail, j.Expected, j.Active = nil, nil, nil, ""
	j.Detector, j.detectorChanged = nil, true
	j.Stragglers = slices.DeleteFunc(j.Stragglers, func(s Straggler) bool { return s.Source == detected })
	j.startCampaign()
	return true
}

// off says whether measured ÷ expected has left 1 by more than driftLimit in each pipeline, all in the same direction.
func off(pipelines [][]float64) bool {
	above, below := true, true
	for _, v := range pipelines {
		if len(v) < driftWindow {
			return false
		}
		lo, hi, ok := campaign.Interval(v)
		m := campaign.Median(v)
		above = above && ok && m > 1+driftLimit && lo > 1
		below = below && ok && m < 1-driftLimit && hi < 1
	}
	return above || below
}

func (j *Job) forget(stage int, instruction string) {
	if j.Campaign == nil {
		return
	}
	for i, op := range j.Campaign.Config.Ops {
		if op.Stage == stage && op.Instruction == instruction {
			for k := range j.Campaign.Points[i] {
				j.Campaign.Points[i][k] = campaign.Point{}
			}
			j.campaignChanged = true
		}
	}
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

// Measure starts a proof on the job itself. The job must be running by a plan.
func (j *Job) Measure(r api.MeasureRequest) error {
	if j.State != api.Running || j.Kind != KindPlan {
		return refuse(409, "job-state", "job %s is %s: only a job that runs by a plan can be measured", j.ID, j.State)
	}
	if j.Measuring != nil {
		return refuse(409, "measuring", "job %s is being measured: %d of %d blocks are done", j.ID, j.Measured.BlocksDone, j.Measured.Blocks)
	}
	groups := (max(r.Blocks, 0) + 3) / 4
	m := watch.NewMeasurement(groups, r.Iterations, -1)
	j.Measuring = &Measuring{Measurement: m, Sums: map[int64]*Sum{}}
	j.Measured = &api.Measured{Blocks: 4 * m.Groups}
	j.again(KindPlan, j.first(), "measuring: planned")
	j.Measuring.Start = j.From
	j.Measuring.Shown, j.Measuring.Versions = 1, []int64{j.Version}
	j.note("measure", "from iteration %d on: %d blocks of %d iterations", j.From, 4*m.Groups, m.Block)
	return nil
}

// again publishes the plan in force once more.
func (j *Job) again(kind Kind, from int64, reason string) {
	j.publish(kind, from, nil, reason)
	p := j.effects[len(j.effects)-1].(Publish)
	p.Like = j.PlanVersion
	j.effects[len(j.effects)-1] = p
	j.PlanVersion = j.Version
}

func (j *Job) measured(r *api.RankReport) {
	m := j.Measuring
	n := r.Iteration - m.Start
	if max(1, r.Iterations) != 1 || n < 0 || n >= int64(m.Iterations()) || r.Unplanned > 0 {
		return
	}
	block := int(n) / m.Block
	if block >= len(m.Versions) || m.Versions[block] != r.Version {
		return
	}
	s := m.Sums[n]
	if s == nil {
		s = &Sum{}
		m.Sums[n] = s
	}
	s.Ranks++
	s.TimeS = max(s.TimeS, r.TimeS)
	s.J += r.EnergyJ
}

// nextBlock publishes the next block of a measurement once the one before has begun, and ends the measurement.
func (j *Job) nextBlock() {
	m := j.Measuring
	var done []int64
	for n, s := range m.Sums {
		if s.Ranks >= j.Spec.WorldSize || m.Start+n < j.Iteration-int64(m.Block) {
			done = append(done, n)
		}
	}
	slices.Sort(done)
	for _, n := range done {
		if s := m.Sums[n]; s.Ranks >= j.Spec.WorldSize {
			m.Observe(int(n), s.TimeS, s.J)
		}
		delete(m.Sums, n)
	}
	begun := int((j.Iteration - m.Start) / int64(m.Block))
	blocks := 4 * m.Groups
	j.Measured.BlocksDone = max(0, min(begun, blocks))
	if saving, slowdown, ok := m.Result(); ok {
		j.Measured.SavingPercent, j.Measured.SavingLow, j.Measured.SavingHigh = saving.Value, saving.Low, saving.High
		j.Measured.SlowdownPercent, j.Measured.SlowdownLow, j.Measured.SlowdownHigh = slowdown.Value, slowdown.Low, slowdown.High
	}
	if slices.Min(j.Heard) >= m.Start+int64(m.Iterations())-1 || j.Iteration > m.Start+int64(m.Iterations()+m.Block) {
		j.Measured.Done = true
		j.note("measure", "saving %.2f %% (%.2f to %.2f), slowdown %.2f %% (%.2f to %.2f)", j.Measured.SavingPercent, j.Measured.SavingLow,
			j.Measured.SavingHigh, j.Measured.SlowdownPercent, j.Measured.SlowdownLow, j.Measured.SlowdownHigh)
		j.Measuring = nil
		j.again(KindPlan, j.first(), "measured")
		if j.Guardrail != nil {
			j.Guardrail.Reset(j.Guardrail.Planned)
		}
		return
	}
	for m.Shown < blocks && m.Shown <= begun+1 {
		from := m.Start + int64(m.Shown*m.Block)
		if m.Arm(m.Shown*m.Block) == m.Arm(m.Shown*m.Block-1) {
			m.Versions = append(m.Versions, m.Versions[m.Shown-1])
			m.Shown++
			continue
		}
		if from < j.first() {
			from = j.first()
		}
		if m.Arm(m.Shown*m.Block) == watch.Maximum {
			j.publish(KindProof, from, maximum(j.Spec.PP), "measuring: maximum clock")
		} else {
			j.again(KindPlan, from, "measuring: planned")
		}
		m.Versions = append(m.Versions, j.Version)
		m.Shown++
	}
}
