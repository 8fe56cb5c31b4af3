package frontierfile

import (
	"fmt"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// Format names the format and its version.
const Format = "perseus-frontier/1"

// Nanojoules is the energy of a whole iteration, rounded to a nanojoule. In JSON
// it is a decimal of joules.
type Nanojoules int64

// Joules returns e in joules, for display and measuring only.
func (e Nanojoules) Joules() float64 { return float64(e) / 1e9 }

// InNanojoules returns e rounded. Sums of ops' energies are far within its range,
// see dag.NewProblem; what is beyond comes out as 0.
func InNanojoules(e unit.Energy128, r unit.Rounding) Nanojoules {
	v, _ := e.Nanojoules(r)
	return Nanojoules(v)
}

// ShareOf returns e/whole to the nearest part per thousand million; 0 where whole
// is not positive.
func (e Nanojoules) ShareOf(whole Nanojoules) Ratio {
	if whole <= 0 {
		return 0
	}
	v, _ := unit.Product(unit.Power(e), unit.Time(unit.One)).DivInt(int64(whole), unit.Nearest)
	return Ratio(v)
}

// AppendDecimal appends joules, as JSON and CSV have them.
func (e Nanojoules) AppendDecimal(b []byte) []byte { return unit.AppendDecimal(b, int64(e), 9) }

// String returns the exact decimal with its unit, as in "6160.4J".
func (e Nanojoules) String() string { return string(e.AppendDecimal(nil)) + "J" }

// MarshalJSON writes joules as an exact decimal number.
func (e Nanojoules) MarshalJSON() ([]byte, error) { return e.AppendDecimal(nil), nil }

// Ratio is a share or a factor.
type Ratio = unit.Ratio

// Header says what a frontier was computed from, and its landmarks.
type Header struct {
	// Schedule is the pipeline schedule's name. For "gpipe" and "1f1b" the order
	// follows from the sizes; for all others Order holds it.
	Schedule string
	// Ranks is the number of pipeline ranks, Chunks the most stages that a rank
	// has, and Microbatches that of microbatches in an iteration.
	Ranks, Chunks, Microbatches int
	// Group is the group of an interleaved schedule; 0 for all others.
	Group int
	// Stages is the number of stages of the model, all chunks together.
	Stages int
	// GPUsPerRank is how many GPUs run each op together. The job has
	// Ranks × GPUsPerRank GPUs.
	GPUsPerRank int
	// Ops and Arcs are the sizes of the graph: each point has as many choices
	// and flows.
	Ops, Arcs int
	// BlockingPower is what the GPUs of each rank draw together while they wait.
	BlockingPower []unit.Power
	// Profile names the measurements.
	Profile Profile
	Terms
	Landmarks
	// LineGap is 0 for the whole frontier, exact between its points. For chosen
	// points it is how far the straight line between two neighbours may lie above
	// the true frontier, as a fraction.
	LineGap Ratio
	// Quantum is 0 where flows are those of the problem itself. With chosen points
	// they can be those of a coarser one, in which slopes are multiples of it.
	Quantum unit.Power
	// Curves is the option table, sorted by their keys.
	Curves []Curve
	// Order is the order of actions, rank by rank, written as in "0F0"; nil for a
	// schedule that its name and the sizes describe, and for a graph.
	Order [][]string
}

// Profile says which measurements a frontier rests on and how they were read.
type Profile struct {
	// SHA256 is the hash of the profile's bytes, uncompressed, as 64 hex digits.
	SHA256 string
	// TimeUnit, EnergyUnit and FrequencyUnit are the units of the columns: "s",
	// "J" and "MHz" where nothing else was said.
	TimeUnit, EnergyUnit, FrequencyUnit string
	// SkippedRows is the number of bad rows that were left out on request; 0
	// means that the profile is good as it is.
	SkippedRows int
}

// Landmarks are the times and energies by which a frontier is known.
type Landmarks struct {
	// TMin is the makespan of the fastest options, TMax that of the options of
	// least effective energy.
	TMin, TMax unit.Time
	// LeastEnergyTime is where the relaxed total energy is least.
	LeastEnergyTime unit.Time
	// MaxClockTime and MaxClockEnergy are the cost of all ops at their top
	// clocks: the baseline of savings.
	MaxClockTime   unit.Time
	MaxClockEnergy Nanojoules
}

// Curve holds the options of one instruction of one stage on GPUs that draw
// BlockingPower together while they wait.
type Curve struct {
	Stage         int
	Instruction   string
	BlockingPower unit.Power
	// SecondStage is the stage of the backward of an overlapped pair, 0 for all else.
	SecondStage int
	// CapMHz is the highest clock that the options may have; 0 for no limit.
	CapMHz int32
	// Factors are those of the op's microbatch or its own; 0 stands for One.
	Factors Factors
	// Options is the Pareto front, slowest first: a choice is an index in it.
	// Effective energies are computed, not written.
	Options []dag.Option
	// Top is the option with the highest knobs, on the front or not.
	Top dag.Option
}

// Point is a schedule on or near the frontier with the proof of how near.
type Point struct {
	// Time is the schedule's makespan and RelaxedTime the time asked of it.
	Time, RelaxedTime unit.Time
	// Energy is all that the GPUs use in an iteration of Time, Effective Σe';
	// to the nearest nanojoule.
	Energy, Effective Nanojoules
	// Bound is an energy below which no schedule of makespan Time can stay,
	// rounded down.
	Bound Nanojoules
	// Gap is Energy/Bound − 1.
	Gap Ratio
	// Price is the value of Flow: what the next nanosecond costs on the way
	// from the next slower point to this one.
	Price unit.Power
	// Choice gives each op's option as an index in its curve. Flow gives each
	// arc's flow on the segment from this point to the next slower one; it is
	// zero at the slowest point. Both are nil until loaded.
	Choice []int32
	Flow   []unit.Power
}

// Curve returns the index in h.Curves of the first entry of an instruction of a
// stage on GPUs that wait at the power blocking, or −1.
func (h *Header) Curve(stage int, instruction string, blocking unit.Power) int {
	for i := range h.Curves {
		c := &h.Curves[i]
		if c.Stage == stage && c.Instruction == instruction && c.BlockingPower == blocking {
			return i
		}
	}
	return -1
}

// File is a frontier: a header and its points, fastest first. It is immutable.
type File struct {
	Header Header
	Points []Point

	encoded []encoded
}

// encoded is the JSON text of a point's knobs and flow, as differences to the
// point before it, or to the slowest options and no flow.
type encoded struct{ knobs, flow []byte }

// SyntaxError reports text that is not a frontier file.
type SyntaxError struct {
	// Name is the file's name; Line and Column count from 1.
	Name         string
	Line, Column int
	// Field is the path of what is wrong, as in "points[3].time_s".
	Field string
	// Problem says what was found and what is expected.
	Problem string
}

func (e *SyntaxError) Error() string {
	at := fmt.Sprintf("%s:%d:%d: ", e.Name, e.Line, e.Column)
	if e.Field != "" {
		at += e.Field + ": "
	}
	return at + e.Problem
}

// ValueError reports a value that cannot be in a text that is well written: a
// time below zero, a number with more decimals than its unit has, an op or arc
// that there is not, an option before the first, a negative flow.
type ValueError struct {
	// Name, Line and Column say where, as in SyntaxError; empty where the value
	// came out of a point's differences.
	Name         string
	Line, Column int
	// Point is the point's index, from 0, the fastest; −1 in the header.
	Point int
	// Field is the path of what is wrong, within the point where it is one.
	Field   string
	Problem string
}

func (e *ValueError) Error() string {
	at := ""
	if e.Name != "" {
		at = fmt.Sprintf("%s:%d:%d: ", e.Name, e.Line, e.Column)
	}
	if e.Point >= 0 {
		at += fmt.Sprintf("points[%d].", e.Point)
	}
	return at + e.Field + ": " + e.Problem
}

// VersionError reports a file of another format or version.
type VersionError struct {
	Name, Found string
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: format is %q; this version of perseus reads %q", e.Name, e.Found, Format)
}
