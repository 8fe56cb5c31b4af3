package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// MeasuredRun is what was measured of one plan on real GPUs.
type MeasuredRun struct {
	// Workload, GPU and Schedule name it; Schedule is 1f1b where the file does not
	// say. Plan is the plan's number, Line where it stands in the file.
	Workload, GPU, Schedule string
	Plan, Line              int
	Ranks, Microbatches     int
	// Forward and Backward hold the time of each op by stage and microbatch.
	Forward, Backward [][]unit.Time
	// Iteration and Energy hold what repeated iterations took.
	Iteration []unit.Time
	Energy    []unit.Energy
}

// Measured returns the mean of the iteration times, to the nearest nanosecond.
func (r *MeasuredRun) Measured() unit.Time {
	sum := unit.Time(0)
	for _, t := range r.Iteration {
		sum += t
	}
	n := unit.Time(len(r.Iteration))
	return (sum + n/2) / n
}

// RunError is what is wrong with a file of measured runs.
type RunError struct {
	Name string
	// Line counts from 1; 0 means the whole file. Field is a path in its object.
	Line           int
	Field, Problem string
}

func (e *RunError) Error() string {
	at := e.Name
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.Name, e.Line)
	}
	if e.Field != "" {
		at += ": " + e.Field
	}
	return at + ": " + e.Problem
}

// Bounds of a file of runs.
const (
	maxRunBytes = 64 << 20 // a line
	maxRuns     = 1 << 16
)

// runLine is a line of the file. Fields that it does not name are ignored.
type runLine struct {
	Workload     string          `json:"workload"`
	GPU          string          `json:"gpu"`
	Schedule     string          `json:"schedule"`
	Ranks        int             `json:"pp"`
	Microbatches int             `json:"microbatches"`
	Plan         *int            `json:"plan"`
	Iteration    oneOrMore       `json:"iter_time_s"`
	Energy       oneOrMore       `json:"iter_energy_j"`
	Forward      [][]json.Number `json:"forward_s"`
	Backward     [][]json.Number `json:"backward_s"`
}

// oneOrMore reads a number or a list of them.
type oneOrMore []json.Number

func (n *oneOrMore) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]json.Number)(n))
	}
	*n = make(oneOrMore, 1)
	return json.Unmarshal(b, &(*n)[0])
}

// ReadRuns returns the measured runs in r: JSON, an object a line, with the fields
// plan, iter_time_s (one or a list), forward_s and backward_s (a list of times for
// each stage), and perhaps pp, microbatches, schedule, workload, gpu and
// iter_energy_j. Others are ignored. All runs must be of the same pipeline. It
// fails with a *RunError where a line is not so.
func ReadRuns(r io.Reader, name string) ([]MeasuredRun, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRunBytes)
	var runs []MeasuredRun
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		if len(runs) == maxRuns {
			return nil, &RunError{name, n, "", fmt.Sprintf("more than %d runs", maxRuns)}
		}
		var l runLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, &RunError{name, n, fieldOf(err), err.Error()}
		}
		run, bad := l.run(n)
		if bad == nil && len(runs) > 0 {
			bad = run.like(&runs[0])
		}
		if bad != nil {
			bad.Name, bad.Line = name, n
			return nil, bad
		}
		runs = append(runs, *run)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &RunError{name, 0, "", fmt.Sprintf("a line is longer than %d MiB", maxRunBytes>>20)}
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(runs) == 0 {
		return nil, &RunError{name, 0, "", "has no run: expected JSON, an object a line"}
	}
	return runs, nil
}

func fieldOf(err error) string {
	var bad *json.UnmarshalTypeError
	if errors.As(err, &bad) {
		return bad.Field
	}
	return ""
}

