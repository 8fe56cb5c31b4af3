package plan

import (
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// Format names the JSON form of a plan and its version.
const Format = "perseus-plan/1"

// Plan is an energy schedule with what was asked and what it costs. Energies are
// those of one pipeline, all its GPUs together, over one iteration.
type Plan struct {
	// Request is what was asked.
	Request Request
	// Feasible is false where no plan does what was asked: this is the nearest.
	Feasible bool
	// Note says in a sentence how the plan differs from what a reader of the
	// request might expect; empty where it does not.
	Note string
	// Point is the index of the frontier's point that this plan is, or −1 where
	// the plan was made anew.
	Point int

	// RelaxedTime is the time that the request came down to. The plan's own
	// Time is the same or a little less; Bound is an energy below which no
	// schedule of exactly Time can stay, and Gap is Energy/Bound − 1.
	RelaxedTime unit.Time
	Time        unit.Time
	Energy      frontierfile.Nanojoules
	Effective   frontierfile.Nanojoules
	Bound       frontierfile.Nanojoules
	Gap         frontierfile.Ratio
	// Price is what the next unit of time less would cost: −dΣe'/dT of the
	// relaxed frontier at RelaxedTime, on its slower side.
	Price unit.Power
	// AveragePower is Energy over Time, rounded up.
	AveragePower unit.Power

	// WaitTime is how long an iteration lasts: Time, or the straggler's time
	// where that is later, and WaitEnergy is the energy used in it.
	WaitTime   unit.Time
	WaitEnergy frontierfile.Nanojoules
	// BaselineTime and BaselineEnergy are the same with all ops at their top
	// clock, waiting for the straggler as well. Saving is
	// 1 − WaitEnergy/BaselineEnergy.
	BaselineTime   unit.Time
	BaselineEnergy frontierfile.Nanojoules
	Saving         frontierfile.Ratio

	// Schedule, Microbatches and ProfileSHA256 are those of the frontier.
	Schedule      string
	Microbatches  int
	ProfileSHA256 string
	// Parallel says which GPUs the ranks are; nil where the frontier does not.
	Parallel *frontierfile.Parallel
	// Ranks holds each rank's ops in execution order. Ops that occupy no GPU, such
	// as transfers, have no setting and are not in it.
	Ranks [][]Op
}

// Op is one op of a plan.
type Op struct {
	// Stage and Microbatch are the global stage and the microbatch, from 0. An
	// op that runs a forward and a backward together has those of its forward.
	Stage, Microbatch int32
	// Instruction is the name under which profiles know the op, as "forward", or
	// its own name in a job that is no pipeline.
	Instruction string
	// Knobs are the settings to run it with.
	Knobs dag.Knobs
	// Start is the earliest start in the iteration, Time and Energy are as
	// measured at Knobs.
	Start, Time unit.Time
	Energy      unit.Energy
}
