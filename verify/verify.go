package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// Violation is the first thing found that is not as the file says.
type Violation struct {
	// Point is the index of the point concerned, from 0, the fastest; −1 where
	// it is not one.
	Point int
	// Field is the field concerned, by its name in the file, or "profile".
	Field   string
	Problem string
}

func (v *Violation) Error() string {
	if v.Point >= 0 {
		return fmt.Sprintf("points[%d].%s: %s", v.Point, v.Field, v.Problem)
	}
	return v.Field + ": " + v.Problem
}

// violated returns a violation outside the points.
func violated(field, format string, args ...any) *Violation {
	return &Violation{-1, field, fmt.Sprintf(format, args...)}
}

// differs returns a violation where a field is not what it is derived to be.
func differs[T comparable](field string, said, derived T) error {
	if said != derived {
		return violated(field, "the file says %v, but it is %v", said, derived)
	}
	return nil
}

// Report says what was proved.
type Report struct {
	// Header is the file's, all of which was checked but for the name of a schedule
	// whose order the file holds.
	Header *frontierfile.Header
	// Points is how many points the file has, and Rows how many the profile.
	Points, Rows int
	// Measured is how many options the profile gives, and Useful how many all
	// entries of the option table have together. There is an entry for each blocking
	// power, cap and factor, so that Useful can be larger.
	Measured, Useful int
	// GapAtTMin is the gap of the fastest point, LargestGap the largest of all, at
	// the point with the index LargestGapAt.
	GapAtTMin, LargestGap unit.Ratio
	LargestGapAt          int
	// Inexact is by how much any point's relaxed energy may differ from the least
	// there is, for prices are rounded.
	Inexact unit.Energy128
	// Sweeps is the most passes over the graph that a point needed to be shown
	// exact.
	Sweeps int
}

// Lines returns the report as text, a line each.
func (r *Report) Lines() []string {
	h := r.Header
	order := "derived anew"
	switch {
	case h.Graph != nil:
		order = "as in the file of the graph"
	case h.Order != nil:
		order = "given by the file: complete, and free of deadlock"
	}
	rows := fmt.Sprintf("%d rows", r.Rows)
	if n := h.Profile.SkippedRows; n > 0 {
		rows += fmt.Sprintf(", of which %d bad ones are left out", n)
	}
	lines := []string{
		fmt.Sprintf("profile: SHA-256 %s, %s, %d options", h.Profile.SHA256, rows, r.Measured),
		fmt.Sprintf("options: %d useful ones in %d entries of the table, derived anew", r.Useful, len(h.Curves)),
	}
	if s := h.Terms.Summary(); s != "" {
		lines = append(lines, "terms: "+s+": applied anew")
	}
	lines = append(lines,
		fmt.Sprintf("order: %s, %d ranks, %d stages, %d microbatches, %s; %d ops, %d arcs", h.Schedule, h.Ranks, h.Stages, h.Microbatches, order, h.Ops, h.Arcs),
		fmt.Sprintf("schedules: %d, each with the time and the energy that its options give, none slower than its relaxed time", r.Points),
		fmt.Sprintf("certificates: %d flows, each conserved at every op; every bound and gap is what they prove", r.Points),
		fmt.Sprintf("gaps: %s at t_min, %s at most (point %d)", percent(r.GapAtTMin), percent(r.LargestGap), r.LargestGapAt),
	)
	if h.LineGap == 0 {
		return append(lines, fmt.Sprintf("curve: from t_min %v to t_max %v both certificates at every point are tight, so the whole frontier is exact to %.2g J",
			h.TMin, h.TMax, r.Inexact.Joules()))
	}
	return append(lines, fmt.Sprintf("curve: from t_min %v to t_max %v every point is exact to %.2g J and the lines between them to %s",
		h.TMin, h.TMax, r.Inexact.Joules(), percent(h.LineGap)))
}

