package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/progress"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

type frontierCommand struct {
	Profile []string `short:"p" file:"" sep:"none" xor:"profile" placeholder:"P.csv" help:"The measurements; - is standard input, .gz is unpacked. Several, with the same header, are taken as one: stages may be on GPUs of several types."`
	DAG     string   `name:"dag" file:"" xor:"profile" placeholder:"G.json" help:"Instead of a profile and a pipeline: any graph of ops with their options; perseus schedules dag-schema prints the format."`
	Example bool     `xor:"profile" help:"Use a synthetic profile of 8 stages in place of measurements. Then the other flags have defaults: 1f1b, 12 microbatches, 84 W."`

	WriteProfile string `file:"" output:"" placeholder:"P.csv" help:"With --example: also write the synthetic profile, for perseus verify and perseus show."`

	Schedule      string       `group:"The pipeline:" xor:"schedule" schedules:"" placeholder:"1f1b" help:"One of ${schedules}."`
	ScheduleCSV   string       `name:"schedule-csv" group:"The pipeline:" xor:"schedule" file:"" placeholder:"S.csv" help:"Instead of a schedule: what each rank runs, as PyTorch's schedule CSV."`
	Microbatches  int          `min:"1" group:"The pipeline:" short:"m" placeholder:"M" help:"Microbatches of an iteration, in one pipeline."`
	Ranks         int          `min:"1" group:"The pipeline:" placeholder:"N" help:"Pipeline ranks. Without it, as many as hold the profile's stages."`
	Chunks        int          `min:"1" group:"The pipeline:" placeholder:"N" help:"Stages that each rank holds, where the schedule has several. The profile then has ranks × chunks stages, each chunk measured by itself."`
	Group         int          `min:"1" group:"The pipeline:" placeholder:"N" help:"Microbatches that run through one chunk before the next, in interleaved schedules."`
	BlockingPower []unit.Power `group:"The pipeline:" placeholder:"W" help:"What one GPU draws while it waits, in watts: one value, or one for each rank, as in 84,84,70,70."`

	jobFlags
	profileFlags

	Points  int         `min:"3" group:"The frontier:" placeholder:"N" help:"At most this many points, in place of all."`
	Epsilon *percentage `group:"The frontier:" placeholder:"0.01%" help:"So few points that lines between them stay this close to the frontier."`
	Output  string      `group:"The frontier:" short:"o" file:"" output:"" placeholder:"F.json" help:"Where to write it; compressed if the name ends in .gz. Without it: standard output, or for people if that is a terminal."`
	jsonFlag
	Format string `group:"The frontier:" enum:"auto,json,text" default:"auto" help:"json (the frontier), text (as perseus show) or auto."`
	Quiet  bool   `short:"q" help:"No summary on standard error."`
}

// Help is the text of perseus frontier --help.
func (frontierCommand) Help() string {
	return `The profile is CSV with the columns stage,instruction,frequency,time,energy (MHz, s, J): each forward and backward of each stage, measured at each clock. Repeats are combined by their median. The frontier is exact, each of its points has the clock of every op, and a proof of how close to the best it is, which perseus verify checks.

Examples:

    perseus frontier --example
    perseus frontier -p P.csv --schedule 1f1b -m 96 --blocking-power 83.64 -o F.json
    perseus frontier -p P.csv --schedule interleaved-1f1b -m 96 --chunks 2 --blocking-power 84 -o F.json.gz
    perseus frontier -p P.csv --schedule-csv S.csv --blocking-power 84 | perseus show -
    perseus frontier -p P.csv --schedule zb-h1 -m 24 --blocking-power 84 --derive split-backward -o F.json
    perseus frontier -p P.csv --schedule 1f1b -m 24 --blocking-power 84 --tp 4 --dp 8 --cap rank=3:1200MHz -o F.json
    perseus frontier --dag G.json -o F.json`
}

