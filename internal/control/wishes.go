package control

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/watch"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// detected is the source of stragglers that the server saw itself.
const detected = "detected"

// Straggler is a slow GPU and where it is.
type Straggler struct {
	api.Straggler
	DP int `json:"dp"`
	PP int `json:"pp"`
	// Frontier is that of its pipeline under its clock ceiling, LeastTimeS its least time; empty until it is there.
	Frontier   string  `json:"frontier,omitempty"`
	LeastTimeS float64 `json:"least_time_s,omitempty"`
	// ObservedS is what the pipelines took in an iteration when the server saw the straggler, in s; 0 if unknown.
	ObservedS float64 `json:"observed_s,omitempty"`
}

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

// SetStraggler takes word of a slow GPU at a place, replacing what the same source said of it before. A slowdown of 1
// takes it back.
func (j *Job) SetStraggler(s api.Straggler, at Place, rank int) error {
	s.Rank = &rank
	s.Source = cmp.Or(s.Source, "operator")
	if s.Source == detected {
		return refuse(422, "straggler", "source %q is the server's own: leave it out, or name who says so", s.Source)
	}
	switch {
	case s.Slowdown == 0 && s.MaxFrequencyMHz == 0:
		return refuse(422, "straggler", "slowdown or max_frequency_mhz is missing")
	case s.Slowdown != 0 && s.MaxFrequencyMHz != 0:
		return refuse(422, "straggler", "slowdown and max_frequency_mhz exclude each other")
	case s.Slowdown != 0 && !(s.Slowdown >= 1):
		return refuse(422, "straggler", "slowdown %g: a straggler takes at least 1 times the least time", s.Slowdown)
	case s.UntilIteration != 0 && s.UntilIteration <= s.AtIteration:
		return refuse(422, "straggler", "until_iteration %d is not after at_iteration %d", s.UntilIteration, s.AtIteration)
	case j.Ended():
		return refuse(409, "job-state", "job %s is %s", j.ID, j.State)
	}
	j.setStraggler(Straggler{Straggler: s, DP: at.DP, PP: at.PP})
	if s.MaxFrequencyMHz > 0 {
		j.effects = append(j.effects, Characterize{Capped: true, Pipeline: at.DP, PP: at.PP, MHz: s.MaxFrequencyMHz})
	}
	j.replanIfActive()
	return nil
}

func (j *Job) replanIfActive() {
	if j.State == api.Running && j.Frontier != "" && j.Measuring == nil && j.activeChanged() {
		j.Due = true
	}
}

func (j *Job) setStraggler(s Straggler) {
	j.Stragglers = slices.DeleteFunc(j.Stragglers, func(t Straggler) bool {
		return *t.Rank == *s.Rank && t.Source == s.Source
	})
	if s.Slowdown == 1 {
		j.note("straggler", "rank %d is none any more (%s)", *s.Rank, s.Source)
		return
	}
	j.Stragglers = append(j.Stragglers, s)
	slices.SortFunc(j.Stragglers, func(a, b Straggler) int {
		return cmp.Or(cmp.Compare(*a.Rank, *b.Rank), cmp.Compare(a.Source, b.Source))
	})
	if s.MaxFrequencyMHz > 0 {
		j.note("straggler", "rank %d runs at %d MHz at most (%s)", *s.Rank, s.MaxFrequencyMHz, s.Source)
	} else {
		j.note("straggler", "rank %d is slower, %.4g times (%s)", *s.Rank, s.Slowdown, s.Source)
	}
}

func (j *Job) detected(c watch.Change, at Place) {
	rank := c.Rank
	before, observed := 1.0, 0.0
	for _, s := range j.Stragglers {
		if *s.Rank == rank && s.Source == detected {
			before, observed = s.Slowdown, s.ObservedS
		}
	}
	// All ranks wait for the slowest, so the iteration tells its time, as long as no other plan made for it is in force.
	// The least of them counts: what else may hold up an iteration makes it longer only.
	switch {
	case c.Slowdown < before:
		observed = 0
	case len(j.Recent) == 3 && len(j.Base) >= enough:
		observed = max(observed, slices.Min(j.Recent)-j.besides())
	}
	j.setStraggler(Straggler{Straggler: api.Straggler{Rank: &rank, Slowdown: c.Slowdown, Source: detected}, DP: at.DP, PP: at.PP, ObservedS: observed})
}

// CappedReady tells that the frontier of a pipeline under a clock ceiling is there.
func (j *Job) CappedReady(dp, pp, mhz int, hash string, leastTimeS float64) {
	for i := range j.Stragglers {
		if s := &j.Stragglers[i]; s.DP == dp && s.PP == pp && s.MaxFrequencyMHz == mhz && s.Frontier != hash {
			s.Frontier, s.LeastTimeS = hash, leastTimeS
		}
	}
	j.replanIfActive()
}

