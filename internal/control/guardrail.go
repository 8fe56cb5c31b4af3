package control

import (
	"maps"
	"math"
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/campaign"
	"github.com/perseus-energy/perseus/internal/watch"
)

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
	for _, rank := range slices.Sorted(maps.Keys(slow)) {
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