// Run computes a frontier with package characterize and writes it.
func (c *frontierCommand) Run(w *world) error {
	if len(c.Profile) == 0 && !c.Example && c.DAG == "" {
		return input(errors.New("--profile is missing: a CSV file of measurements, or - for standard input; --example does without"))
	}
	if c.WriteProfile != "" && !c.Example {
		return input(errors.New("--write-profile writes the profile of --example; a profile of measurements is there already"))
	}
	if c.WriteProfile == fileio.Stdio && c.output() == fileio.Stdio {
		return input(errors.New("--write-profile and the frontier cannot both be standard output; give --output"))
	}
	for _, path := range []string{c.output(), cmp.Or(c.WriteProfile, fileio.Stdio)} {
		if err := fileio.Check(path); err != nil {
			return input(err)
		}
	}
	var measured *profile.Profile
	job, notes, err := c.graphJob(w)
	if c.DAG == "" {
		measured, job, notes, err = c.profileJob(w)
	}
	if err != nil {
		return input(err)
	}
	few := c.Points != 0 || c.Epsilon != nil
	if err := w.large(opsOf(&job), few, c.Quiet, "give --points or --epsilon to have fewer points"); err != nil {
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
	return report.WriteSummary(w.stderr, f, notes)
}

// profileJob returns the job of a profile and a pipeline, and what was found.
func (c *frontierCommand) profileJob(w *world) (measured *profile.Profile, job characterize.Job, notes []string, err error) {
	if measured, err = c.measured(w); err != nil {
		return nil, job, nil, err
	}
	job, notes, err = c.job(w, measured)
	return measured, job, append(measured.Report.Lines(), notes...), err
}

// graphJob returns the job of --dag.
func (c *frontierCommand) graphJob(w *world) (job characterize.Job, notes []string, err error) {
	if c.DAG == "" {
		return job, nil, nil
	}
	if c.Schedule != "" || c.ScheduleCSV != "" || c.Microbatches != 0 || c.Ranks != 0 || c.Chunks != 0 || c.Group != 0 ||
		len(c.BlockingPower) != 0 || c.profileFlags.given() || c.jobFlags.given() {
		return job, nil, errors.New("--dag says by itself what runs, where and how: leave out the flags of pipelines and profiles")
	}
	text, err := readAll(w, c.DAG)
	if err != nil {
		return job, nil, err
	}
	return jobs.Graph(text, fileio.Name(c.DAG))
}

// share returns how much of the walk along the frontier is done.
func share(p characterize.Progress) float64 {
	return (p.Slow - p.At).Seconds() / (p.Slow - p.Fast).Seconds()
}

func (c *frontierCommand) measured(w *world) (*profile.Profile, error) {
	options, err := c.options()
	switch {
	case err != nil:
		return nil, err
	case c.Example:
		return jobs.ExampleProfile(), nil
	}
	return readProfiles(w, c.Profile, options)
}

func readProfile(w *world, path string, options profile.Options) (*profile.Profile, error) {
	r, err := fileio.Open(path, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return profile.Read(r, fileio.Name(path), options)
}

// readProfiles returns the profile in one file, or in several that are taken as one.
func readProfiles(w *world, paths []string, options profile.Options) (*profile.Profile, error) {
	if len(paths) == 1 {
		return readProfile(w, paths[0], options)
	}
	text, name, err := readJoined(w, paths)
	if err != nil {
		return nil, err
	}
	return profile.Read(bytes.NewReader(text), name, options)
}

// readJoined returns the text of one or several profiles as one, and a name for it.
func readJoined(w *world, paths []string) (text []byte, name string, err error) {
	var texts [][]byte
	var names []string
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			return nil, "", fmt.Errorf("--profile %s is given twice", path)
		}
		text, err := readAll(w, path)
		if err != nil {
			return nil, "", err
		}
		texts, names = append(texts, text), append(names, fileio.Name(path))
	}
	return jobs.JoinProfiles(texts, names)
}

// job returns what is to be computed, from the flags and the profile.
func (c *frontierCommand) job(w *world, p *profile.Profile) (job characterize.Job, notes []string, err error) {
	e := jobs.Example{
		Schedule: c.Schedule, Blocking: c.BlockingPower,
		Size: pipeline.Size{Ranks: cmp.Or(c.Ranks, c.PP), Chunks: c.Chunks, Microbatches: c.Microbatches, Group: c.Group},
	}
	spec, err := c.spec(w)
	if err != nil {
		return job, nil, err
	}
	if c.Example {
		e = e.WithDefaults(c.ScheduleCSV == "")
	}
	var order *pipeline.Order
	switch {
	case c.ScheduleCSV != "" && e.Size != pipeline.Size{Ranks: c.PP}:
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
		return job, nil, err
	}
	return spec.Job(p, order, e.Blocking)
}

func (c *frontierCommand) readOrder(w *world) (*pipeline.Order, error) {
	if c.ScheduleCSV == fileio.Stdio && slices.Contains(c.Profile, fileio.Stdio) {
		return nil, errors.New("--profile and --schedule-csv cannot both be standard input")
	}
	r, err := fileio.OpenText(c.ScheduleCSV, w.stdin)
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
	c.Format = c.or(c.Format)
	if c.Format == "text" || c.Format == "auto" && path == fileio.Stdio && onTerminal {
		width, color := w.look()
		return fileio.Write(w.ctx, path, w.stdout, func(out io.Writer) error {
			return writeShown(out, f, report.TextOptions{Width: width, Color: color && path == fileio.Stdio})
		})
	}
	return fileio.Write(w.ctx, path, w.stdout, func(out io.Writer) error {
		_, err := f.WriteTo(out)
		return err
	})
}
