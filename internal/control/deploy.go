package control

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/watch"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// Want is a plan that a schedule needs.
type Want struct {
	// Frontier is the frontier's hash.
	Frontier string
	Request  plan.Request
}

// String names the want, for caches: equal wants have equal names.
func (w Want) String() string {
	r := w.Request
	return fmt.Sprintf("%s/%s/%d/%d/%d/%d", w.Frontier, r.Goal, r.Time, r.Factor, r.Power, r.Hold)
}

// Plans answers wants: a plan, or nil where it is not there yet.
type Plans func(Want) *plan.Plan

// Deploy publishes the schedule for the job's goal and stragglers. If plans are missing it changes nothing and returns
// the first one; the caller makes it and tries again. O(ops) and a longest path for each detected straggler.
func (j *Job) Deploy(plans Plans) (missing *Want) {
	if j.State != api.Running || j.Frontier == "" || j.Landmarks == nil || !j.activeChanged() && j.Kind == KindPlan {
		j.Due = false
		return nil
	}
	base := j.want(j.request())
	p := plans(base)
	if p == nil {
		return &base
	}
	fastest := j.want(plan.Request{Goal: plan.Fastest, Effort: round.Fast})
	f := plans(fastest)
	if f == nil {
		return &fastest
	}
	least := j.Landmarks.MinTimeS
	active := j.active()
	j.askCapped(active)
	slow, own := 0.0, map[int]*plan.Plan{}
	capped := make([]Capped, j.Spec.DP)
	for dp, caps := range j.caps(active) {
		if capped[dp] = j.Capped[j.capsKey(caps)]; capped[dp].Frontier != "" {
			slow = max(slow, capped[dp].LeastTimeS)
		}
	}
	var reason []string
	for _, s := range active {
		t := s.Slowdown * least
		switch {
		case s.MaxFrequencyMHz > 0 && capped[s.DP].Frontier == "":
			continue
		case s.MaxFrequencyMHz > 0: // see below
		case s.Source == detected:
			t = j.slowedTime(f, s.PP, s.Slowdown)
			// A ceiling slows fast ops more than others: the mean of their ratios says too little then.
			t = max(t, min(s.ObservedS, 1.5*t))
			own[s.DP] = f
		default:
			own[s.DP] = f
		}
		slow = max(slow, t)
		reason = append(reason, fmt.Sprintf("rank %d", *s.Rank))
	}
	held := 0 // pipelines with a plan of their own
	for dp, c := range capped {
		switch {
		case c.Frontier == "" && own[dp] == nil:
			continue
		case c.Frontier != "":
			w := Want{Frontier: c.Frontier, Request: fastest.Request}
			// A pipeline that is slowed beside waits like all others, for the slowest or for the goal.
			if factor := floor4(max(slow, p.Time.Seconds()) / c.LeastTimeS); own[dp] == nil && factor > 1 {
				w.Request.Goal, w.Request.Factor = plan.Straggler, ratio(factor)
			}
			if own[dp] = plans(w); own[dp] == nil {
				return &w
			}
		}
		held++
	}
	why := "plan: " + goalText(j.Goal)
	if len(own) > 0 {
		why = fmt.Sprintf("straggler %s: iterations take %.4g s", reason[0], slow)
	}
	others := p
	j.Factor = 0
	if slow > p.Time.Seconds() && held < j.Spec.DP {
		factor := floor4(slow / least)
		w := j.waiting(factor)
		if factor >= 1 {
			if others = plans(w); others == nil {
				return &w
			}
			j.Factor = factor
		}
	} else if slow <= p.Time.Seconds() {
		own = onlyCapped(own, f)
	}
	j.deploy(others, own, why, slow)
	return nil
}

// onlyCapped leaves those pipelines their own plan that cannot run the common one.
func onlyCapped(own map[int]*plan.Plan, fastest *plan.Plan) map[int]*plan.Plan {
	out := map[int]*plan.Plan{}
	for dp, p := range own {
		if p != fastest {
			out[dp] = p
		}
	}
	return out
}

