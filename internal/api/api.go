// Package api holds the messages of the control plane: what training jobs, agents and operators tell the server, and
// what it answers. The server's OpenAPI description is made from these types, and clients use the same ones. It holds
// no behaviour.
//
// Ranks are global ranks, iterations are counted from 0 within a generation, frequencies are SM clocks in MHz, and a
// frequency of 0 stands for the GPU's own choice: its top clock.
package api

import "time"

// JobIDPattern is the regular expression that the id of a job matches.
const JobIDPattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`

// State is where a job is in its life.
type State string

// The states. A job goes from the first to the last; Paused, Stale and Failed can be reached from any of those between.
const (
	// Registered: known, but ranks are missing.
	Registered State = "registered"
	// Profiling: all ranks are here and try clocks.
	Profiling State = "profiling"
	// Characterizing: the profile is complete and the frontier is being computed; ranks train at maximum clock.
	Characterizing State = "characterizing"
	// Running: ranks follow an energy schedule.
	Running State = "running"
	// Paused: ranks train at maximum clock until an operator resumes the job.
	Paused State = "paused"
	// Stale: ranks are missing or silent for longer than allowed.
	Stale State = "stale"
	// Finished: the job said that it ended.
	Finished State = "finished"
	// Failed: the job cannot be steered; Job.Reason says why. Its ranks train at maximum clock.
	Failed State = "failed"
)

// JobSpec is what a job says of itself when it registers.
type JobSpec struct {
	Name             string            `json:"name,omitempty" maxLength:"200" doc:"A name for people."`
	PP               int               `json:"pp" minimum:"1" maximum:"4096" doc:"Degree of pipeline parallelism."`
	DP               int               `json:"dp,omitempty" minimum:"1" maximum:"65536" default:"1" doc:"Degree of data parallelism."`
	TP               int               `json:"tp,omitempty" minimum:"1" maximum:"4096" default:"1" doc:"Degree of tensor parallelism."`
	CP               int               `json:"cp,omitempty" minimum:"1" maximum:"4096" default:"1" doc:"Degree of context parallelism."`
	EP               int               `json:"ep,omitempty" minimum:"1" maximum:"4096" default:"1" doc:"Degree of expert parallelism; experts share the GPUs of the other groups."`
	WorldSize        int               `json:"world_size" minimum:"1" maximum:"65536" doc:"Number of ranks: the product of pp, dp, tp and cp."`
	Schedule         string            `json:"schedule,omitempty" maxLength:"64" default:"1f1b" doc:"Name of the pipeline schedule, as 'perseus schedules' lists them."`
	ScheduleCSV      string            `json:"schedule_csv,omitempty" maxLength:"1048576" doc:"The pipeline's order of actions in PyTorch's schedule CSV, instead of a name."`
	Microbatches     int               `json:"microbatches" minimum:"1" maximum:"65536" doc:"Microbatches of one pipeline in one iteration."`
	Chunks           int               `json:"chunks,omitempty" minimum:"1" maximum:"64" default:"1" doc:"Model chunks of one rank, for interleaved schedules."`
	ForwardOnly      bool              `json:"forward_only,omitempty" doc:"Whether the iteration has no backward."`
	GPU              string            `json:"gpu,omitempty" maxLength:"200" doc:"GPU model, as the driver names it."`
	ModelKey         string            `json:"model_key,omitempty" maxLength:"200" doc:"What jobs with the same ops have in common: profiles are found again by it."`
	BlockingPowerW   float64           `json:"blocking_power_w,omitempty" minimum:"0" maximum:"10000" doc:"What one GPU draws while it waits, if known; measured otherwise."`
	ProfilingBudget  float64           `json:"profiling_budget,omitempty" minimum:"0" maximum:"1" doc:"Most extra time that profiling may cost, as a share of the first 1,000 iterations; 0 is the server's default."`
	Metadata         map[string]string `json:"metadata,omitempty" doc:"Anything else that is worth keeping."`
	ReportEvery      int               `json:"report_every,omitempty" minimum:"0" maximum:"100000" doc:"Iterations between two reports of a running rank; 0 is the server's default."`
	NoProfiling      bool              `json:"no_profiling,omitempty" doc:"Train at maximum clock until a profile is uploaded."`
	GuardrailPercent float64           `json:"guardrail_percent,omitempty" minimum:"0" maximum:"1000" doc:"How much slower than planned iterations may be; 0 is the server's default."`
	GuardrailWindow  int               `json:"guardrail_window,omitempty" minimum:"0" maximum:"100000" doc:"Over how many iterations; 0 is the server's default."`
}

// Job is a job as the server sees it.
type Job struct {
	ID         string    `json:"id"`
	State      State     `json:"state"`
	Reason     string    `json:"reason,omitempty" doc:"Why the job is in this state, where that needs a word."`
	Generation int       `json:"generation" doc:"Counts the times that the job's ranks started anew, from 1."`
	Spec       JobSpec   `json:"spec"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	// MissingRanks lists ranks that have not registered, at most 100 of them.
	MissingRanks      []int       `json:"missing_ranks,omitempty"`
	MissingRanksCount int         `json:"missing_ranks_count"`
	Version           int64       `json:"version" doc:"Version of the newest schedule; 0 before there is one."`
	Iteration         int64       `json:"iteration" doc:"Newest iteration that a rank has reported."`
	Profiling         *Profile    `json:"profiling,omitempty"`
	Frontier          *Frontier   `json:"frontier,omitempty"`
	Plan              *Plan       `json:"plan,omitempty"`
	Stragglers        []Straggler `json:"stragglers,omitempty"`
	Goal              Goal        `json:"goal"`
	Measurement       *Measured   `json:"measurement,omitempty"`
	UnplannedCount    int64       `json:"unplanned_iterations" doc:"Iterations whose ops differed from the plan and so ran at maximum clock."`
}