func percent(r unit.Ratio) string { return fmt.Sprintf("%.4f %%", r.Float()*100) }

// Read checks the file in r, called name in errors, as File does. A value that no
// frontier has is a *Violation as well; text that is not a frontier file is an
// error of frontierfile.Read.
func Read(r io.Reader, name string, profile []byte) (*Report, error) {
	f, err := frontierfile.Read(r, name)
	var value *frontierfile.ValueError
	if errors.As(err, &value) {
		return nil, violationOf(value)
	}
	if err != nil {
		return nil, err
	}
	return File(f, profile)
}

func violationOf(e *frontierfile.ValueError) *Violation {
	return &Violation{e.Point, e.Field, e.Problem}
}

// File checks f against the profile, the uncompressed bytes of the file from
// which f was computed. The report says what was proved. The error is a
// *Violation naming the first field that is wrong. O(points·(ops·options +
// arcs·sweeps)), where sweeps are a few tens.
func File(f *frontierfile.File, profile []byte) (*Report, error) {
	h := &f.Header
	sum := sha256.Sum256(profile)
	if given := hex.EncodeToString(sum[:]); given != h.Profile.SHA256 {
		what := "the profile"
		if h.Graph != nil {
			what = "the graph"
		}
		return nil, violated("profile.sha256", "this is not %s that the frontier was computed from, or it was changed since: its SHA-256 is %.16s… and the file says %.16s…; "+
			"give the very file, or all of them in the same order, or compute the frontier anew", what, given, h.Profile.SHA256)
	}
	derive := pipelineProblem
	if h.Graph != nil {
		derive = graphProblem
	}
	p, m, err := derive(h, string(profile))
	if err != nil {
		return nil, err
	}
	c := newChecker(p, f)
	if h.Quantum != 0 && h.LineGap == 0 {
		return nil, violated("quantum_w", "only a frontier of chosen points, with a line_gap, can have one")
	}
	for _, check := range []func() error{c.sizes, c.landmarks, c.points, c.costs} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	c.report.Header, c.report.Points, c.report.Rows = h, len(f.Points), m.rows
	for _, options := range m.options {
		c.report.Measured += len(options)
	}
	for i := range h.Curves {
		c.report.Useful += len(h.Curves[i].Options)
	}
	return &c.report, nil
}

// pipelineProblem derives what the ops are, which depends on which, and their
// options, from a profile.
func pipelineProblem(h *frontierfile.Header, profile string) (*dag.Problem, *measurements, error) {
	m, err := readProfile(profile, h.Profile)
	if err != nil {
		return nil, nil, err
	}
	o, err := orderOf(h)
	if err != nil {
		return nil, nil, err
	}
	if err := m.checkGPUs(h); err != nil {
		return nil, nil, err
	}
	if err := differs("stages", h.Stages, m.stages); err != nil {
		return nil, nil, err
	}
	keys := make([]frontierfile.Key, len(o.ops))
	for i, x := range o.ops {
		keys[i] = o.key(h, x)
	}
	p, err := problem(h, o.graph, keys, func(k frontierfile.Key) ([]dag.Option, error) { return optionsOf(h, k, m) })
	return p, m, err
}

// checkGPUs checks how many GPUs a rank has. Where the profile is of one and the
// parallel groups are larger, all of a group are taken to be like it.
func (m *measurements) checkGPUs(h *frontierfile.Header) error {
	if h.Parallel == nil {
		return differs("gpus_per_rank", h.GPUsPerRank, m.members)
	}
	if err := differs("parallel.pp", h.Parallel.PP, h.Ranks); err != nil {
		return err
	}
	gpus, err := group(h.Parallel)
	if err != nil {
		return violated("parallel", "%v", err)
	}
	if err := differs("gpus_per_rank", h.GPUsPerRank, gpus); err != nil {
		return err
	}
	if m.members == gpus {
		return nil
	}
	if m.members != 1 {
		return violated("parallel", "the profile has %d GPUs a stage, but %d work together", m.members, gpus)
	}
	for _, options := range m.options {
		for i := range options {
			if options[i].Energy > unit.MaxOpEnergy/unit.Energy(gpus) {
				return violated("parallel", "%d GPUs use more than %v in an op", gpus, unit.MaxOpEnergy)
			}
			options[i].Energy *= unit.Energy(gpus)
		}
	}
	return nil
}

