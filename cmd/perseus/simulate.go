package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

type simulateCommand struct {
	Frontier  string `arg:"" optional:"" file:"" placeholder:"F.json" help:"The frontier, from perseus frontier; - is standard input."`
	Calibrate string `group:"Measured runs:" file:"" placeholder:"RUNS.jsonl" help:"Predict measured iteration times from measured op times, with the constant overhead fitted on plan 0 alone. No frontier is needed."`

	Plan      string      `xor:"goal" group:"What runs (one of these):" file:"" placeholder:"PLAN" help:"A plan from perseus plan, csv or json. With --blocking-power no frontier is needed."`
	Fastest   bool        `xor:"goal" group:"What runs (one of these):" help:"The fastest plan (the default)."`
	Time      *unit.Time  `xor:"goal" group:"What runs (one of these):" placeholder:"2.9s" help:"As in perseus plan."`
	Slowdown  *plan.Ratio `xor:"goal" group:"What runs (one of these):" placeholder:"1.1" help:"As in perseus plan."`
	Straggler *plan.Ratio `xor:"goal" group:"What runs (one of these):" placeholder:"1.2" help:"As in perseus plan; pipelines that --slow names run the fastest plan."`
	MinEnergy bool        `aliases:"least-energy" xor:"goal" group:"What runs (one of these):" help:"As in perseus plan."`
	MaxClocks bool        `xor:"goal" group:"What runs (one of these):" help:"All ops at their top clocks."`
	Clocks    []int32     `xor:"goal" group:"What runs (one of these):" placeholder:"MHZ" help:"Fixed clocks: one for all stages, or one for each."`

	Margin  percentage   `group:"What runs (one of these):" placeholder:"0.5%" help:"As in perseus plan."`
	Effort  round.Effort `group:"What runs (one of these):" default:"normal" choices:"fast,normal,best" placeholder:"normal" help:"As in perseus plan."`
	Profile string       `group:"What runs (one of these):" file:"" placeholder:"P.csv" help:"The frontier's profile, for clocks that are not in the frontier."`

	Pipelines     int         `group:"The conditions:" default:"1" placeholder:"D" help:"How many pipelines run data-parallel."`
	Slow          []string    `group:"The conditions:" placeholder:"P=F" help:"Ops of pipeline P, or of rank R of it as in P:R=F, take F times as long. * stands for all."`
	Trace         string      `group:"The conditions:" file:"" placeholder:"TRACE" help:"Slowdowns that change: CSV time_s,pipeline,rank,factor or JSON lines."`
	Until         unit.Time   `group:"The conditions:" placeholder:"3s" help:"All wait until then for a pipeline that is not simulated."`
	Iterations    int         `group:"The conditions:" default:"1" placeholder:"N" help:"How many iterations to run."`
	P2PLatency    unit.Time   `group:"The conditions:" name:"p2p-latency" placeholder:"50us" help:"Latency of what one rank sends another."`
	Noise         percentage  `group:"The conditions:" placeholder:"1%" help:"Standard deviation of op times."`
	Seed          uint64      `group:"The conditions:" default:"1" placeholder:"N" help:"Of the noise: the same seed gives the same times."`
	LoadTime      unit.Time   `group:"The conditions:" placeholder:"5ms" help:"Data loading before each forward of the first stage."`
	OptimizerTime unit.Time   `group:"The conditions:" placeholder:"0.4s" help:"The optimizer, at the end of an iteration."`
	FixedPower    *unit.Power `group:"The conditions:" placeholder:"W" help:"What one GPU draws in these two. Without it, as much as waiting."`
	BlockingPower string      `group:"The conditions:" placeholder:"W" help:"What one waiting GPU draws: one number, or by clock as in 1410=84,900=60. Without it, the frontier's."`
	SwitchLatency string      `group:"The conditions:" placeholder:"15ms" help:"How long a clock switch takes: one time, or by target or pair as in 1410=15ms,1200:900=40ms,*=20ms."`

	JSON   bool   `name:"json" help:"Short for --format json."`
	Format string `enum:"text,json,csv" default:"text" help:"text (for people), json, or csv (the timeline, one op a line)."`
	Show   int    `name:"pipeline" default:"0" placeholder:"P" help:"The pipeline whose ranks the text shows."`
	Output string `short:"o" file:"" output:"" placeholder:"FILE" default:"-" help:"Where to write it. Standard output without it."`
}

// Help is the text of perseus simulate --help.
func (simulateCommand) Help() string {
	return `Replays a plan or fixed clocks: when each op runs, how long each rank works and waits, where the energy goes, and how much of it is bloat. Without conditions, time and energy are the plan's.

Examples:

    perseus simulate F.json --min-energy
    perseus simulate F.json --max-clocks --noise 1% --iterations 20
    perseus simulate F.json --straggler 1.2 --pipelines 16 --slow 0=1.2
    perseus simulate --plan plan.csv --blocking-power 84 --format csv
    perseus simulate --calibrate RUNS.jsonl`
}