// Profile says how far profiling is.
type Profile struct {
	DoneFraction  float64  `json:"done_fraction"`
	Iterations    int64    `json:"iterations" doc:"Iterations spent on it."`
	IterationsMax int64    `json:"iterations_left_at_most"`
	ExtraTime     float64  `json:"extra_time_s" doc:"Time lost to it."`
	Warm          bool     `json:"warm" doc:"Whether it only checks a profile of an earlier job."`
	Notes         []string `json:"notes,omitempty" doc:"What could not be told apart, and how many samples more it needs."`
}

// Frontier is the frontier in short.
type Frontier struct {
	Hash             string  `json:"hash" doc:"Of everything that it was computed from."`
	Version          int     `json:"version" doc:"Counts the frontiers of this job, from 1."`
	Points           int     `json:"points"`
	MinTimeS         float64 `json:"t_min_s"`
	MaxTimeS         float64 `json:"t_max_s"`
	LeastEnergyTimeS float64 `json:"least_energy_time_s"`
	MaxClockTimeS    float64 `json:"max_clock_time_s"`
	MaxClockEnergyJ  float64 `json:"max_clock_energy_j"`
}

// Plan is the energy schedule in force, in short. Energies are those of one pipeline.
type Plan struct {
	TimeS         float64 `json:"time_s"`
	EnergyJ       float64 `json:"energy_j"`
	WaitTimeS     float64 `json:"wait_time_s" doc:"Iteration time with the straggler that is waited for."`
	SavingPercent float64 `json:"saving_percent" doc:"Against all ops at maximum clock, waiting for the same straggler."`
	Reason        string  `json:"reason"`
	Feasible      bool    `json:"feasible"`
	Note          string  `json:"note,omitempty"`
}

// Goal is what an operator wishes of a job. At most one of Slowdown, TimeS, PowerW and LeastEnergy is set; none means
// as fast as possible.
type Goal struct {
	Slowdown    float64 `json:"slowdown,omitempty" minimum:"0" maximum:"10" doc:"Iterations may take this many times the least time, from 1."`
	TimeS       float64 `json:"time_s,omitempty" minimum:"0" maximum:"86400" doc:"Iterations may take this long."`
	PowerW      float64 `json:"power_w,omitempty" minimum:"0" maximum:"100000000" doc:"Average power of one pipeline."`
	LeastEnergy bool    `json:"least_energy,omitempty"`
}

// Rank is one rank at its registration.
type Rank struct {
	Rank         int    `json:"rank" minimum:"0" maximum:"65535"`
	PP           int    `json:"pp_rank" minimum:"0" maximum:"4095"`
	DP           int    `json:"dp_rank,omitempty" minimum:"0" maximum:"65535"`
	TP           int    `json:"tp_rank,omitempty" minimum:"0" maximum:"4095"`
	CP           int    `json:"cp_rank,omitempty" minimum:"0" maximum:"4095"`
	EP           int    `json:"ep_rank,omitempty" minimum:"0" maximum:"4095"`
	GPU          string `json:"gpu_id,omitempty" maxLength:"128" doc:"UUID of its GPU."`
	GPUModel     string `json:"gpu_model,omitempty" maxLength:"200"`
	Session      string `json:"session,omitempty" maxLength:"128" doc:"Names the process that runs the rank: the same one again is a repeat, another one a restart."`
	FrequencyMHz []int  `json:"available_frequency_mhz,omitempty" maxItems:"1024" doc:"Clocks that the GPU offers, in any order."`
}

