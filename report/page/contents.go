package page

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/baseline"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// Options say what a report is about.
type Options struct {
	// Title is the page's; empty means the frontier's.
	Title string
	// Request is the plan that is set against all top clocks.
	Request plan.Request
	// Profile is what the frontier was computed from, or nil: then baselines know
	// only the clocks that the frontier keeps.
	Profile *profile.Profile
	// Published also runs Perseus as published, which takes seconds.
	Published bool
	Prices    Prices
}

// Contents are what a report shows, computed. It is immutable.
type Contents struct {
	Title   string
	Plan    *plan.Plan
	Savings []report.Saving
	// Before and After are the timelines with all ops at their top clocks and with
	// the plan.
	Before, After *simulate.Timeline

	file     *frontierfile.File
	pipeline *simulate.Pipeline
	profile  *profile.Profile
	prices   Prices
	causes   [2]simulate.Causes
	scale    scale

	global, perStage, others []baseline.Result
}

// New returns the contents of a report on a frontier. It fails on a request or
// prices that make no sense, naming the flag, and where the profile is not the
// frontier's. It costs the plan, two replays, and the baselines: for 8 ranks and
// 96 microbatches well below a second with the request's effort fast.
func New(f *frontierfile.File, o Options) (*Contents, error) {
	c := &Contents{Title: o.Title, file: f, profile: o.Profile}
	if c.Title == "" {
		c.Title = "Energy of " + report.Title(f)
	}
	var err error
	if c.prices, err = o.Prices.check(); err != nil {
		return nil, err
	}
	if o.Profile != nil && o.Profile.SHA256 != f.Header.Profile.SHA256 {
		return nil, fmt.Errorf("the frontier was computed from another profile: its SHA-256 is %s, but this one's is %s",
			f.Header.Profile.SHA256, o.Profile.SHA256)
	}
	if len(f.Points) == 0 {
		return nil, errors.New("the frontier has no point")
	}
	planner, err := plan.New(f)
	if err != nil {
		return nil, err
	}
	if c.Plan, err = planner.Make(o.Request); err != nil {
		return nil, err
	}
	if c.Savings, err = report.Savings(f); err != nil {
		return nil, err
	}
	if o.Profile != nil {
		c.pipeline, err = simulate.New(&f.Header, o.Profile)
	} else {
		c.pipeline, err = simulate.New(&f.Header, nil)
	}
	if err != nil {
		return nil, err
	}
	if err := c.replay(); err != nil {
		return nil, err
	}
	c.compare(o.Published)
	return c, nil
}

// replay runs both timelines.
func (c *Contents) replay() error {
	planned, err := c.pipeline.Plan(c.Plan)
	if err != nil {
		return err
	}
	planned.Name = "planned clocks"
	top := c.pipeline.MaxClocks()
	top.Name = "all at top clocks"
	for i, s := range []*simulate.Schedule{top, planned} {
		done := []unit.Time{c.Plan.BaselineTime, c.Plan.WaitTime}[i]
		run, err := simulate.Run([]simulate.Member{{Schedule: s}}, simulate.Options{Until: done})
		if err != nil {
			return err
		}
		t := run.Timelines[0]
		if c.causes[i], err = t.Causes(max(done, t.Time)); err != nil {
			return err
		}
		if i == 0 {
			c.Before = t
		} else {
			c.After = t
		}
	}
	c.scale = newScale([]*simulate.Timeline{c.Before, c.After}, max(c.Plan.BaselineTime, c.Plan.WaitTime))
	return nil
}

// compare runs the baselines. Those that are for pipelines have no result for
// other jobs.
func (c *Contents) compare(published bool) {
	if c.file.Header.Graph != nil {
		return
	}
	c.global, c.perStage = baseline.Global(c.pipeline), baseline.PerStage(c.pipeline)
	c.others = []baseline.Result{baseline.Envelope(c.pipeline)}
	if published {
		_, known := baseline.FiguresOf(c.file.Header.Profile.SHA256, "")
		c.others = append(c.others, baseline.PublishedEnds(c.pipeline, baseline.TauOf(known))...)
	}
}

// Pictures returns the report's pictures.
func (c *Contents) Pictures() []*Picture {
	return []*Picture{
		frontierPicture(c.file, c),
		timelinePicture("timeline-before", "Before: all ops at their top clocks", c.Before, c.Plan.BaselineTime, c.scale),
		timelinePicture("timeline-after", "After: planned clocks", c.After, c.Plan.WaitTime, c.scale),
	}
}

// Timelines returns both timelines, the planned one first.
func (c *Contents) Timelines() []*simulate.Timeline { return []*simulate.Timeline{c.After, c.Before} }

// Reached is what a way of choosing clocks reaches.
type Reached struct {
	Method, Setting                   string
	Time, Slowdown, Energy, Saved, At string
	Ours                              bool
}

