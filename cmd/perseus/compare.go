package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/baseline"
	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

type compareCommand struct {
	Frontier string `arg:"" optional:"" file:"" placeholder:"F.json" help:"The frontier, from perseus frontier; - is standard input."`
	Profile  string `short:"p" file:"" placeholder:"P.csv" help:"Its profile, so that baselines use every measured clock; or, without a frontier, the profile to make one from."`

	Schedule      string       `group:"Without a frontier:" placeholder:"1f1b" help:"As in perseus frontier; 1f1b without it."`
	Microbatches  int          `min:"1" group:"Without a frontier:" short:"m" placeholder:"M" help:"As in perseus frontier."`
	Ranks         int          `min:"1" group:"Without a frontier:" placeholder:"N" help:"As in perseus frontier."`
	Chunks        int          `min:"1" group:"Without a frontier:" placeholder:"N" help:"As in perseus frontier."`
	Group         int          `min:"1" group:"Without a frontier:" placeholder:"N" help:"As in perseus frontier."`
	BlockingPower []unit.Power `group:"Without a frontier:" placeholder:"W" help:"As in perseus frontier."`

	profileFlags
	jobFlags

	Paper      string      `group:"The paper's tables:" folder:"" placeholder:"DIR" help:"Make the tables of the paper from the profiles in a folder, the published figures beside them; docs/compare.md says which files these are and where they are published."`
	LargeScale bool        `group:"The paper's tables:" help:"Emulate 1,024 to 16,384 GPUs, from --profile or with --paper."`
	Straggler  *plan.Ratio `group:"The paper's tables:" placeholder:"1.2" help:"The straggler of --large-scale; 1.2 without it."`

	Effort    round.Effort `default:"fast" choices:"fast,normal,best" placeholder:"fast" help:"As in perseus plan. Plans that are no better than their baseline are made again with more."`
	Pipelines int          `default:"1" placeholder:"D" help:"How many pipelines run data-parallel: energies are of all."`
	UnitTime  unit.Time    `placeholder:"1ms" help:"The unit of time of the published algorithm. Without it, 1 ms of the job: a tenth of it for the paper's profiles, which are a tenth of a stage."`

	Noise      percentage   `group:"Noise:" placeholder:"1%" help:"Also show how much slower the fastest plan is where op times have this standard deviation."`
	Margin     []percentage `group:"Noise:" placeholder:"0.5%" help:"Margins to plan with. Without it 0.5 and 1 standard deviations."`
	Iterations int          `group:"Noise:" default:"50" placeholder:"N" help:"How many iterations to average over."`
	Seed       uint64       `group:"Noise:" default:"1" placeholder:"N" help:"Of the noise."`

	JSON   bool   `name:"json" help:"For programs."`
	Format string `enum:"text,json" default:"text" hidden:"" help:"text or json."`
	Output string `short:"o" file:"" output:"" placeholder:"FILE" default:"-" help:"Where to write it. Standard output without it."`
}

// Help is the text of perseus compare --help.
func (compareCommand) Help() string {
	return `Sets side by side what others would plan: all maximum clocks, Zeus with one clock or one for each stage, EnvPipe's envelope, and Perseus as published; and what perseus plans at the time of each.

Examples:

    perseus compare F.json --profile P.csv
    perseus compare -p P.csv -m 96 --blocking-power 83.64 --noise 1%
    perseus compare --paper profiles/
    perseus compare -p P.csv --blocking-power 83.64 --large-scale`
}

