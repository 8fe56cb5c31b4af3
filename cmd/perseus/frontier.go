package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/progress"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

type frontierCommand struct {
	Profile string `short:"p" file:"" xor:"profile" placeholder:"P.csv" help:"The measurements; - is standard input, .gz is unpacked."`
	Example bool   `xor:"profile" help:"Use a synthetic profile of 8 stages in place of measurements. Then the other flags have defaults: 1f1b, 12 microbatches, 84 W."`

	WriteProfile string `file:"" placeholder:"P.csv" help:"With --example: also write the synthetic profile, for perseus verify and perseus show."`

	Schedule      string       `group:"The pipeline:" xor:"schedule" schedules:"" placeholder:"1f1b" help:"One of ${schedules}."`
	ScheduleCSV   string       `name:"schedule-csv" group:"The pipeline:" xor:"schedule" file:"" placeholder:"S.csv" help:"Instead of a schedule: what each rank runs, as PyTorch's schedule CSV."`
	Microbatches  int          `group:"The pipeline:" short:"m" placeholder:"M" help:"Microbatches of an iteration, in one pipeline."`
	Ranks         int          `group:"The pipeline:" placeholder:"N" help:"Pipeline ranks. Without it, as many as hold the profile's stages."`
	Chunks        int          `group:"The pipeline:" placeholder:"N" help:"Stages that each rank holds, where the schedule has several."`
	Group         int          `group:"The pipeline:" placeholder:"N" help:"Microbatches that run through one chunk before the next, in interleaved schedules."`
	BlockingPower []unit.Power `group:"The pipeline:" placeholder:"W" help:"What one GPU draws while it waits, in watts: one value, or one for each rank, as in 84,84,70,70."`

	Units       string `group:"The profile:" placeholder:"LIST" help:"Units of its columns, as in time=ms,energy=mJ,frequency=Hz."`
	SkipBadRows bool   `group:"The profile:" help:"Leave out rows that are wrong, and say how many, instead of failing."`

	Points  int         `group:"The frontier:" placeholder:"N" help:"At most this many points, in place of all."`
	Epsilon *plan.Ratio `group:"The frontier:" placeholder:"0.01%" help:"So few points that lines between them stay this close to the frontier."`
	Output  string      `group:"The frontier:" short:"o" file:"" placeholder:"F.json" help:"Where to write it; compressed if the name ends in .gz. Without it: standard output, or for people if that is a terminal."`
	Format  string      `group:"The frontier:" enum:"auto,json,text" default:"auto" help:"json (the frontier), text (as perseus show) or auto."`
	Quiet   bool        `short:"q" help:"No summary on standard error."`
}

// Help is the text of perseus frontier --help.
func (frontierCommand) Help() string {
	return `The profile is CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J): each forward and backward of each stage, measured at each clock. Repeats are combined by their median. The frontier is exact, each of its points has the clock of every op, and a proof of how close to the best it is, which perseus verify checks.

Examples:

    perseus frontier --example
    perseus frontier -p P.csv --schedule 1f1b -m 96 --blocking-power 83.64 -o F.json
    perseus frontier -p P.csv --schedule interleaved-1f1b -m 96 --chunks 2 --blocking-power 84 -o F.json.gz
    perseus frontier -p P.csv --schedule-csv S.csv --blocking-power 84 | perseus show -`
}

