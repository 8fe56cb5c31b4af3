// Package control is the life of one training job as the control plane steers it: what a registration, a report, a
// straggler or a wish changes, which schedule follows, and from which iteration on.
//
// It is pure: values in, values out. A Job is saved as JSON and is the same after loading; what is to be done in the
// world (publish a schedule, compute a frontier, tell the operator) is collected as Effects and done by the caller, in
// the transaction that saves the job. Nothing here reads a clock: the caller says how far the ranks may have come.
package control

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/campaign"
	"github.com/perseus-energy/perseus/internal/watch"
	"github.com/perseus-energy/perseus/pipeline"
)

// Defaults are the server's, for what a job leaves open.
type Defaults struct {
	// ReportEvery is how many iterations a running rank passes between two reports.
	ReportEvery int
	// ProfilingBudget is the most extra time that profiling may cost, as a share of 1,000 iterations.
	ProfilingBudget float64
	// GuardrailPercent and GuardrailWindow say by how much, over how many iterations, a plan may be late.
	GuardrailPercent float64
	GuardrailWindow  int
}

// Standard returns the defaults of a server that was told nothing.
func Standard() Defaults {
	return Defaults{ReportEvery: 10, ProfilingBudget: 0.05, GuardrailPercent: 1, GuardrailWindow: 20}
}

// Job is all that is known of a job except its ranks. Its fields are its whole state, for JSON.
type Job struct {
	ID       string      `json:"id"`
	Spec     api.JobSpec `json:"spec"`
	Defaults Defaults    `json:"defaults"`
	State    api.State   `json:"state"`
	Reason   string      `json:"reason,omitempty"`
	// Before is the state that a paused or stale job goes back to.
	Before     api.State `json:"before,omitempty"`
	Generation int       `json:"generation"`
	// Missing is how many ranks of the generation have not registered.
	Missing int `json:"missing"`
	// Clocks are those on offer in each pipeline rank, from the highest down: what all of its GPUs have in common.
	Clocks [][]int `json:"clocks,omitempty"`
	GPU    string  `json:"gpu,omitempty"`

	// Version, From and Kind are of the newest schedule: From is its first iteration.
	Version int64  `json:"version"`
	From    int64  `json:"from"`
	Kind    Kind   `json:"kind,omitempty"`
	Why     string `json:"why,omitempty"`
	// Iteration is the newest that a rank reported in this generation; −1 before.
	Iteration int64 `json:"iteration"`
	// Heard is the newest iteration that each (pipeline, pipeline rank) reported, at pipeline·pp + rank.
	Heard     []int64 `json:"heard,omitempty"`
	Unplanned int64   `json:"unplanned,omitempty"`
	// HoldS is for how long a rank's GPU is to keep a clock at least: the largest that one reported, in s.
	HoldS float64 `json:"hold_s,omitempty"`
	// Base holds times of iterations at maximum clock, to tell what an iteration takes besides its pipeline.
	Base []float64 `json:"base,omitempty"`

	// Campaign and Detector are large and change apart from the rest, so they are saved apart: see Parts.
	Campaign *campaign.Campaign `json:"-"`
	Detector *watch.Detector    `json:"-"`
	// Last is the newest iteration that each rank reported: a report that comes again is passed over.
	Last  []int64 `json:"-"`
	Tried Tried   `json:"tried"`

	// Profile is the hash of the profile's CSV, BlockingPowerW what a GPU draws while it waits.
	Profile        string  `json:"profile,omitempty"`
	BlockingPowerW float64 `json:"blocking_power_w,omitempty"`
	// Inputs names what the frontier is computed from, Frontier is its hash once it is there.
	Inputs    string        `json:"inputs,omitempty"`
	Frontier  string        `json:"frontier,omitempty"`
	Landmarks *api.Frontier `json:"landmarks,omitempty"`
	Frontiers int           `json:"frontiers,omitempty"`

	// Due says that Deploy is to be called.
	Due        bool        `json:"due,omitempty"`
	Goal       api.Goal    `json:"goal"`
	Stragglers []Straggler `json:"stragglers,omitempty"`
	// Capped holds the frontiers under the clock ceilings in force, by capsKey.
	Capped map[string]Capped `json:"capped,omitempty"`
	Plan   *api.Plan         `json:"plan,omitempty"`
	// Recent holds the newest iteration times by the plan in force, in s.
	Recent    []float64        `json:"recent,omitempty"`
	Guardrail *watch.Guardrail `json:"guardrail,omitempty"`
	Expected  []Expected       `json:"expected,omitempty"`
	// PlanVersion is the newest version of kind plan; Active what it answers.
	PlanVersion int64  `json:"plan_version,omitempty"`
	Active      string `json:"active,omitempty"`
	// Factor is how many times the least time most pipelines take, waiting for a straggler; 0 without one.
	Factor     float64       `json:"factor,omitempty"`
	Redeployed bool          `json:"redeployed,omitempty"`
	Measuring  *Measuring    `json:"measuring,omitempty"`
	Measured   *api.Measured `json:"measured,omitempty"`

	campaignChanged, detectorChanged, lastChanged bool

	effects []Effect
	// places is where each rank is, if the caller has told.
	places []Place
	// ahead is how many iterations beyond Iteration the ranks may have come.
	ahead int64
}