// Run compares with package baseline.
func (c *compareCommand) Run(w *world) error {
	c.JSON = c.JSON || c.Format == "json"
	var write func(io.Writer) error
	var err error
	switch {
	case c.Paper != "" && c.Frontier != "" || c.LargeScale && c.Frontier != "":
		err = errors.New("--paper and --large-scale make frontiers of their own: leave out F.json")
	case c.Straggler != nil && !c.LargeScale:
		err = errors.New("--straggler is that of --large-scale; under one of a single pipeline, compare says what is saved at each time")
	case (c.Paper != "" || c.LargeScale) && (c.Schedule != "" || c.Microbatches != 0 || c.pipelineGiven() || c.jobFlags.given()):
		err = errors.New("--paper and --large-scale have the paper's pipelines: leave out the flags of pipelines and jobs")
	case (c.Paper != "" || c.LargeScale) && (c.Noise != 0 || c.Margin != nil || c.Pipelines != 1 || c.UnitTime != 0):
		err = errors.New("--paper and --large-scale have the paper's conditions: leave out --noise, --margin, --pipelines and --unit-time")
	case c.Frontier != "" && (c.Schedule != "" || c.Microbatches != 0 || len(c.BlockingPower) > 0 || c.pipelineGiven() || c.jobFlags.given()):
		err = errors.New("the frontier says by itself what runs, where and how: leave out the flags of pipelines and jobs, or F.json")
	case c.Frontier != "" && c.profileFlags.given():
		err = errors.New("the frontier says by itself how its profile was read: leave out --units and --skip-bad-rows")
	case c.Margin != nil && c.Noise == 0:
		err = errors.New("--margin is for --noise: say how much op times vary, as in --noise 1%")
	case c.Paper != "" || c.LargeScale:
		write, err = c.tables(w)
	default:
		write, err = c.comparison(w)
	}
	if err != nil {
		return input(err)
	}
	return fileio.Write(w.ctx, c.Output, w.stdout, write)
}

func (c *compareCommand) comparison(w *world) (func(io.Writer) error, error) {
	switch {
	case c.Pipelines < 1 || c.Pipelines > 1<<16:
		return nil, fmt.Errorf("--pipelines %d: expected 1 … %d", c.Pipelines, 1<<16)
	case c.Iterations < 1 || c.Iterations > 1<<20:
		return nil, fmt.Errorf("--iterations %d: expected 1 … %d", c.Iterations, 1<<20)
	case c.Noise < 0 || c.Noise.ratio() > simulate.MaxNoise:
		return nil, fmt.Errorf("--noise %s: expected 0%% … %s", c.Noise.ratio().Percent(), simulate.MaxNoise.Percent())
	case c.UnitTime < 0:
		return nil, fmt.Errorf("--unit-time %v: it is below 0", c.UnitTime)
	}
	f, m, err := c.job(w)
	if err != nil {
		return nil, err
	}
	p, err := simulate.New(&f.Header, m)
	if err != nil {
		return nil, err
	}
	margins := []plan.Ratio{c.Noise.ratio() / 2, c.Noise.ratio()}
	if c.Margin != nil {
		margins = nil
		for _, m := range c.Margin {
			margins = append(margins, m.ratio())
		}
	}
	result, err := baseline.Compare(f, p, baseline.CompareOptions{
		Effort: c.Effort, Pipelines: c.Pipelines, Tau: c.UnitTime,
		Noise: c.Noise.ratio(), Margins: margins, Seed: c.Seed, Iterations: c.Iterations,
	})
	if err != nil {
		return nil, err
	}
	if c.JSON {
		return result.WriteJSON, nil
	}
	return result.WriteText, nil
}

func (c *compareCommand) pipelineGiven() bool { return c.Ranks != 0 || c.Chunks != 0 || c.Group != 0 }