// run checks a line and makes integers of its numbers.
func (l *runLine) run(line int) (*MeasuredRun, *RunError) {
	r := &MeasuredRun{Workload: l.Workload, GPU: l.GPU, Schedule: l.Schedule, Line: line, Plan: line - 1, Ranks: l.Ranks, Microbatches: l.Microbatches}
	if l.Plan != nil {
		r.Plan = *l.Plan
	}
	if r.Schedule == "" {
		r.Schedule = "1f1b"
	}
	if r.Ranks == 0 {
		r.Ranks = len(l.Forward)
	}
	if r.Microbatches == 0 && len(l.Forward) > 0 {
		r.Microbatches = len(l.Forward[0])
	}
	var bad *RunError
	if r.Iteration, bad = durations("iter_time_s", l.Iteration); bad != nil {
		return nil, bad
	}
	if len(r.Iteration) == 0 {
		return nil, &RunError{Field: "iter_time_s", Problem: "is missing: the measured time of an iteration, or a list of them"}
	}
	for i, n := range l.Energy {
		e, _, err := unit.ParseDecimal(n.String(), 12, unit.Nearest)
		if err != nil || e < 0 {
			return nil, &RunError{Field: fmt.Sprintf("iter_energy_j[%d]", i), Problem: fmt.Sprintf("%q: expected joules, 0 or more", n)}
		}
		r.Energy = append(r.Energy, unit.Energy(e))
	}
	for _, part := range []struct {
		name string
		have [][]json.Number
		into *[][]unit.Time
	}{{"forward_s", l.Forward, &r.Forward}, {"backward_s", l.Backward, &r.Backward}} {
		if len(part.have) != r.Ranks || r.Ranks == 0 {
			return nil, &RunError{Field: part.name, Problem: fmt.Sprintf("has %d stages where %d are expected (pp)", len(part.have), r.Ranks)}
		}
		for s, times := range part.have {
			field := fmt.Sprintf("%s[%d]", part.name, s)
			if len(times) != r.Microbatches || len(times) == 0 {
				return nil, &RunError{Field: field, Problem: fmt.Sprintf("has %d times where %d are expected (microbatches)", len(times), r.Microbatches)}
			}
			v, bad := durations(field, times)
			if bad != nil {
				return nil, bad
			}
			*part.into = append(*part.into, v)
		}
	}
	return r, nil
}

func durations(field string, numbers []json.Number) ([]unit.Time, *RunError) {
	times := make([]unit.Time, len(numbers))
	for i, n := range numbers {
		v, _, err := unit.ParseDecimal(n.String(), 9, unit.Nearest)
		t := unit.Time(v)
		if err == nil && (t <= 0 || t > unit.MaxOpTime) {
			err = fmt.Errorf("it is outside 0 … %v", unit.MaxOpTime)
		}
		if err != nil {
			return nil, &RunError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: fmt.Sprintf("%q: expected seconds: %v", n, err)}
		}
		times[i] = t
	}
	return times, nil
}

// like returns an error where the run is of another pipeline than the first one.
func (r *MeasuredRun) like(first *MeasuredRun) *RunError {
	for _, d := range []struct {
		field      string
		have, want any
	}{
		{"pp", r.Ranks, first.Ranks},
		{"microbatches", r.Microbatches, first.Microbatches},
		{"schedule", r.Schedule, first.Schedule},
		{"workload", r.Workload, first.Workload},
		{"gpu", r.GPU, first.GPU},
	} {
		if d.have != d.want {
			return &RunError{Field: d.field, Problem: fmt.Sprintf("%v, but line %d has %v: one file is of one pipeline", d.have, first.Line, d.want)}
		}
	}
	return nil
}

// Prediction is one plan's iteration time, as predicted and as measured.
type Prediction struct {
	Plan int
	// Replayed is the time of the replay with the measured op times, Predicted the
	// same and the overhead, Measured the mean of what was measured.
	Replayed, Predicted, Measured unit.Time
	// Energy is the mean of the measured energies, 0 without any.
	Energy unit.Energy
}

// Calibration is a fit of the replay to measured runs.
type Calibration struct {
	First MeasuredRun // without its op times
	// Plan is the plan that Overhead was fitted on: 0, or the file's first one.
	Plan int
	// Overhead is what an iteration takes beyond its ops: optimizer, data, and the
	// transfers that nothing hides. It is measured − replayed of that plan alone.
	Overhead unit.Time
	Plans    []Prediction
}