// Run simulates with package simulate.
func (c *simulateCommand) Run(w *world) error {
	if c.JSON {
		c.Format = "json"
	}
	if c.Calibrate != "" {
		return c.calibrate(w)
	}
	s, err := c.summary(w)
	if err != nil {
		return input(err)
	}
	write := map[string]func(io.Writer) error{
		"text": func(out io.Writer) error { return s.WriteText(out, c.Show) },
		"json": s.WriteJSON, "csv": s.Last.WriteCSV,
	}[c.Format]
	return fileio.Write(w.ctx, c.Output, w.stdout, write)
}

func (c *simulateCommand) calibrate(w *world) error {
	if c.Frontier != "" || c.Format == "csv" || c.ignored() != "" {
		return input(errors.New("--calibrate stands alone: it takes neither a frontier nor --format csv, nor what else says what runs and how"))
	}
	r, err := fileio.OpenText(c.Calibrate, w.stdin)
	if err != nil {
		return input(err)
	}
	defer r.Close()
	runs, err := simulate.ReadRuns(r, fileio.Name(c.Calibrate))
	if err != nil {
		return input(err)
	}
	fit, err := simulate.Calibrate(runs)
	if err != nil {
		return input(fmt.Errorf("%s: %w", fileio.Name(c.Calibrate), err))
	}
	write := fit.WriteText
	if c.Format == "json" {
		write = fit.WriteJSON
	}
	return fileio.Write(w.ctx, c.Output, w.stdout, write)
}

// ignored returns a flag that was given and that says what runs or under which
// conditions, or "".
func (c *simulateCommand) ignored() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--margin", c.Margin != 0},
		{"--profile", c.Profile != ""},
		{"--plan", c.Plan != ""},
		{"--clocks", c.Clocks != nil || c.MaxClocks},
		{"--time", c.Time != nil || c.Slowdown != nil || c.Straggler != nil || c.MinEnergy || c.Fastest},
		{"--pipelines", c.Pipelines != 1},
		{"--slow", len(c.Slow) > 0},
		{"--trace", c.Trace != ""},
		{"--noise", c.Noise != 0},
		{"--iterations", c.Iterations != 1},
		{"--blocking-power", c.BlockingPower != ""},
		{"--switch-latency", c.SwitchLatency != ""},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// summary runs the job that the flags describe.
func (c *simulateCommand) summary(w *world) (*simulate.Summary, error) {
	switch {
	case c.Pipelines < 1 || c.Pipelines > 1<<16:
		return nil, fmt.Errorf("--pipelines %d: expected 1 … %d", c.Pipelines, 1<<16)
	case c.Iterations < 1 || c.Iterations > 1<<20:
		return nil, fmt.Errorf("--iterations %d: expected 1 … %d", c.Iterations, 1<<20)
	case c.Show < 0 || c.Show >= c.Pipelines:
		return nil, fmt.Errorf("--pipeline %d: the job has 0 … %d", c.Show, c.Pipelines-1)
	}
	if flag := c.ignored(); flag != "" && (c.Plan != "" || c.MaxClocks || c.Clocks != nil) {
		if flag == "--margin" || flag == "--profile" && c.Frontier == "" {
			return nil, fmt.Errorf("%s has no use here: what runs is given, op by op", flag)
		}
	}
	o, constant, err := c.options()
	if err != nil {
		return nil, err
	}
	j, err := c.job(w, &o)
	if err != nil {
		return nil, err
	}
	// Before a plan takes its time.
	ranks := slices.Repeat([]int{j.ranks}, c.Pipelines)
	if o.Slow, err = c.slowdowns(w, constant, ranks); err != nil {
		return nil, err
	}
	if err := o.Check(ranks); err != nil {
		return nil, err
	}
	if c.Straggler != nil && c.allSlow(constant) {
		return nil, fmt.Errorf("--straggler is for the pipelines that wait for a slow one, but --slow names all %d: give more --pipelines, or leave out --slow", c.Pipelines)
	}
	run, slowed, err := c.schedules(j, &o)
	if err != nil {
		return nil, err
	}
	members := make([]simulate.Member, c.Pipelines)
	for d := range members {
		members[d].Schedule = run
	}
	for _, s := range constant {
		if slowed != nil && s.Pipeline >= 0 && s.Pipeline < c.Pipelines {
			members[s.Pipeline].Schedule = slowed
		}
	}
	sim, err := simulate.NewSimulator(members, o)
	if err != nil {
		return nil, err
	}
	return sim.Summarize(c.Iterations, c.Frontier != "")
}

// allSlow says whether --slow names each pipeline.
func (c *simulateCommand) allSlow(constant []simulate.Slowdown) bool {
	named := map[int]bool{}
	for _, s := range constant {
		if s.Pipeline < 0 {
			return true
		}
		named[s.Pipeline] = true
	}
	return len(named) >= c.Pipelines
}