// RankRegistration registers the ranks of one node, or of as many as one likes.
type RankRegistration struct {
	// Generation 0 asks for the newest one. A rank that is already registered in it under another session starts a
	// new one; without sessions a complete generation does.
	Generation int    `json:"generation,omitempty" minimum:"0" doc:"The generation that these ranks belong to; 0: the newest. Ranks that restart name the one after."`
	Ranks      []Rank `json:"ranks" minItems:"1" maxItems:"65536"`
}

// RankRegistered answers a RankRegistration.
type RankRegistered struct {
	Generation   int `json:"generation"`
	MissingCount int `json:"missing_ranks_count"`
}

// Mode says how a rank chooses its clocks.
type Mode string

// The modes.
const (
	// MaxClock: no lock at all, or the top clock.
	MaxClock Mode = "max"
	// Uniform: one clock an instruction.
	Uniform Mode = "uniform"
	// Planned: one clock an op.
	Planned Mode = "plan"
)

// Schedules answers a rank, or a node, that asks what to do. For iterations before EffectiveIteration the version
// before it holds.
type Schedules struct {
	Generation         int            `json:"generation"`
	Version            int64          `json:"version"`
	EffectiveIteration int64          `json:"effective_iteration" doc:"First iteration that it holds for."`
	Reason             string         `json:"reason"`
	State              State          `json:"state"`
	ReportEvery        int            `json:"report_every" doc:"Report each so many iterations from now on; 1 in a campaign."`
	Ranks              []RankSchedule `json:"ranks" doc:"Those asked for whose schedule differs from the version that the request named."`
}

// RankSchedule is what one rank is to do. Slices of ops are parallel to each other, in execution order.
type RankSchedule struct {
	Rank int  `json:"rank"`
	Mode Mode `json:"mode" enum:"max,uniform,plan"`
	// Uniform holds a frequency for each instruction in mode uniform.
	Uniform      map[string]int `json:"frequency_mhz,omitempty"`
	Instructions []string       `json:"instructions,omitempty" doc:"Names that op_instruction points to."`
	Instruction  []int          `json:"op_instruction,omitempty"`
	Stage        []int          `json:"op_stage,omitempty"`
	Microbatch   []int          `json:"op_microbatch,omitempty"`
	FrequencyMHz []int          `json:"op_frequency_mhz,omitempty"`
	StartNs      []int64        `json:"op_start_ns,omitempty" doc:"Expected start within the iteration."`
	TimeNs       []int64        `json:"op_time_ns,omitempty" doc:"Expected duration."`
	IterationNs  int64          `json:"iteration_ns,omitempty" doc:"Expected duration of an iteration."`
	HoldNs       int64          `json:"hold_ns,omitempty" doc:"How long each clock is kept at least; 0: that was not planned for."`
}

// OpReport is what was measured of one instruction of one stage at one clock in the iterations of a report.
type OpReport struct {
	Stage        int       `json:"stage" minimum:"0" maximum:"65535"`
	Instruction  string    `json:"instruction" maxLength:"64" pattern:"^[a-z][a-z0-9_-]*$"`
	FrequencyMHz int       `json:"frequency_mhz" minimum:"0" maximum:"10000" doc:"The clock asked for."`
	AchievedMHz  int       `json:"achieved_mhz,omitempty" minimum:"0" maximum:"10000" doc:"The clock read back, if it was."`
	TimeS        []float64 `json:"time_s" maxItems:"65536"`
	EnergyJ      []float64 `json:"energy_j,omitempty" maxItems:"65536" doc:"Missing where the counter cannot tell."`
	Capped       bool      `json:"capped,omitempty" doc:"The GPU was held back by its power or temperature: kept out of profiles."`
}