// Calibrate replays each run with its measured op times, fits the constant
// overhead on plan 0, or the first one where there is no plan 0, and predicts all
// others with it. It fails where there is no such pipeline. O(ops of all runs).
func Calibrate(runs []MeasuredRun) (*Calibration, error) {
	if len(runs) == 0 {
		return nil, errors.New("no runs to calibrate with")
	}
	first := &runs[0]
	order, err := pipeline.Build(first.Schedule, pipeline.Size{Ranks: first.Ranks, Microbatches: first.Microbatches})
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", first.Line, err)
	}
	if order.Stages != first.Ranks {
		return nil, fmt.Errorf("line %d: schedule %s has %d stages on %d ranks; runs have one a rank", first.Line, order.Schedule, order.Stages, first.Ranks)
	}
	graph, err := order.Graph()
	if err != nil {
		return nil, err
	}
	var actions []pipeline.Action
	for _, a := range order.All() {
		if a.Kind != pipeline.Forward && a.Kind != pipeline.Backward {
			return nil, fmt.Errorf("line %d: schedule %s has ops of other kinds than forward and backward", first.Line, order.Schedule)
		}
		actions = append(actions, a)
	}
	start := make([]unit.Time, graph.Ops)
	c := &Calibration{First: *first}
	c.First.Forward, c.First.Backward = nil, nil
	base := max(0, slices.IndexFunc(runs, func(r MeasuredRun) bool { return r.Plan == 0 }))
	for i := range runs {
		r := &runs[i]
		p := Prediction{Plan: r.Plan, Measured: r.Measured(), Energy: mean(r.Energy)}
		p.Replayed = graph.Starts(start, func(op int32) unit.Time {
			a := actions[op]
			if a.Kind == pipeline.Forward {
				return r.Forward[a.Stage][a.Microbatch]
			}
			return r.Backward[a.Stage][a.Microbatch]
		})
		c.Plans = append(c.Plans, p)
	}
	c.Plan, c.Overhead = runs[base].Plan, c.Plans[base].Measured-c.Plans[base].Replayed
	for i := range c.Plans {
		c.Plans[i].Predicted = c.Plans[i].Replayed + c.Overhead
	}
	return c, nil
}

func mean(energies []unit.Energy) unit.Energy {
	if len(energies) == 0 {
		return 0
	}
	sum := unit.Energy128{}
	for _, e := range energies {
		sum = sum.Add(e.Widen())
	}
	v, _ := sum.DivInt(int64(len(energies))*1000, unit.Nearest)
	return unit.Energy(v)
}

// Errors are how far predictions are off, as shares of the measured times.
type Errors struct {
	// Mean and Max are of the absolute errors over all plans, the calibrated one,
	// whose error is 0, included; Others is the mean over all but that one.
	Mean, Max, Others float64
	// Uncalibrated is the mean without the overhead, over all plans.
	Uncalibrated float64
	// Worst is the plan of Max.
	Worst int
}

// Errors returns how far the predictions are off.
func (c *Calibration) Errors() (e Errors) {
	for i := range c.Plans {
		p := &c.Plans[i]
		off, raw := share(p.Predicted, p.Measured), share(p.Replayed, p.Measured)
		e.Mean += off
		e.Uncalibrated += raw
		if off > e.Max {
			e.Max, e.Worst = off, p.Plan
		}
	}
	n := float64(len(c.Plans))
	if n > 1 {
		e.Others = e.Mean / (n - 1)
	}
	e.Mean /= n
	e.Uncalibrated /= n
	return e
}

func share(predicted, measured unit.Time) float64 {
	return max(predicted-measured, measured-predicted).Seconds() / measured.Seconds()
}

// The errors up to which a workload fits the model.
const (
	FitsMean = 0.005
	FitsMax  = 0.015
)

// Fits says that the calibrated predictions are as good as the model promises.
func (e *Errors) Fits() bool { return e.Mean <= FitsMean && e.Max <= FitsMax }
