package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perseus-energy/perseus/internal/demo"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

type demoCommand struct {
	Stages       int    `min:"2" placeholder:"8" help:"Stages of the pipeline, each on a GPU of its own; as many as the profile has, or 8."`
	Pipelines    int    `min:"2" default:"2" placeholder:"2" help:"Pipelines that train data-parallel; each has an agent of its own."`
	Microbatches int    `min:"1" short:"m" default:"12" placeholder:"12" help:"Microbatches of an iteration, in one pipeline."`
	Profile      string `short:"p" file:"" placeholder:"P.csv" help:"Measurements that drive the GPUs, in place of a formula."`
	profileFlags
	BlockingPower unit.Power    `default:"84" placeholder:"84" help:"What one GPU draws while it waits, in watts."`
	SwitchLatency time.Duration `default:"5ms" placeholder:"5ms" help:"How long a switch of clocks takes, in the GPUs' time."`
	CounterStep   time.Duration `default:"200us" placeholder:"200us" help:"How often the energy counters move, in the GPUs' time. With 100ms, as on many real ones, agents must read them far more often, and the demo takes longer; give it the --limit."`
	Speed         float64       `placeholder:"N" help:"By how much their time is faster than yours; without it, ten iterations a second."`
	Listen        string        `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where the server listens; any free port without it."`
	Limit         time.Duration `default:"55s" placeholder:"55s" help:"The time in which the summary must be there."`
	Keep          bool          `help:"Train on after the summary, until interrupted, for a look around."`
	LogLevel      string        `enum:"none,error,warn,info,debug" default:"none" help:"What server and agents log on standard error: none, error, warn, info or debug."`
	JSON          bool          `name:"json" help:"One JSON object at the end, on standard output; what happens on standard error."`
}

// Help is the text of perseus demo --help.
func (demoCommand) Help() string {
	return `Shows everything end to end, without a GPU: a server, an agent for each pipeline, emulated GPUs, and a training job in scaled time. The job is profiled while it trains, its frontier computed, the schedule deployed; a GPU gets hot and the others are slowed for free; in the end all clocks are as they were. What was saved is checked against the exact energy of the GPUs, which server and agents cannot see, and against the simulator. The exit status is 1 where a check fails.

Examples:

    perseus demo
    perseus demo --profile P.csv --blocking-power 83.64
    perseus demo --keep --listen 127.0.0.1:7787
    perseus demo --json`
}

// grace is how long the parts have to end after an interrupt.
func (demoCommand) grace() time.Duration { return 20 * time.Second }

// Run shows the demo with package demo.
func (c *demoCommand) Run(w *world) error {
	config := demo.Config{
		Stages: cmp.Or(c.Stages, 8), Pipelines: c.Pipelines, Microbatches: c.Microbatches, Blocking: c.BlockingPower,
		Latency: c.SwitchLatency, CounterStep: c.CounterStep, Speed: c.Speed, Listen: c.Listen, Keep: c.Keep, Limit: c.Limit, Version: version,
	}
	if c.Speed < 0 || c.SwitchLatency < 0 || c.CounterStep < 0 {
		return input(errors.New("--speed, --switch-latency and --counter-step must not be negative"))
	}
	if c.Profile != "" {
		p, err := c.measured(w)
		if err != nil {
			return input(err)
		}
		if c.Stages != 0 && c.Stages != p.Stages() {
			return input(fmt.Errorf("--stages is %d, but the profile has %d", c.Stages, p.Stages()))
		}
		config.Profile, config.Stages = p, p.Stages()
	}
	if c.LogLevel != "none" {
		var level slog.Level
		if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
			return input(fmt.Errorf("--log-level: %w", err))
		}
		config.Logger = slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: level}))
	}
	out := w.stdout
	if c.JSON {
		out = w.stderr
	}
	view := demo.Lines(out)
	if width, _, ok := terminal(out); ok {
		view = demo.Terminal(out, width)
	}
	result, err := demo.Run(w.ctx, config, view, func(r *demo.Result) {
		_ = r.WriteText(out) // standard output keeps its first error, standard error is not checked
	})
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(w.stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(result); err != nil {
			return err
		}
	}
	return result.Err()
}

// measured returns the profile that drives the GPUs.
func (c *demoCommand) measured(w *world) (*profile.Profile, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	p, err := readProfile(w, c.Profile, options)
	if err != nil {
		return nil, err
	}
	if p.GPUsPerStage != 1 {
		return nil, fmt.Errorf("%s: the profile has %d GPUs a stage; the demo emulates one", p.Report.Name, p.GPUsPerStage)
	}
	return p, nil
}
