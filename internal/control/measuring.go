package control

import (
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/watch"
)

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
		j.Measured.Done, j.Measured.BlocksDone = true, blocks
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