// Run computes a frontier with package characterize and writes it.
func (c *frontierCommand) Run(w *world) error {
	if c.Profile == "" && !c.Example {
		return input(errors.New("--profile is missing: a CSV file of measurements, or - for standard input; --example does without"))
	}
	if c.WriteProfile != "" && !c.Example {
		return input(errors.New("--write-profile writes the profile of --example; a profile of measurements is there already"))
	}
	for _, path := range []string{c.output(), cmp.Or(c.WriteProfile, fileio.Stdio)} {
		if err := fileio.Check(path); err != nil {
			return input(err)
		}
	}
	units, err := profile.ParseUnits(c.Units)
	if err != nil {
		return input(fmt.Errorf("--%w", err))
	}
	measured, err := c.measured(w, units)
	if err != nil {
		return input(err)
	}
	job, err := c.job(w, measured, units)
	if err != nil {
		return input(err)
	}
	var bar *progress.Bar
	if width, _, ok := terminal(w.stderr); ok && !c.Quiet {
		bar = progress.New(w.stderr, width, time.Now)
	}
	options := characterize.Options{Points: c.Points, Progress: func(p characterize.Progress) {
		bar.Set(share(p), fmt.Sprintf("%d points", p.Points))
	}}
	if c.Epsilon != nil {
		options.Epsilon = frontierfile.Ratio(*c.Epsilon)
	}
	f, err := characterize.Run(w.ctx, job, options)
	bar.Done()
	if err != nil {
		return input(err)
	}
	if c.WriteProfile != "" {
		if err := fileio.Write(w.ctx, c.WriteProfile, w.stdout, measured.WriteCSV); err != nil {
			return err
		}
	}
	if err := c.write(w, f); err != nil {
		return err
	}
	if c.Quiet {
		return nil
	}
	return report.WriteSummary(w.stderr, f, measured.Report.Lines())
}

// share returns how much of the walk along the frontier is done.
func share(p characterize.Progress) float64 {
	return (p.Slow - p.At).Seconds() / (p.Slow - p.Fast).Seconds()
}

func (c *frontierCommand) measured(w *world, units profile.Units) (*profile.Profile, error) {
	if c.Example {
		return jobs.ExampleProfile(), nil
	}
	return readProfile(w, c.Profile, profile.Options{Units: units, SkipBadRows: c.SkipBadRows})
}

func readProfile(w *world, path string, options profile.Options) (*profile.Profile, error) {
	r, err := fileio.Open(path, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return profile.Read(r, fileio.Name(path), options)
}

// job returns what is to be computed, from the flags and the profile.
func (c *frontierCommand) job(w *world, p *profile.Profile, units profile.Units) (job characterize.Job, err error) {
	e := jobs.Example{
		Schedule: c.Schedule, Blocking: c.BlockingPower,
		Size: pipeline.Size{Ranks: c.Ranks, Chunks: c.Chunks, Microbatches: c.Microbatches, Group: c.Group},
	}
	if c.Example {
		e = e.WithDefaults(c.ScheduleCSV == "")
	}
	var order *pipeline.Order
	switch {
	case c.ScheduleCSV != "" && e.Size != pipeline.Size{}:
		err = errors.New("--schedule-csv says by itself how many ranks, chunks and microbatches there are: leave out their flags")
	case c.ScheduleCSV != "":
		order, err = c.readOrder(w)
	case e.Schedule == "":
		err = errors.New("--schedule is missing, as in --schedule 1f1b; perseus schedules lists them")
	case e.Size.Microbatches == 0:
		err = errors.New("--microbatches is missing: how many microbatches one pipeline runs in an iteration")
	default:
		order, err = jobs.Order(e.Schedule, e.Size, p.Stages())
	}
	if err == nil && len(e.Blocking) == 0 {
		err = errors.New("--blocking-power is missing: what one GPU draws while it waits, as in --blocking-power 84")
	}
	if err != nil {
		return job, err
	}
	return jobs.New(p, units, order, e.Blocking)
}

func (c *frontierCommand) readOrder(w *world) (*pipeline.Order, error) {
	if c.ScheduleCSV == fileio.Stdio && c.Profile == fileio.Stdio {
		return nil, errors.New("--profile and --schedule-csv cannot both be standard input")
	}
	r, err := fileio.Open(c.ScheduleCSV, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return pipeline.ReadCSV(r, fileio.Name(c.ScheduleCSV))
}

func (c *frontierCommand) output() string { return cmp.Or(c.Output, fileio.Stdio) }

func (c *frontierCommand) write(w *world, f *frontierfile.File) error {
	path := c.output()
	_, _, onTerminal := terminal(w.stdout)
	if c.Format == "text" || c.Format == "auto" && path == fileio.Stdio && onTerminal {
		width, color := w.look()
		return fileio.Write(w.ctx, path, w.stdout, func(out io.Writer) error {
			return report.WriteText(out, f, report.TextOptions{Width: width, Color: color && path == fileio.Stdio})
		})
	}
	return fileio.Write(w.ctx, path, w.stdout, func(out io.Writer) error {
		_, err := f.WriteTo(out)
		return err
	})
}
