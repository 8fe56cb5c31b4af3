package control

import (
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/internal/campaign"
)

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