// reached returns the table beside the frontier: landmarks, then baselines.
func (c *Contents) reached() []Reached {
	h := &c.file.Header
	base := h.MaxClockEnergy.Joules()
	row := func(method, setting string, t unit.Time, joule float64, ours bool) Reached {
		r := Reached{Method: method, Setting: setting, Time: report.Seconds(t), Energy: report.Significant(joule) + " J", Ours: ours}
		if h.MaxClockTime > 0 {
			r.Slowdown = signed(t.Seconds()/h.MaxClockTime.Seconds() - 1)
		}
		if base > 0 {
			r.Saved = report.Percent(1 - joule/base)
		}
		return r
	}
	rows := []Reached{row("all at top clocks", "what savings are against", h.MaxClockTime, base, false)}
	for _, s := range c.Savings[:2] {
		rows = append(rows, row("Perseus", s.Situation, s.Plan.Time, s.Plan.Energy.Joules(), true))
	}
	last := &c.file.Points[len(c.file.Points)-1]
	rows = append(rows, row("Perseus", "slowest useful (for stragglers)", last.Time, last.Energy.Joules(), true))
	for _, family := range [][]baseline.Result{c.global, c.perStage} {
		if len(family) == 0 {
			continue
		}
		fast := slices.MinFunc(family, func(a, b baseline.Result) int { return cmp.Compare(a.Cost.Time, b.Cost.Time) })
		cheap := slices.MinFunc(family, func(a, b baseline.Result) int { return a.Cost.Energy.Cmp(b.Cost.Energy) })
		rows = append(rows, row(string(fast.Method), "fastest, "+fast.Setting, fast.Cost.Time, fast.Cost.Energy.Joules(), false),
			row(string(cheap.Method), "least energy, "+cheap.Setting, cheap.Cost.Time, cheap.Cost.Energy.Joules(), false))
	}
	for _, r := range c.others {
		if r.Schedule == nil {
			rows = append(rows, Reached{Method: string(r.Method), Setting: "does not apply: " + r.Note, Time: "–", Slowdown: "–", Energy: "–", Saved: "–"})
			continue
		}
		rows = append(rows, row(string(r.Method), r.Setting, r.Cost.Time, r.Cost.Energy.Joules(), false))
	}
	return rows
}

func signed(v float64) string {
	s := report.Percent(v)
	if !strings.HasPrefix(s, "-") {
		return "+" + s
	}
	return "−" + s[1:]
}

// ClockRow says at which clocks an instruction of a stage runs.
type ClockRow struct {
	Stage             int
	Instruction       string
	Ops               int
	Top, Lowest, Mean string
	Highest, Spread   string
	TopTime, MeanTime string
	TopWatts, Watts   string
}

// clocks returns the table of clocks per stage.
func (c *Contents) clocks() []ClockRow {
	p := c.pipeline
	type sum struct {
		n, clock, top int64
		low, high     int32
		time, topTime unit.Time
		joules, topJ  float64
		counts        map[int32]int
	}
	type key struct {
		stage int
		name  string
	}
	sums := map[key]*sum{}
	var keys []key
	for op, o := range c.After.Schedule.Option {
		curve := p.Problem.CurveOf[op]
		if p.RankOf(int32(op)) < 0 || o.Knobs.ClockMHz == 0 {
			continue // no clock changes it
		}
		k := key{p.Stage[curve], p.Instruction[curve]}
		s := sums[k]
		if s == nil {
			s = &sum{low: o.Knobs.ClockMHz, high: o.Knobs.ClockMHz, counts: map[int32]int{}}
			sums[k], keys = s, append(keys, k)
		}
		t := p.Problem.Curve(int32(op)).Top
		mhz := o.Knobs.ClockMHz
		s.n, s.clock, s.top = s.n+1, s.clock+int64(mhz), max(s.top, int64(t.Knobs.ClockMHz))
		s.low, s.high = min(s.low, mhz), max(s.high, mhz)
		s.time, s.topTime = s.time+o.Time, s.topTime+t.Time
		s.joules, s.topJ = s.joules+o.Energy.Joules(), s.topJ+t.Energy.Joules()
		s.counts[mhz]++
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.stage, b.stage), strings.Compare(a.name, b.name))
	})
	gpus := float64(max(1, p.GPUsPerRank))
	var rows []ClockRow
	for _, k := range keys {
		s := sums[k]
		milli := func(t unit.Time) string { return amount(t.Seconds()/float64(s.n)*1e3) + " ms" }
		draw := func(j float64, t unit.Time) string {
			if t == 0 {
				return "–"
			}
			return strconv.FormatFloat(j/t.Seconds()/gpus, 'f', 0, 64) + " W"
		}
		rows = append(rows, ClockRow{
			Stage: k.stage, Instruction: k.name, Ops: int(s.n), Top: mhzText(int32(s.top)),
			Lowest: mhzText(s.low), Highest: mhzText(s.high), Mean: mhzText(int32((s.clock + s.n/2) / s.n)), Spread: spreadText(s.counts),
			TopTime: milli(s.topTime), MeanTime: milli(s.time), TopWatts: draw(s.topJ, s.topTime), Watts: draw(s.joules, s.time),
		})
	}
	return rows
}

func mhzText(v int32) string { return strconv.Itoa(int(v)) + " MHz" }

// spreadText says how often each clock is used, the most used first.
func spreadText(counts map[int32]int) string {
	var clocks []int32
	for k := range counts {
		clocks = append(clocks, k)
	}
	slices.SortFunc(clocks, func(a, b int32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(b, a))
	})
	const most = 3
	var parts []string
	for i, k := range clocks {
		if left := len(clocks) - i; i == most && left > 1 {
			parts = append(parts, fmt.Sprintf("%d\u00a0others", left))
			break
		}
		parts = append(parts, fmt.Sprintf("%d\u00a0×\u00a0%d", counts[k], k))
	}
	return strings.Join(parts, ", ")
}