// Kind is what a schedule is for.
type Kind string

// The kinds of schedules.
const (
	KindMax   Kind = "max"   // maximum clock
	KindTry   Kind = "try"   // a step of the campaign
	KindPlan  Kind = "plan"  // an energy schedule
	KindProof Kind = "proof" // maximum clock, as a block of a measurement
)

// Effect is something for the caller to do: one of Publish, Characterize, Profiled and Note.
type Effect any

// Publish is a new version of the schedule. Where Body is nil it is that of version Like again.
type Publish struct {
	Version, From, Like int64
	Reason              string
	Body                *Body
	ReportEvery         int
	State               api.State
}

// Characterize asks for the frontier of the job's profile: that of all pipelines, or of those under clock ceilings.
type Characterize struct {
	Caps []Cap `json:"caps,omitempty"`
}

// Profiled says that a campaign ended with this profile, as CSV. A Characterize follows.
type Profiled struct{ CSV []byte }

// Note is a line for the job's history.
type Note struct{ Kind, Text string }

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// CheckID returns an error unless id can name a job.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return refuse(422, "job-id", "job id %s: expected up to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", strconv.Quote(clip(id)))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func refuse(status int, code, format string, args ...any) error {
	return &api.Error{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// New returns a job that has just registered, or an *api.Error that says what its spec lacks.
func New(id string, spec api.JobSpec, d Defaults) (*Job, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	spec = Complete(spec)
	world := int64(spec.PP) * int64(spec.DP) * int64(spec.TP) * int64(spec.CP)
	switch {
	case spec.PP < 1 || spec.DP < 1 || spec.TP < 1 || spec.CP < 1 || spec.EP < 1 || spec.Microbatches < 1:
		return nil, refuse(422, "job-spec", "degrees and microbatches are at least 1")
	case world != int64(spec.WorldSize):
		return nil, refuse(422, "job-spec", "world_size %d is not pp × dp × tp × cp = %d", spec.WorldSize, world)
	case spec.WorldSize > 65536:
		return nil, refuse(422, "job-spec", "world_size %d: at most 65,536", spec.WorldSize)
	}
	j := &Job{
		ID: id, Spec: spec, Defaults: d, State: api.Registered, Generation: 1, Missing: spec.WorldSize, Iteration: -1,
		Reason: "waiting for all ranks to register", BlockingPowerW: spec.BlockingPowerW,
	}
	if _, err := j.Order(); err != nil {
		return nil, refuse(422, "job-spec", "%v", err)
	}
	j.note("state", "registered: %d ranks are expected", spec.WorldSize)
	return j, nil
}

// Complete fills in the degrees and the schedule that a spec leaves out.
func Complete(s api.JobSpec) api.JobSpec {
	s.DP, s.TP, s.CP, s.EP = cmp.Or(s.DP, 1), cmp.Or(s.TP, 1), cmp.Or(s.CP, 1), cmp.Or(s.EP, 1)
	s.Chunks = cmp.Or(s.Chunks, 1)
	if s.ScheduleCSV == "" {
		s.Schedule = cmp.Or(s.Schedule, "1f1b")
	}
	return s
}

// maxOps bounds the ops of a pipeline, as work that one request can cause.
const maxOps = 1 << 20

// Order returns the order of the job's pipeline. O(ops).
func (j *Job) Order() (*pipeline.Order, error) {
	s := &j.Spec
	if s.ScheduleCSV != "" {
		o, err := pipeline.ReadCSV(stringReader(s.ScheduleCSV), "schedule_csv")
		if err != nil {
			return nil, err
		}
		if len(o.Ranks) != s.PP {
			return nil, fmt.Errorf("schedule_csv has %d ranks, pp is %d", len(o.Ranks), s.PP)
		}
		return o, o.Check()
	}
	if 2*int64(s.PP)*int64(s.Microbatches)*int64(s.Chunks) > maxOps {
		return nil, fmt.Errorf("pp × microbatches × chunks makes more than %d ops", maxOps)
	}
	sched, err := pipeline.Find(s.Schedule)
	if err != nil {
		return nil, err
	}
	size := pipeline.Size{Ranks: s.PP, Microbatches: s.Microbatches}
	if s.Chunks > 1 {
		size.Chunks = s.Chunks
	}
	o, err := pipeline.Build(sched.Name, size)
	if err != nil {
		return nil, err
	}
	if o.ForwardOnly() != s.ForwardOnly && s.ForwardOnly {
		return nil, errors.New("forward_only: the schedule has backwards")
	}
	return o, nil
}

// gpus is how many GPUs run each op of a pipeline rank together.
func (j *Job) gpus() int { return j.Spec.TP * j.Spec.CP }

// Effects returns what is to be done since the last call, in order, and forgets it.
func (j *Job) Effects() []Effect {
	e := j.effects
	j.effects = nil
	return e
}

func (j *Job) note(kind, format string, args ...any) {
	j.effects = append(j.effects, Note{kind, fmt.Sprintf(format, args...)})
}

func (j *Job) enter(s api.State, reason string) {
	if j.State == s && j.Reason == reason {
		return
	}
	j.State, j.Reason = s, reason
	if reason == "" {
		j.note("state", "%s", s)
	} else {
		j.note("state", "%s: %s", s, reason)
	}
}

// Ended says whether nothing more is expected of the job.
func (j *Job) Ended() bool { return j.State == api.Finished || j.State == api.Failed }

// ReportEvery is how many iterations lie between two reports of a rank: 1 as long as each of them counts.
func (j *Job) ReportEvery() int {
	if j.State == api.Profiling || j.State == api.Characterizing || j.Measuring != nil || j.calibrating() {
		return 1
	}
	return max(1, cmp.Or(j.Spec.ReportEvery, j.Defaults.ReportEvery))
}

// Ahead tells how many iterations beyond the newest reported one the ranks may have come by now.
func (j *Job) Ahead(n int64) { j.ahead = max(0, n) }

// At tells where each rank is, before reports are given.
func (j *Job) At(places []Place) { j.places = places }

// first returns the first iteration that a schedule published now may hold for: beyond what ranks have begun, one
// more for it to reach them, and beyond the first iterations of all before.
func (j *Job) first() int64 {
	return max(j.Iteration+j.ahead+2, j.From+1)
}

func (j *Job) publish(kind Kind, from int64, body *Body, reason string) {
	j.Version++
	j.From, j.Kind, j.Why = max(from, j.From+1), kind, reason
	j.effects = append(j.effects, Publish{
		Version: j.Version, From: j.From, Reason: reason, Body: body, ReportEvery: j.ReportEvery(), State: j.State,
	})
}

// atMaximum sends all ranks back to maximum clock, unless they are there.
func (j *Job) atMaximum(reason string) {
	if j.Version > 0 && j.Missing == 0 {
		j.publish(KindMax, j.first(), maximum(j.Spec.PP), reason)
	}
	j.Guardrail, j.Expected, j.Plan, j.Measuring, j.Active = nil, nil, nil, nil, ""
}
