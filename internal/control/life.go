package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
)

// Place is where a rank is in the job.
type Place struct {
	DP, PP int
	// Lead is the first rank of its group: the one whose iteration times count.
	Lead bool
}

// mostMHz bounds the clocks of GPUs.
const mostMHz = 100000

// CheckRank returns an error unless r can be a rank of the job.
func (j *Job) CheckRank(r api.Rank) error {
	s := &j.Spec
	if r.Rank < 0 || r.Rank >= s.WorldSize {
		return refuse(422, "rank", "rank %d: job %s has ranks 0 … %d", r.Rank, j.ID, s.WorldSize-1)
	}
	for _, d := range []struct {
		name        string
		value, size int
	}{
		{"pp_rank", r.PP, s.PP},
		{"dp_rank", r.DP, s.DP},
		{"tp_rank", r.TP, s.TP},
		{"cp_rank", r.CP, s.CP},
	} {
		if d.value < 0 || d.value >= d.size {
			return refuse(422, "rank", "rank %d: %s %d is not in 0 … %d", r.Rank, d.name, d.value, d.size-1)
		}
	}
	for _, mhz := range r.FrequencyMHz {
		if mhz < 1 || mhz > mostMHz {
			return refuse(422, "rank", "rank %d: available_frequency_mhz: %d is not in 1 … %d", r.Rank, mhz, mostMHz)
		}
	}
	return nil
}

// NewGeneration starts the job's ranks anew: all of them are missing, and iterations count from 0 again.
func (j *Job) NewGeneration(reason string) {
	j.Generation++
	j.Missing = j.Spec.WorldSize
	j.Iteration, j.From, j.ahead, j.Heard = -1, -1, 0, nil
	j.Base, j.Guardrail, j.Measuring, j.Expected, j.Plan, j.Active = nil, nil, nil, nil, nil, ""
	j.Detector, j.detectorChanged = nil, true
	j.Last, j.lastChanged = nil, true
	j.Stragglers = slices.DeleteFunc(j.Stragglers, func(s Straggler) bool {
		return s.Source == detected || s.UntilIteration > 0 || s.AtIteration > 0
	})
	j.Before, j.Redeployed, j.HoldS = "", false, 0
	j.Kind = ""
	j.note("state", "generation %d: %s", j.Generation, reason)
	j.enter(api.Registered, "waiting for all ranks to register")
}

// Ready tells that all ranks of the generation have registered. Two ranks at one place, or GPUs without a clock in
// common in one pipeline rank, fail the job.
func (j *Job) Ready(ranks []api.Rank) {
	j.Missing = 0
	j.Heard = make([]int64, j.Spec.DP*j.Spec.PP)
	for i := range j.Heard {
		j.Heard[i] = -1
	}
	if err := j.takeClocks(ranks); err != nil {
		j.Fail(err.Error())
		return
	}
	j.Version++
	j.From, j.Kind = 0, KindMax
	j.Why = "all ranks are here"
	j.effects = append(j.effects, Publish{
		Version: j.Version, From: 0, Reason: j.Why, Body: maximum(j.Spec.PP), ReportEvery: 1, State: j.State,
	})
	if j.State == api.Paused { // and stays so until it is resumed
		return
	}
	j.proceed()
}

// proceed goes on to what the job's knowledge allows.
func (j *Job) proceed() {
	switch {
	case j.Frontier != "" && j.enoughBase():
		j.enter(api.Running, "")
		j.Due = true
	case j.Frontier != "":
		j.enter(api.Characterizing, "measuring iterations at maximum clock")
	case j.Profile != "":
		j.enter(api.Characterizing, "computing the frontier")
		j.effects = append(j.effects, Characterize{})
	case j.Spec.NoProfiling:
		j.enter(api.Profiling, "waiting for a profile to be uploaded")
	default:
		j.startCampaign()
	}
}

func (j *Job) takeClocks(ranks []api.Rank) error {
	places := map[string]int{}
	j.Clocks = make([][]int, j.Spec.PP)
	seen := make([]bool, j.Spec.PP)
	j.GPU = j.Spec.GPU
	for _, r := range ranks {
		at := fmt.Sprint(r.PP, r.DP, r.TP, r.CP)
		if other, twice := places[at]; twice {
			return fmt.Errorf("ranks %d and %d are at one place: pp %d, dp %d, tp %d, cp %d", other, r.Rank, r.PP, r.DP, r.TP, r.CP)
		}
		places[at] = r.Rank
		if j.GPU == "" {
			j.GPU = r.GPUModel
		}
		c := slices.Clone(r.FrequencyMHz)
		slices.Sort(c)
		slices.Reverse(c)
		c = slices.Compact(c)
		if !seen[r.PP] {
			seen[r.PP], j.Clocks[r.PP] = true, c
			continue
		}
		j.Clocks[r.PP] = slices.DeleteFunc(j.Clocks[r.PP], func(mhz int) bool { return !slices.Contains(c, mhz) })
	}
	for pp, c := range j.Clocks {
		if len(c) == 0 && !j.Spec.NoProfiling && j.Profile == "" {
			return fmt.Errorf("the GPUs of pipeline rank %d have no clock in common that could be profiled: report available_frequency_mhz, or upload a profile", pp)
		}
	}
	return nil
}