// options returns the conditions but for slowdowns, which come second.
func (c *simulateCommand) options() (o simulate.Options, constant []simulate.Slowdown, err error) {
	o = simulate.Options{
		P2P: c.P2PLatency, Noise: c.Noise.ratio(), Seed: c.Seed, Load: c.LoadTime, Optimizer: c.OptimizerTime,
		FixedPower: c.FixedPower, Until: c.Until,
	}
	for _, s := range c.Slow {
		d, err := simulate.ParseSlowdown(s)
		if err != nil {
			return o, nil, fmt.Errorf("--slow: %w", err)
		}
		constant = append(constant, d)
	}
	if c.SwitchLatency != "" {
		if o.Switch, err = simulate.ParseSwitchTable(c.SwitchLatency); err != nil {
			return o, nil, fmt.Errorf("--switch-latency: %w", err)
		}
	}
	if c.BlockingPower != "" {
		if o.Blocking, err = simulate.ParsePowerTable(c.BlockingPower); err != nil {
			return o, nil, fmt.Errorf("--blocking-power: %w", err)
		}
	}
	return o, constant, nil
}

func (c *simulateCommand) slowdowns(w *world, constant []simulate.Slowdown, ranks []int) ([]simulate.Slowdown, error) {
	if c.Trace == "" {
		return constant, nil
	}
	r, err := fileio.OpenText(c.Trace, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	trace, err := simulate.ReadTrace(r, fileio.Name(c.Trace), ranks)
	return simulate.Constant(constant, trace), err
}

// simulated is what the flags name: a frontier with its pipeline, a plan, or both.
type simulated struct {
	frontier *frontierfile.File
	pipeline *simulate.Pipeline
	given    *plan.Plan
	ranks    int
}

// job reads the files that say what runs.
func (c *simulateCommand) job(w *world, o *simulate.Options) (j simulated, err error) {
	if c.Plan != "" {
		r, err := fileio.OpenText(c.Plan, w.stdin)
		if err != nil {
			return j, err
		}
		defer r.Close()
		if j.given, err = simulate.ReadPlan(r, fileio.Name(c.Plan)); err != nil {
			return j, err
		}
		j.ranks = len(j.given.Ranks)
	}
	if c.Frontier == "" {
		switch {
		case j.given == nil:
			err = errors.New("what to simulate is missing: a frontier file, --plan with --blocking-power, or --calibrate")
		case o.Blocking.Empty():
			err = errors.New("--blocking-power is missing: with a plan alone, what one GPU draws while it waits")
		}
		return j, err
	}
	if j.frontier, err = w.readFrontier(c.Frontier); err != nil {
		return j, err
	}
	h := &j.frontier.Header
	if c.Profile == "" {
		j.pipeline, err = simulate.New(h, nil)
	} else {
		options, err := report.ProfileOptions(h)
		if err != nil {
			return j, err
		}
		m, err := readProfile(w, c.Profile, options)
		if err != nil {
			return j, err
		}
		if err := isFrom(m, h); err != nil {
			return j, err
		}
		if j.pipeline, err = simulate.New(h, m); err != nil {
			return j, err
		}
	}
	j.ranks = h.Ranks
	return j, err
}

// schedules returns what runs, and what slowed pipelines run where that differs.
func (c *simulateCommand) schedules(j simulated, o *simulate.Options) (run, slowed *simulate.Schedule, err error) {
	p := j.pipeline
	switch {
	case p == nil:
		// The table of blocking powers holds for all ranks.
		run, err = simulate.FromPlan(j.given, make([]unit.Power, len(j.given.Ranks)))
	case j.given != nil:
		run, err = p.Plan(j.given)
	case c.MaxClocks:
		run = p.MaxClocks()
	case c.Clocks != nil:
		if run, err = p.Clocks(c.Clocks); err != nil {
			err = fmt.Errorf("--clocks: %w", err)
		}
	default:
		return c.planned(p, j.frontier, o)
	}
	return run, nil, err
}

// planned returns the schedule of the plan that the flags ask for.
func (c *simulateCommand) planned(p *simulate.Pipeline, f *frontierfile.File, o *simulate.Options) (run, slowed *simulate.Schedule, err error) {
	wanted := goal{time: c.Time, slowdown: c.Slowdown, straggler: c.Straggler, minEnergy: c.MinEnergy}
	r := wanted.of(plan.Request{Margin: c.Margin.ratio(), Effort: c.Effort})
	planner, err := plan.New(f)
	if err != nil {
		return nil, nil, err
	}
	made, err := planner.Make(r)
	if err != nil {
		return nil, nil, err
	}
	if run, err = p.Plan(made); err != nil || r.Goal != plan.Straggler {
		return run, nil, err
	}
	if len(c.Slow) == 0 && c.Trace == "" {
		o.Until = max(o.Until, made.WaitTime)
	}
	fastest, err := planner.Make(plan.Request{Goal: plan.Fastest, Effort: c.Effort})
	if err != nil {
		return nil, nil, err
	}
	slowed, err = p.Plan(fastest)
	return run, slowed, err
}
