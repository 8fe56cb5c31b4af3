package plan

import (
	"fmt"

	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// Goal is what a plan is for.
type Goal uint8

// The goals. Each names the fields of [Request] that it reads.
const (
	// Fastest takes the least iteration time there is.
	Fastest Goal = iota
	// WithinTime uses the least total energy with an iteration of at most
	// Request.Time: the plan of LeastEnergy if that is faster still.
	WithinTime
	// Slowdown is WithinTime for Request.Factor times the least iteration time.
	Slowdown
	// Straggler has the least Σe' with an iteration of at most Request.Factor
	// times the least time: the pipeline waits for a slower one anyway, so only
	// what it uses beyond waiting counts.
	Straggler
	// AveragePower is the fastest plan that draws at most Request.Power on
	// average over its iteration, all GPUs of the pipeline together.
	AveragePower
	// LeastEnergy uses the least total energy, whatever its time.
	LeastEnergy
)

var goalNames = [...]string{"fastest", "time", "slowdown", "straggler", "power", "min-energy"}

// String returns the goal's name as files spell it.
func (g Goal) String() string {
	if int(g) < len(goalNames) {
		return goalNames[g]
	}
	return fmt.Sprintf("Goal(%d)", uint8(g))
}

// Request is a wish.
type Request struct {
	Goal   Goal
	Time   unit.Time
	Factor Ratio
	Power  unit.Power
	// Margin is by how much the ops that the plan slows down may take longer
	// than measured without making the iteration longer than planned.
	Margin Ratio
	Effort round.Effort
	// Hold is how long a GPU keeps a clock at least, from the start of an op to the start of the next one with another
	// clock: longer than a switch takes. 0: any op may have a clock of its own. The plan keeps the time that it would have
	// without.
	Hold unit.Time
}

// HoldFor returns how long to hold clocks on GPUs whose switches take up to latency: 1.3 times that, so that a request is
// never followed by another before it is in effect, and 10 ms in any case, as calls of the driver share a lock.
func HoldFor(latency unit.Time) unit.Time {
	v, _ := unit.Scale(min(max(latency, 0), unit.MaxMakespan/2), 13*One/10, unit.Up)
	return max(v, 10*unit.Millisecond)
}

// maxRatio bounds factors and margins, so that no product overflows.
const maxRatio = 1000 * One

// Error is a request that no plan can answer, as a straggler that is faster than
// the fastest plan.
type Error struct {
	// Field is the name of what was asked, as files spell it: a goal, "margin" or
	// "effort".
	Field string
	// Value is what was asked.
	Value string
	// Reason says what is wrong with it and what is expected.
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Field, e.Value, e.Reason)
}

// Check returns an *Error where the request makes no sense for any job.
func (r Request) Check() error {
	switch r.Goal {
	case Fastest, LeastEnergy:
	case WithinTime:
		if r.Time <= 0 || r.Time > unit.MaxMakespan {
			return &Error{"time", r.Time.String(), fmt.Sprintf("expected a time over 0s and up to %v", unit.MaxMakespan)}
		}
	case Slowdown, Straggler:
		if r.Factor < One {
			return &Error{r.Goal.String(), r.Factor.String(), "expected a factor of at least 1: " +
				"it multiplies the least iteration time, and nothing is faster than that"}
		}
		if r.Factor > maxRatio {
			return &Error{r.Goal.String(), r.Factor.String(), fmt.Sprintf("expected a factor of at most %v", maxRatio)}
		}
	case AveragePower:
		if r.Power <= 0 || r.Power > unit.MaxPower {
			return &Error{"power", r.Power.String(), fmt.Sprintf("expected a power over 0W and up to %v", unit.MaxPower)}
		}
	default:
		return fmt.Errorf("there is no goal %v", r.Goal)
	}
	if r.Hold < 0 || r.Hold > unit.MaxMakespan {
		return &Error{"hold", r.Hold.String(), fmt.Sprintf("expected 0s to %v", unit.MaxMakespan)}
	}
	if r.Margin < 0 || r.Margin > One {
		return &Error{"margin", r.Margin.Percent(), "expected 0% to 100%"}
	}
	if r.Margin > 0 && r.Effort == round.Fast {
		return &Error{"effort", r.Effort.String(), "takes a point of the file as it is, which has no margin; normal and best can have one"}
	}
	return nil
}

// Ratio is a factor or a share.
type Ratio = unit.Ratio

// One is the ratio 1.
const One = unit.One

// ParseRatio is unit.ParseRatio.
func ParseRatio(s string) (Ratio, error) { return unit.ParseRatio(s) }

// times returns r·t, rounded down so that nothing is later than asked.
func times(r Ratio, t unit.Time) unit.Time {
	v, ok := unit.Scale(t, r, unit.Down)
	if !ok {
		return unit.MaxMakespan
	}
	return min(v, unit.MaxMakespan)
}