// SetProfile takes a profile in place of a campaign: its hash and, if known, what a GPU draws while it waits.
func (j *Job) SetProfile(hash string, blockingW float64, why string) {
	j.Profile = hash
	if blockingW > 0 {
		j.BlockingPowerW = blockingW
	}
	j.Frontier, j.Inputs, j.Landmarks = "", "", nil
	j.note("profile", "%s", why)
	if j.Missing > 0 || j.Ended() {
		return
	}
	paused := j.State == api.Paused || j.State == api.Stale
	if j.Kind != KindMax {
		j.atMaximum("a new profile")
	}
	if paused {
		j.Before = api.Characterizing
		j.effects = append(j.effects, Characterize{})
		return
	}
	j.proceed()
}

// FrontierReady tells that the frontier of the job's present inputs is there.
func (j *Job) FrontierReady(hash string, landmarks api.Frontier) {
	if j.Frontier == hash {
		return
	}
	j.Frontier, j.Landmarks = hash, &landmarks
	j.Frontiers++
	j.Landmarks.Version = j.Frontiers
	j.note("frontier", "version %d: %d points, %.6g s to %.6g s", j.Frontiers, landmarks.Points, landmarks.MinTimeS, landmarks.MaxTimeS)
	switch {
	case j.Ended() || j.Missing > 0:
	case j.State == api.Paused || j.State == api.Stale:
		j.Before = api.Running
	default:
		j.proceed()
	}
}

// Fail ends the steering of a job, for a reason that people can act on.
func (j *Job) Fail(reason string) {
	if j.Ended() {
		return
	}
	j.atMaximum("failed")
	j.enter(api.Failed, reason)
}

// Pause sends all ranks to maximum clock until Resume.
func (j *Job) Pause(reason string) error {
	switch j.State {
	case api.Paused:
		return nil
	case api.Finished, api.Failed:
		return refuse(409, "job-state", "job %s is %s: it cannot be paused", j.ID, j.State)
	}
	before := j.State
	if before == api.Stale {
		before = j.Before
	}
	j.Before = before
	j.enter(api.Paused, reason)
	j.atMaximum("paused: " + reason)
	return nil
}

// Resume goes on where Pause stopped. Resuming a job that is not paused does nothing.
func (j *Job) Resume() error {
	if j.Ended() {
		return refuse(409, "job-state", "job %s is %s: it cannot be resumed", j.ID, j.State)
	}
	if j.State != api.Paused {
		return nil
	}
	j.back("resumed")
	return nil
}

func (j *Job) back(why string) {
	before := j.Before
	j.Before = ""
	j.note("state", "%s", why)
	switch {
	case j.Missing > 0:
		j.enter(api.Registered, "waiting for all ranks to register")
	case before == api.Profiling && j.Campaign != nil:
		j.enter(api.Profiling, "")
		j.step(true)
	default:
		j.proceed()
	}
}

// Finish ends the job.
func (j *Job) Finish() {
	if j.State == api.Finished {
		return
	}
	j.atMaximum("finished")
	j.enter(api.Finished, "")
}

// Silent tells that nothing was heard of ranks for longer than allowed. It names at most 20 of them.
func (j *Job) Silent(ranks []int, allowed string) {
	if j.Ended() || j.State == api.Paused || j.State == api.Stale {
		return
	}
	j.Before = j.State
	names := make([]string, 0, 20)
	for _, r := range ranks[:min(20, len(ranks))] {
		names = append(names, fmt.Sprint(r))
	}
	more := ""
	if len(ranks) > 20 {
		more = fmt.Sprintf(" and %d more", len(ranks)-20)
	}
	reason := "no word for " + allowed
	if len(names) > 0 {
		reason += " from ranks " + strings.Join(names, ", ") + more
	}
	if j.Missing > 0 {
		reason = "not registered within " + allowed + ": ranks " + strings.Join(names, ", ") + more
	}
	j.enter(api.Stale, reason)
	if j.Version > 0 && j.Missing == 0 {
		j.atMaximum("stale: " + reason)
	}
}

// Restart gives an ended job the life of a fresh one of the same id; its versions go on counting.
func (j *Job) Restart(fresh *Job) {
	generation, version := j.Generation, j.Version
	*j = *fresh
	j.Generation, j.Version = generation+1, version
	j.From = -1
	j.campaignChanged, j.detectorChanged, j.lastChanged = true, true, true
}

// TakeGPU notes the GPU model of the job from its ranks, if the job did not say.
func (j *Job) TakeGPU(ranks []api.Rank) {
	j.GPU = j.Spec.GPU
	for _, r := range ranks {
		if j.GPU == "" {
			j.GPU = r.GPUModel
		}
	}
}

// Lagging returns the ranks of the groups that have reported least far.
func (j *Job) Lagging(places []Place) []int {
	if len(j.Heard) == 0 {
		return nil
	}
	least := slices.Min(j.Heard)
	var out []int
	for rank, p := range places {
		if j.Heard[p.DP*j.Spec.PP+p.PP] == least {
			out = append(out, rank)
		}
	}
	return out
}