// job returns the frontier and, if there are any, the measurements.
func (c *compareCommand) job(w *world) (*frontierfile.File, characterize.Measurements, error) {
	if c.Frontier != "" {
		f, err := w.readFrontier(c.Frontier)
		if err != nil || c.Profile == "" {
			return f, nil, err
		}
		options, err := report.ProfileOptions(&f.Header)
		if err != nil {
			return nil, nil, err
		}
		p, err := readProfile(w, c.Profile, options)
		if err != nil {
			return nil, nil, err
		}
		return f, p, isFrom(p, &f.Header)
	}
	switch {
	case c.Profile == "":
		return nil, nil, errors.New("what to compare is missing: a frontier file, or --profile with --microbatches and --blocking-power")
	case c.Microbatches == 0:
		return nil, nil, errors.New("--microbatches is missing: how many microbatches one pipeline runs in an iteration")
	case len(c.BlockingPower) == 0:
		return nil, nil, errors.New("--blocking-power is missing: what one GPU draws while it waits, as in --blocking-power 84")
	}
	spec, err := c.spec(w)
	if err != nil {
		return nil, nil, err
	}
	options, err := c.options()
	if err != nil {
		return nil, nil, err
	}
	p, err := readProfile(w, c.Profile, options)
	if err != nil {
		return nil, nil, err
	}
	order, err := jobs.Order(cmp.Or(c.Schedule, "1f1b"), pipeline.Size{
		Ranks: cmp.Or(c.Ranks, c.PP), Chunks: c.Chunks, Microbatches: c.Microbatches, Group: c.Group,
	}, p.Stages())
	if err != nil {
		return nil, nil, err
	}
	job, notes, err := spec.Job(p, order, c.BlockingPower)
	if err != nil {
		return nil, nil, err
	}
	w.say(p, notes)
	if err := w.large(opsOf(&job), false, false, "take fewer --microbatches"); err != nil {
		return nil, nil, err
	}
	f, err := characterize.Run(w.ctx, job, characterize.Options{})
	return f, p, err
}

// tables makes the paper's tables and the emulation.
func (c *compareCommand) tables(w *world) (func(io.Writer) error, error) {
	straggler := plan.One * 6 / 5
	if c.Straggler != nil {
		straggler = *c.Straggler
	}
	if straggler < plan.One {
		return nil, fmt.Errorf("--straggler %v: expected a factor of at least 1", straggler)
	}
	workloads, err := c.workloads(w)
	if err != nil {
		return nil, err
	}
	var tables []*baseline.Tables
	var scale []*baseline.LargeScale
	for _, k := range workloads {
		if c.Paper != "" {
			t, err := baseline.Paper(w.ctx, k, c.Effort)
			if err != nil {
				return nil, err
			}
			tables = append(tables, t)
		}
		if c.LargeScale {
			l, err := baseline.Emulate(w.ctx, k, straggler, c.Effort)
			if err != nil {
				return nil, err
			}
			scale = append(scale, l)
		}
	}
	if c.JSON {
		return func(out io.Writer) error { return baseline.WriteJSON(out, tables, scale) }, nil
	}
	return func(out io.Writer) error {
		var err error
		for _, t := range tables {
			err = errors.Join(err, t.WriteText(out))
		}
		for _, l := range scale {
			err = errors.Join(err, l.WriteText(out))
		}
		return err
	}, nil
}

func (c *compareCommand) workloads(w *world) ([]baseline.Workload, error) {
	paths := []string{c.Profile}
	if c.Paper != "" {
		var err error
		if paths, err = filepath.Glob(filepath.Join(c.Paper, "*.csv*")); err != nil {
			return nil, err
		}
		if _, err := os.Stat(c.Paper); err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: there is no profile (*.csv) in it; the paper's are in the folder sosp24_data of its artifact: gpt3-175b-a100-sxm.csv, bloom-176b-a40.csv and so on", c.Paper)
		}
		if err := fileio.Distinct(paths, []string{c.Output}); err != nil {
			return nil, err
		}
		slices.Sort(paths)
	} else if c.Profile == "" {
		return nil, errors.New("--large-scale needs --profile")
	}
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	var all []baseline.Workload
	for _, path := range paths {
		p, err := readProfile(w, path, options)
		if err != nil {
			return nil, err
		}
		w.say(p, nil)
		var blocking unit.Power
		if len(c.BlockingPower) > 0 {
			blocking = c.BlockingPower[0]
		}
		name, _, _ := strings.Cut(filepath.Base(path), ".csv")
		k, err := baseline.NewWorkload(name, p, blocking)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}