// RankReport is what one rank measured over Iterations iterations that end with Iteration.
type RankReport struct {
	Rank       int        `json:"rank" minimum:"0" maximum:"65535"`
	Version    int64      `json:"version" minimum:"0" doc:"Version of the schedule that was in force."`
	Iteration  int64      `json:"iteration" minimum:"0" maximum:"1000000000000"`
	Iterations int        `json:"iterations,omitempty" minimum:"1" maximum:"1000000" default:"1"`
	TimeS      float64    `json:"time_s" minimum:"0" maximum:"86400" doc:"Mean time of an iteration."`
	EnergyJ    float64    `json:"energy_j,omitempty" minimum:"0" maximum:"1000000000" doc:"Mean energy of an iteration of this GPU, waiting included."`
	Unplanned  int        `json:"unplanned,omitempty" minimum:"0" maximum:"1000000" doc:"Iterations whose ops differed from the plan."`
	HoldS      float64    `json:"hold_s,omitempty" minimum:"0" maximum:"3600" doc:"How long the GPU is to keep a clock at least, by what switches take and cost there: plans are made for the largest of the job's."`
	Ops        []OpReport `json:"ops,omitempty" maxItems:"4096"`
}

// Reports carries the reports of all GPUs of a node.
type Reports struct {
	Generation int          `json:"generation" minimum:"1"`
	Ranks      []RankReport `json:"ranks" minItems:"1" maxItems:"4096"`
}

// Accepted answers what is durable now and will be acted on.
type Accepted struct {
	Version int64 `json:"version" doc:"Version of the newest schedule: ask for it if it is not yours."`
}

// Straggler is a slow GPU, expected or seen.
type Straggler struct {
	Rank     *int    `json:"rank,omitempty" minimum:"0" maximum:"65535" doc:"Global rank."`
	GPU      string  `json:"gpu_id,omitempty" maxLength:"128" doc:"UUID of the GPU, instead of a rank."`
	Slowdown float64 `json:"slowdown,omitempty" minimum:"0" maximum:"1000" doc:"How many times longer its pipeline's iteration takes than the least time; 1 takes back what was said before."`
	// MaxFrequencyMHz is the ceiling of a degraded GPU: its own pipeline is planned anew under it.
	MaxFrequencyMHz int    `json:"max_frequency_mhz,omitempty" minimum:"0" maximum:"10000" doc:"Clock ceiling of a degraded GPU, instead of a slowdown."`
	AtIteration     int64  `json:"at_iteration,omitempty" minimum:"0" maximum:"1000000000000" doc:"First iteration that it is expected in; 0: now."`
	UntilIteration  int64  `json:"until_iteration,omitempty" minimum:"0" maximum:"1000000000000" doc:"First iteration without it; 0: open."`
	Source          string `json:"source,omitempty" maxLength:"64" doc:"Who says so: operator, scheduler, agent, power; detected where the server saw it itself."`
}

// MeasureRequest asks for a proof on the job itself: blocks of iterations at the plan and at maximum clock in turn.
type MeasureRequest struct {
	Blocks     int `json:"blocks,omitempty" minimum:"8" maximum:"1000" default:"12" doc:"Blocks in all; rounded up to a multiple of 4."`
	Iterations int `json:"iterations,omitempty" minimum:"5" maximum:"100000" default:"20" doc:"Iterations of a block."`
}

// Measured is what such a proof found, with 95 % intervals.
type Measured struct {
	Done            bool    `json:"done"`
	BlocksDone      int     `json:"blocks_done"`
	Blocks          int     `json:"blocks"`
	SavingPercent   float64 `json:"saving_percent"`
	SavingLow       float64 `json:"saving_low_percent"`
	SavingHigh      float64 `json:"saving_high_percent"`
	SlowdownPercent float64 `json:"slowdown_percent"`
	SlowdownLow     float64 `json:"slowdown_low_percent"`
	SlowdownHigh    float64 `json:"slowdown_high_percent"`
}

// JobList is a page of jobs, by id.
type JobList struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty" doc:"Ask for the next page with after=next; empty on the last one."`
}

// Event is one line of a job's history.
type Event struct {
	ID   int64     `json:"id"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind" doc:"state, schedule, straggler, guardrail, drift, measure, operator"`
	Text string    `json:"text"`
}

// Error is a refusal: what the server answers as problem+json.
type Error struct {
	Status int    // of HTTP
	Code   string // stable, for programs: "older-generation", "unknown-job"
	Detail string // for people: what was found, what is expected
}

func (e *Error) Error() string { return e.Detail }

// ScheduleQuery says which schedules are asked for.
type ScheduleQuery struct {
	Ranks      []int // none: all
	Generation int   // 0: the newest
	Version    int64 // the newest one that is known; 0: none
	// Wait is how long to wait for a newer version, at most 10 minutes; 0: not at all.
	Wait time.Duration
}