// SetGoal takes an operator's wish.
func (j *Job) SetGoal(g api.Goal) error {
	n := 0
	for _, set := range []bool{g.Slowdown != 0, g.TimeS != 0, g.PowerW != 0, g.LeastEnergy} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return refuse(422, "goal", "slowdown, time_s, power_w and least_energy exclude each other")
	case g.Slowdown != 0 && !(g.Slowdown >= 1 && g.Slowdown <= 10):
		return refuse(422, "goal", "slowdown %g is not in 1 … 10", g.Slowdown)
	case g.TimeS < 0 || g.PowerW < 0:
		return refuse(422, "goal", "time_s and power_w are not negative")
	case j.Ended():
		return refuse(409, "job-state", "job %s is %s", j.ID, j.State)
	}
	if j.Goal == g {
		return nil
	}
	j.Goal = g
	j.note("operator", "goal: %s", goalText(g))
	j.replanIfActive()
	return nil
}

func goalText(g api.Goal) string {
	switch {
	case g.Slowdown != 0:
		return fmt.Sprintf("%g times the least time", g.Slowdown)
	case g.TimeS != 0:
		return fmt.Sprintf("%g s an iteration", g.TimeS)
	case g.PowerW != 0:
		return fmt.Sprintf("%g W a pipeline", g.PowerW)
	case g.LeastEnergy:
		return "least energy"
	}
	return "fastest"
}

// active returns the stragglers that count in the iterations that a schedule published now would hold for.
func (j *Job) active() []Straggler {
	from := j.first()
	var out []Straggler
	for _, s := range j.Stragglers {
		if s.AtIteration <= from && (s.UntilIteration == 0 || s.UntilIteration > from) {
			out = append(out, s)
		}
	}
	return out
}

func (j *Job) answer() string {
	text := fmt.Sprint(j.Frontier, j.Goal, "/", j.hold())
	for _, s := range j.active() {
		text += fmt.Sprint("/", *s.Rank, s.Slowdown, s.MaxFrequencyMHz, s.Frontier, s.ObservedS)
	}
	return text
}

func (j *Job) activeChanged() bool { return j.Active != j.answer() }

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
	slow, own := 0.0, map[int]*plan.Plan{}
	var reason []string
	for _, s := range j.active() {
		t := s.Slowdown * least
		switch {
		case s.MaxFrequencyMHz > 0 && s.Frontier == "":
			continue
		case s.MaxFrequencyMHz > 0:
			w := Want{Frontier: s.Frontier, Request: fastest.Request}
			if own[s.DP] = plans(w); own[s.DP] == nil {
				return &w
			}
			t = s.LeastTimeS
		case s.Source == detected:
			t = j.slowedTime(f, s.PP, s.Slowdown)
			// A ceiling slows fast ops more than others: the mean of their ratios says too little then.
			t = max(t, min(s.ObservedS, 1.5*t))
		}
		if own[s.DP] == nil {
			own[s.DP] = f
		}
		slow = max(slow, t)
		reason = append(reason, fmt.Sprintf("rank %d", *s.Rank))
	}
	why := "plan: " + goalText(j.Goal)
	if len(own) > 0 {
		why = fmt.Sprintf("straggler %s: iterations take %.4g s", reason[0], slow)
	}
	others := p
	j.Factor = 0
	if slow > p.Time.Seconds() && len(own) < j.Spec.DP {
		factor := math.Floor(slow/least*1e4) / 1e4
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
	for _, dp := range sortedKeys(own) {
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

func sortedKeys[V any](m map[int]V) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// request returns what the goal asks of a plan.
func (j *Job) request() plan.Request {
	g := j.Goal
	switch {
	case g.Slowdown != 0:
		return plan.Request{Goal: plan.Slowdown, Factor: ratio(g.Slowdown)}
	case g.TimeS != 0:
		t, err := unit.ParseTime(strconv.FormatFloat(g.TimeS, 'f', 9, 64))
		if err == nil && t > 0 {
			return plan.Request{Goal: plan.WithinTime, Time: t}
		}
	case g.PowerW != 0:
		p, err := unit.ParsePower(strconv.FormatFloat(g.PowerW, 'f', 6, 64))
		if err == nil && p > 0 {
			return plan.Request{Goal: plan.AveragePower, Power: p}
		}
	case g.LeastEnergy:
		return plan.Request{Goal: plan.LeastEnergy}
	}
	return plan.Request{Goal: plan.Fastest}
}

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

// Better tells that a better plan than one in force can be had: the next Deploy publishes it.
func (j *Job) Better() {
	if j.State == api.Running && j.Measuring == nil && j.Kind == KindPlan {
		j.Active, j.Due = "", true
	}
}

// Warm takes a profile of an earlier job in place of a campaign; the job's own reports check it.
func (j *Job) Warm(hash string, blockingW float64) {
	j.Profile, j.BlockingPowerW = hash, blockingW
	j.Tried.Warm = true
	j.note("profile", "reused from an earlier job of the same model on the same GPUs")
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