func (j *Job) deploy(others *plan.Plan, own map[int]*plan.Plan, why string, slow float64) {
	body := &Body{Groups: []Group{{Ranks: ranksOf(others)}}}
	j.Expected = nil
	j.expect(others)
	for _, dp := range slices.Sorted(maps.Keys(own)) {
		at := slices.IndexFunc(body.Groups[1:], func(g Group) bool { return own[g.Pipelines[0]] == own[dp] })
		if at >= 0 {
			body.Groups[at+1].Pipelines = append(body.Groups[at+1].Pipelines, dp)
			continue
		}
		body.Groups = append(body.Groups, Group{Pipelines: []int{dp}, Ranks: ranksOf(own[dp])})
		j.expect(own[dp])
	}
	wait := max(slow, others.WaitTime.Seconds())
	j.Plan = &api.Plan{
		TimeS: others.Time.Seconds(), EnergyJ: others.Energy.Joules(), WaitTimeS: wait,
		SavingPercent: 100 * others.Saving.Float(), Reason: why, Feasible: others.Feasible, Note: others.Note,
	}
	active := j.answer()
	j.Due, j.Recent = false, nil
	j.publish(KindPlan, j.first(), body, why)
	j.PlanVersion, j.Active = j.Version, active
	planned := wait + j.besides()
	percent, window := cmp.Or(j.Spec.GuardrailPercent, j.Defaults.GuardrailPercent), cmp.Or(j.Spec.GuardrailWindow, j.Defaults.GuardrailWindow)
	j.Guardrail = watch.NewGuardrail(planned, percent, window)
}

func (j *Job) expect(p *plan.Plan) {
	gpus := float64(j.gpus())
	for _, ops := range p.Ranks {
		for _, op := range ops {
			if j.expected(int(op.Stage), op.Instruction, int(op.Knobs.ClockMHz)) == nil {
				j.Expected = append(j.Expected, Expected{
					Stage: int(op.Stage), Instruction: op.Instruction, MHz: int(op.Knobs.ClockMHz),
					TimeS: op.Time.Seconds(), EnergyJ: op.Energy.Joules() / gpus,
				})
			}
		}
	}
}

// request returns what the goal asks of a plan.
func (j *Job) request() plan.Request {
	g := j.Goal
	switch {
	case g.Slowdown != 0:
		return plan.Request{Goal: plan.Slowdown, Factor: ratio(g.Slowdown)}
	case g.TimeS != 0:
		// What is too little to be written counts as the least there is: no plan can be as fast.
		if t, err := unit.ParseTime(strconv.FormatFloat(g.TimeS, 'f', 9, 64)); err == nil {
			return plan.Request{Goal: plan.WithinTime, Time: max(t, unit.Nanosecond)}
		}
	case g.PowerW != 0:
		if p, err := unit.ParsePower(strconv.FormatFloat(g.PowerW, 'f', 6, 64)); err == nil {
			return plan.Request{Goal: plan.AveragePower, Power: max(p, unit.Microwatt)}
		}
	case g.LeastEnergy:
		return plan.Request{Goal: plan.LeastEnergy}
	}
	return plan.Request{Goal: plan.Fastest}
}

// floor4 rounds down to four digits, so that what is nearly equal has one plan.
func floor4(v float64) float64 { return math.Floor(v*1e4) / 1e4 }

func ratio(v float64) unit.Ratio { return unit.Ratio(math.Round(v * float64(unit.One))) }

// slowedTime returns the iteration time of a pipeline that runs plan p while the ops of one rank take slowdown times
// as long, in s: its longest path.
func (j *Job) slowedTime(p *plan.Plan, rank int, slowdown float64) float64 {
	o, err := j.Order()
	if err != nil {
		return 0
	}
	g, err := o.Graph()
	if err != nil {
		return 0
	}
	times := make([]unit.Time, 0, o.Ops())
	for r, ops := range p.Ranks {
		for _, op := range ops {
			t := op.Time
			if r == rank {
				t = unit.Time(math.Round(float64(t) * slowdown))
			}
			times = append(times, t)
		}
	}
	if len(times) != o.Ops() {
		return 0
	}
	start := make([]unit.Time, o.Ops())
	return g.Starts(start, func(op int32) unit.Time { return times[op] }).Seconds()
}

// Better tells that a better plan than one in force can be had: the next Deploy publishes it.
func (j *Job) Better() {
	if j.State == api.Running && j.Measuring == nil && j.Kind == KindPlan {
		j.Active, j.Due = "", true
	}
}

// Likely returns the plans worth making ahead of time: the one that most pipelines run by now, and those for stragglers to
// come.
func (j *Job) Likely() []Want {
	wants := []Want{j.Wanted()}
	if j.Spec.DP > 1 {
		for _, factor := range []float64{1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5} {
			wants = append(wants, j.waiting(factor))
		}
	}
	return wants
}

// Wanted is the plan that most pipelines run by now.
func (j *Job) Wanted() Want {
	if j.Plan == nil || j.Landmarks == nil || j.Factor < 1 {
		return j.want(j.request())
	}
	return j.waiting(j.Factor)
}

// waiting is the plan of a pipeline that waits for one that takes factor times the least time.
func (j *Job) waiting(factor float64) Want {
	return j.want(plan.Request{Goal: plan.Straggler, Factor: ratio(factor), Effort: round.Fast})
}

// want is a plan by the job's frontier, with clocks kept for as long as its GPUs are to keep them.
func (j *Job) want(r plan.Request) Want {
	r.Hold = j.hold()
	return Want{j.Frontier, r}
}