// problem compares the file's option table with the options that derive gives for
// each key, and puts it together with the graph, whose ops have the given keys.
func problem(h *frontierfile.Header, g *dag.Graph, keys []frontierfile.Key, derive func(frontierfile.Key) ([]dag.Option, error)) (*dag.Problem, error) {
	var total unit.Power
	for _, p := range h.BlockingPower {
		if total += p; total > unit.MaxPower {
			return nil, violated("blocking_power_w", "the ranks' powers add up to more than %v", unit.MaxPower)
		}
	}
	used := make([]bool, len(h.Curves))
	curves := make([]dag.Curve, len(h.Curves))
	entry := make(map[frontierfile.Key]int, len(h.Curves))
	for k := range h.Curves {
		if _, twice := entry[h.Curves[k].Key()]; !twice {
			entry[h.Curves[k].Key()] = k
		}
	}
	ofOp := make([]int32, len(keys))
	for i, key := range keys {
		k, ok := entry[key]
		if !ok {
			return nil, violated("options", "%v: is missing", key)
		}
		ofOp[i] = int32(k)
		used[k] = true
	}
	for k := range h.Curves {
		said := &h.Curves[k]
		field := fmt.Sprintf("options[%d]", k)
		if !used[k] {
			return nil, violated(field, "no op has these options")
		}
		if k > 0 && h.Curves[k-1].Key().Compare(said.Key()) >= 0 {
			return nil, violated(field, "not sorted by stage, instruction, blocking power, second stage, cap and factors")
		}
		options, err := derive(said.Key())
		if err != nil {
			return nil, violated(field, "%v", err)
		}
		if err := checkCurve(field, said, options); err != nil {
			return nil, err
		}
		curves[k] = dag.Curve{Options: said.Options, Top: said.Top}
	}
	p, err := dag.NewProblem(g, curves, ofOp, total)
	if err != nil {
		return nil, violated("options", "%v", err)
	}
	return p, nil
}

// checkCurve compares an entry of the option table with what was measured.
func checkCurve(field string, said *frontierfile.Curve, measured []dag.Option) error {
	all := make([]dag.Option, len(measured))
	for i, o := range measured {
		o.Effective = dag.Effective(o.Energy, said.BlockingPower, o.Time)
		all[i] = o
	}
	top := all[0]
	var useful int
	for _, o := range all {
		if o.Knobs.ClockMHz > top.Knobs.ClockMHz {
			top = o
		}
		dominated := false
		for _, by := range all {
			no := by.Time > o.Time || by.Effective > o.Effective
			same := by.Time == o.Time && by.Effective == o.Effective
			dominated = dominated || !no && (!same || by.Knobs.ClockMHz < o.Knobs.ClockMHz)
		}
		if dominated {
			continue
		}
		useful++
		found := false
		for _, s := range said.Options {
			found = found || s == o
		}
		if !found {
			return violated(field, "the option %d MHz, %v, %v is missing or not as measured", o.Knobs.ClockMHz, o.Time, o.Energy)
		}
	}
	if useful != len(said.Options) {
		return violated(field, "%d options where %d are useful", len(said.Options), useful)
	}
	for i := 1; i < useful; i++ {
		if said.Options[i].Time >= said.Options[i-1].Time {
			return violated(field, "the options are not slowest first")
		}
	}
	if said.Top != top {
		return violated(field+".top", "the highest clock has %d MHz, %v, %v", top.Knobs.ClockMHz, top.Time, top.Energy)
	}
	return nil
}
