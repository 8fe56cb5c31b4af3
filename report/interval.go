package report

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// Interval is where a saving lies, given how much the profile's repeats differ:
// fractions, as Low … High at a level of, say, 0.95.
type Interval struct {
	Low, High, Level float64
	// Resamples is how many profiles were drawn.
	Resamples int
}

// Resampling says how to find intervals.
type Resampling struct {
	Resamples int
	// Level is how much of the drawn savings the interval holds, over 0 and
	// below 1.
	Level float64
	Seed  uint64
}

// OptionError reports a Resampling that makes no sense.
type OptionError struct {
	// Option is "level" or "resamples", Value what was asked and Reason what is
	// expected.
	Option, Value, Reason string
}

func (e *OptionError) Error() string { return fmt.Sprintf("%s %s: %s", e.Option, e.Value, e.Reason) }

// maxResamples bounds the work of Intervals.
const maxResamples = 1_000_000

// ProfileOptions returns the options with which the frontier's profile was read.
func ProfileOptions(h *frontierfile.Header) (profile.Options, error) {
	units, err := profile.ParseUnits(fmt.Sprintf("time=%s,energy=%s,frequency=%s",
		h.Profile.TimeUnit, h.Profile.EnergyUnit, h.Profile.FrequencyUnit))
	return profile.Options{Units: units, SkipBadRows: h.Profile.SkippedRows > 0}, err
}

// Intervals returns the interval of each of the frontier's Savings, in their
// order, by the percentile bootstrap (Efron, "Bootstrap Methods", 1979): it draws
// profiles from the repeats of p, which must be the frontier's profile, runs each
// saving's plan and its baseline with the drawn times and energies, and takes the
// quantiles of what is saved then. It is about the plan as it stands, not about
// the plan that would be made of another profile. O(resamples · (rows + ops)).
func Intervals(f *frontierfile.File, p *profile.Profile, r Resampling) ([]Interval, error) {
	if !(r.Level > 0 && r.Level < 1) {
		return nil, &OptionError{"level", strconv.FormatFloat(100*r.Level, 'g', -1, 64), "expected over 0 and below 100 percent"}
	}
	if r.Resamples < 1 || r.Resamples > maxResamples {
		return nil, &OptionError{"resamples", strconv.Itoa(r.Resamples), fmt.Sprintf("expected 1 to %d", maxResamples)}
	}
	if f.Header.Graph != nil {
		return nil, errors.New("a graph was not measured: it has no profile whose repeats could differ")
	}
	if p.SHA256 != f.Header.Profile.SHA256 {
		return nil, fmt.Errorf("the frontier was computed from another profile: its SHA-256 is %s, but this one's is %s",
			f.Header.Profile.SHA256, p.SHA256)
	}
	rows, err := Savings(f)
	if err != nil {
		return nil, err
	}
	e, err := newEnsemble(f, rows, p)
	if err != nil {
		return nil, err
	}
	saved := make([][]float64, len(rows))
	rng := rand.New(rand.NewPCG(r.Seed, 0))
	for range r.Resamples {
		if err := e.measure(p.Resample(rng)); err != nil {
			return nil, err
		}
		for i := range rows {
			saved[i] = append(saved[i], e.saving(i))
		}
	}
	intervals := make([]Interval, len(rows))
	for i := range rows {
		slices.Sort(saved[i])
		tail := (1 - r.Level) / 2
		intervals[i] = Interval{quantile(saved[i], tail), quantile(saved[i], 1-tail), r.Level, r.Resamples}
	}
	return intervals, nil
}

// quantile returns the q-th quantile of sorted values, between two of them by a
// straight line.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// ensemble runs the plans of a frontier's savings with other measurements.
type ensemble struct {
	header  *frontierfile.Header
	problem *dag.Problem
	rows    []Saving
	// used lists for each row, and last for the baseline, the measured option of
	// each op, by its place among those of its curve.
	used [][]int32
	// drawn holds the drawn options of each curve, by ascending clock.
	drawn    [][]dag.Option
	start    []unit.Time
	baseline dag.Cost
}

func newEnsemble(f *frontierfile.File, rows []Saving, measured characterize.Measurements) (*ensemble, error) {
	p, _, err := characterize.Problem(&f.Header)
	if err != nil {
		return nil, err
	}
	e := &ensemble{header: &f.Header, problem: p, rows: rows, start: make([]unit.Time, p.Graph.Ops), drawn: make([][]dag.Option, len(p.Curves))}
	if err := e.draw(measured); err != nil {
		return nil, err
	}
	use := func(option func(op int32) dag.Option) error {
		places := make([]int32, p.Graph.Ops)
		for op := range int32(p.Graph.Ops) {
			knobs := option(op).Knobs
			k, found := slices.BinarySearchFunc(e.drawn[p.CurveOf[op]], knobs, func(o dag.Option, k dag.Knobs) int { return o.Knobs.Compare(k) })
			if !found {
				c := &f.Header.Curves[p.CurveOf[op]]
				return fmt.Errorf("stage %d, %s at %d MHz is in the frontier, but not in the profile", c.Stage, c.Instruction, knobs.ClockMHz)
			}
			places[op] = int32(k)
		}
		e.used = append(e.used, places)
		return nil
	}
	for i := range rows {
		point, err := f.Load(rows[i].Plan.Point)
		if err != nil {
			return nil, err
		}
		if err := frontierfile.CheckChoice(p, point.Choice); err != nil {
			return nil, err
		}
		if err := use(func(op int32) dag.Option { return p.Curve(op).Options[point.Choice[op]] }); err != nil {
			return nil, err
		}
	}
	return e, use(func(op int32) dag.Option { return p.Curve(op).Top })
}

// draw takes the drawn measurements.
func (e *ensemble) draw(p characterize.Measurements) error {
	for i := range e.header.Curves {
		c := &e.header.Curves[i]
		options, err := characterize.Remeasured(e.header, i, p)
		if err != nil {
			return err
		}
		for k, o := range options {
			options[k].Effective = dag.Effective(o.Energy, c.BlockingPower, o.Time)
		}
		e.drawn[i] = options
	}
	return nil
}

// measure takes the drawn measurements and runs the baseline with them.
func (e *ensemble) measure(p characterize.Measurements) error {
	if err := e.draw(p); err != nil {
		return err
	}
	e.baseline = e.run(e.used[len(e.rows)])
	return nil
}

func (e *ensemble) run(places []int32) dag.Cost {
	return e.problem.Evaluate(e.start, func(op int32) dag.Option { return e.drawn[e.problem.CurveOf[op]][places[op]] })
}

// saving returns what row i saves with the drawn measurements.
func (e *ensemble) saving(i int) float64 {
	cost := e.run(e.used[i])
	wait, baselineWait := cost.Time, e.baseline.Time
	if s := e.rows[i].Straggler; s > 0 {
		// The straggler is the same one, whatever was drawn here.
		straggler := max(e.rows[i].Plan.WaitTime, cost.Time)
		wait, baselineWait = straggler, max(straggler, e.baseline.Time)
	}
	used := cost.Effective.Add(unit.Product(e.problem.BlockingPower, wait)).Joules()
	baseline := e.baseline.Effective.Add(unit.Product(e.problem.BlockingPower, baselineWait)).Joules()
	if baseline <= 0 {
		return 0
	}
	return 1 - used/baseline
}
