package control

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/campaign"
)

// Tried is how far a campaign is.
type Tried struct {
	Iterations int64    `json:"iterations"`
	ExtraS     float64  `json:"extra_s"`
	Last       int64    `json:"last"`
	Top        bool     `json:"top"`
	Clocks     [][]int  `json:"clocks,omitempty"`
	Warm       bool     `json:"warm,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	// Done of All clocks, over all ops, have the samples they need, as far as is known now.
	Done int `json:"done"`
	All  int `json:"all"`
}

// rises in a row of an op's effective energy end its way down the clocks.
const rises = 5

func (j *Job) startCampaign() {
	o, err := j.Order()
	if err != nil {
		j.Fail(err.Error())
		return
	}
	var ops []campaign.Op
	for rank, actions := range o.Ranks {
		for _, a := range actions {
			op := campaign.Op{Stage: int(a.Stage), Instruction: a.Kind.Instruction(), ClocksMHz: j.Clocks[rank]}
			if a.Kind.Fixed() || slices.ContainsFunc(ops, func(b campaign.Op) bool { return b.Stage == op.Stage && b.Instruction == op.Instruction }) {
				continue
			}
			ops = append(ops, op)
		}
	}
	if j.Campaign == nil {
		c, err := campaign.New(campaign.Config{Ops: ops, Replicas: j.Spec.DP, Rises: rises, BlockingPowerW: j.BlockingPowerW})
		if err != nil {
			j.Fail("no campaign is possible: " + err.Error())
			return
		}
		j.Campaign, j.Tried = c, Tried{Last: -1}
	}
	j.campaignChanged = true
	j.enter(api.Profiling, "")
	// Who never reports, as Zeus's client of today, stays at maximum clock.
	if j.Kind != KindMax || j.Iteration >= 0 {
		j.step(true)
	}
}

// step publishes the campaign's next step if it differs from the present one, or ends the campaign.
func (j *Job) step(again bool) {
	clocks, more := j.Campaign.Step()
	j.Tried.Done, j.Tried.All = j.Campaign.Progress()
	if more && j.overBudget() {
		j.Tried.Notes = append(j.Tried.Notes, "the profiling budget, or 1,000 iterations, is used up: clocks that were not tried are left out")
		more = false
	}
	if !more {
		j.endCampaign()
		return
	}
	if !again && slices.EqualFunc(clocks, j.Tried.Clocks, slices.Equal[[]int]) {
		return
	}
	o, err := j.Order()
	if err != nil {
		j.Fail(err.Error())
		return
	}
	j.Tried.Clocks, j.Tried.Top = clocks, true
	at := map[campaignOp]int{}
	for i, op := range j.Campaign.Config.Ops {
		at[campaignOp{op.Stage, op.Instruction}] = i
		for _, c := range clocks {
			j.Tried.Top = j.Tried.Top && c[i] == op.ClocksMHz[0]
		}
	}
	body := trial(o, func(replica, stage int, instruction string) int {
		return clocks[replica][at[campaignOp{stage, instruction}]]
	}, j.Spec.DP)
	j.publish(KindTry, j.first(), body, "profiling")
}

type campaignOp struct {
	stage       int
	instruction string
}

func (j *Job) overBudget() bool {
	budget := j.Spec.ProfilingBudget
	if budget == 0 {
		budget = j.Defaults.ProfilingBudget
	}
	return j.Tried.Iterations >= budgetIterations || len(j.Base) > 0 && j.Tried.ExtraS > budget*budgetIterations*campaign.Median(j.Base)
}

// budgetIterations is what the budget is a share of, and the most iterations that a campaign may take.
const budgetIterations = 1000

// profiled takes a report of a rank in a campaign.
func (j *Job) profiled(r *api.RankReport, at Place) {
	if j.Campaign == nil {
		return
	}
	var opsTime, opsEnergy float64
	complete := len(r.Ops) > 0
	for _, op := range r.Ops {
		complete = complete && len(op.EnergyJ) == len(op.TimeS)
		for i, t := range op.TimeS {
			opsTime += t
			if i >= len(op.EnergyJ) {
				continue
			}
			opsEnergy += op.EnergyJ[i]
			j.Campaign.Add(campaign.Sample{
				Stage: op.Stage, Instruction: op.Instruction, ClockMHz: op.FrequencyMHz,
				TimeS: t, EnergyJ: op.EnergyJ[i], Capped: op.Capped,
			})
		}
	}
	if complete && max(1, r.Iterations) == 1 && r.Unplanned == 0 {
		j.Campaign.AddIteration(r.TimeS, r.EnergyJ, opsTime, opsEnergy)
	}
	j.campaignChanged = true
	if !at.Lead || at.DP != 0 || at.PP != 0 || r.Iteration <= j.Tried.Last {
		return
	}
	j.Tried.Last = r.Iteration
	j.Tried.Iterations += int64(max(1, r.Iterations))
	if j.Kind == KindMax || j.Tried.Top {
		j.calibrate(r)
	} else if len(j.Base) > 0 {
		j.Tried.ExtraS += max(0, r.TimeS-campaign.Median(j.Base)) * float64(max(1, r.Iterations))
	}
}

// endCampaign makes a profile of what was measured and asks for its frontier.
func (j *Job) endCampaign() {
	w, ok := j.Campaign.BlockingPower()
	if !ok {
		w = 0
		j.Tried.Notes = append(j.Tried.Notes, "blocking power could not be measured: no rank waited long enough; 0 W is assumed, which saves less")
	}
	if w > 0 {
		j.BlockingPowerW = w
	}
	csv, missing := Table(j.Campaign)
	if missing != "" {
		j.Fail("profiling ended without a measurement of " + missing)
		return
	}
	if n := j.Campaign.LeftOut; n > 0 {
		j.Tried.Notes = append(j.Tried.Notes, fmt.Sprintf("%d measurements were left out: capped by power or heat, without energy, or impossible", n))
	}
	j.note("profile", "profiled in %d iterations, %.3g s lost to it", j.Tried.Iterations, j.Tried.ExtraS)
	j.effects = append(j.effects, Profiled{csv})
	j.enter(api.Characterizing, "computing the frontier")
	j.atMaximum("profiled: training at maximum clock until the frontier is there")
	j.effects = append(j.effects, Characterize{})
}

// Table returns the measurements of a campaign as a profile's CSV: the median of each op at each clock that has enough
// samples, in the order of its ops and clocks. missing names an op that has none.
func Table(c *campaign.Campaign) (csv []byte, missing string) {
	var b bytes.Buffer
	b.WriteString("stage,instruction,frequency,time,energy\n")
	for i, op := range c.Config.Ops {
		n := 0
		for k, p := range c.Points[i] {
			if len(p.TimesS) < campaign.MinSamples {
				continue
			}
			n++
			fmt.Fprintf(&b, "%d,%s,%d,%s,%s\n", op.Stage, op.Instruction, op.ClocksMHz[k],
				decimal(campaign.Median(p.TimesS)), decimal(campaign.Median(p.EnergiesJ)))
		}
		if n == 0 {
			return nil, fmt.Sprintf("stage %d, %s", op.Stage, op.Instruction)
		}
	}
	return b.Bytes(), ""
}

// decimal writes a measured number with nine decimal places: nanoseconds and nanojoules.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 9, 64) }

// Progress returns how far profiling is, nil where there was none.
func (j *Job) Progress() *api.Profile {
	if j.Tried.All == 0 && j.Tried.Iterations == 0 && !j.Tried.Warm {
		return nil
	}
	p := &api.Profile{Iterations: j.Tried.Iterations, ExtraTime: j.Tried.ExtraS, Warm: j.Tried.Warm, Notes: j.Tried.Notes, DoneFraction: 1}
	if j.State == api.Profiling {
		p.DoneFraction = float64(j.Tried.Done) / float64(max(1, j.Tried.All))
		p.IterationsMax = min(int64(j.Tried.All-j.Tried.Done)*3, budgetIterations-j.Tried.Iterations)
	}
	return p
}

// Warm takes a profile of an earlier job in place of a campaign; the job's own reports check it.
func (j *Job) Warm(hash string, blockingW float64) {
	j.Profile, j.BlockingPowerW = hash, blockingW
	j.Tried.Warm = true
	j.note("profile", "reused from an earlier job of the same model on the same GPUs")
}
