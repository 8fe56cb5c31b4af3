package control

import (
	"math"

	"github.com/perseus-energy/perseus/unit"
)

// Holds are planned for in steps, so that a latency that is measured again and again does not make plans again and again.
const (
	leastHold = 0.01 // s
	mostHold  = 3600 // s
	holdStep  = 1.25
)

// hold returns for how long plans are to keep a clock at least: the largest that a rank asked for, rounded up to a step.
func (j *Job) hold() unit.Time {
	if !(j.HoldS > 0) {
		return 0
	}
	steps := math.Ceil(math.Log(j.HoldS/leastHold)/math.Log(holdStep) - 1e-9)
	return unit.Time(math.Round(leastHold*math.Pow(holdStep, max(steps, 0))*1e6)) * unit.Microsecond
}

// held takes for how long a rank's GPU is to keep a clock at least.
func (j *Job) held(rank int, s float64) {
	if !(s > j.HoldS) || s > mostHold {
		return
	}
	before := j.hold()
	j.HoldS = s
	if h := j.hold(); h != before {
		j.note("hold", "clocks are kept for %v at least from the next plan on, as setting them takes or costs so much on rank %d", h, rank)
	}
}
