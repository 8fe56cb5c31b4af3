package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/report/page"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

type reportCommand struct {
	Frontier string   `arg:"" name:"F.json" file:"" help:"The frontier, from perseus frontier; - is standard input."`
	Output   string   `short:"o" file:"" output:"" placeholder:"FILE" help:"Where to write the page; - is standard output, which it is without --svg, --png and --trace."`
	Profile  []string `short:"p" file:"" sep:"none" placeholder:"P.csv" help:"The frontier's profile: what was dropped of it, and baselines at every measured clock."`
	Title    string   `placeholder:"TEXT" help:"The page's title."`

	Fastest   bool        `xor:"goal" group:"The plan to show (one of these):" help:"The fastest plan (the default)."`
	Time      *unit.Time  `xor:"goal" group:"The plan to show (one of these):" placeholder:"2.9s" help:"As in perseus plan."`
	Slowdown  *plan.Ratio `xor:"goal" group:"The plan to show (one of these):" placeholder:"1.1" help:"As in perseus plan."`
	Straggler *plan.Ratio `xor:"goal" group:"The plan to show (one of these):" placeholder:"1.2" help:"As in perseus plan."`
	Power     *unit.Power `xor:"goal" group:"The plan to show (one of these):" placeholder:"15kW" help:"As in perseus plan."`
	MinEnergy bool        `aliases:"least-energy" xor:"goal" group:"The plan to show (one of these):" help:"As in perseus plan."`

	Effort    round.Effort `group:"The plan to show (one of these):" default:"fast" choices:"fast,normal,best" placeholder:"fast" help:"As in perseus plan."`
	Published bool         `help:"Also show Perseus as published, which takes a few seconds."`

	Price    *page.Rate `group:"Cost:" placeholder:"0.12" help:"Money for a kilowatt-hour."`
	Currency string     `group:"Cost:" default:"USD" placeholder:"USD" help:"What that money is."`
	Carbon   *page.Rate `group:"Cost:" placeholder:"380" help:"Grams of CO2 for a kilowatt-hour."`
	PUE      plan.Ratio `name:"pue" group:"Cost:" default:"1" placeholder:"1" help:"What the data centre draws for each watt of its GPUs."`
	GPUs     int        `min:"1" name:"gpus" group:"Cost:" default:"10000" placeholder:"10000" help:"A fleet to reckon for."`

	SVG   string `name:"svg" group:"Parts of it:" folder:"" placeholder:"DIR" help:"Also write each picture as SVG into a folder, which is made if need be."`
	PNG   string `name:"png" group:"Parts of it:" folder:"" placeholder:"DIR" help:"Also write each picture as PNG into a folder."`
	Scale int    `group:"Parts of it:" default:"2" placeholder:"2" help:"How large PNG pictures are, 1 to 8."`
	Trace string `group:"Parts of it:" file:"" output:"" placeholder:"T.json" help:"Also write both timelines as a trace for Perfetto or chrome://tracing."`
}

// Help is the text of perseus report --help.
func (reportCommand) Help() string {
	return `Writes one HTML page that needs no network: the frontier with what other methods reach, a zoomable timeline with all top clocks and with planned clocks, the clocks of each stage, what they save in money and CO2, and what was dropped of the profile and why.

Examples:

    perseus report F.json -o report.html
    perseus report F.json -p P.csv --price 0.12 --carbon 380 --pue 1.2 -o report.html
    perseus report F.json --straggler 1.2 --png pictures --trace trace.json`
}

// Run writes a report with package report.
func (c *reportCommand) Run(w *world) error {
	for _, path := range []string{c.Output, c.Trace} {
		if path == "" {
			continue
		}
		if err := fileio.Check(path); err != nil {
			return input(err)
		}
	}
	contents, err := c.contents(w)
	if err != nil {
		return input(err)
	}
	if err := c.distinct(contents.Pictures()); err != nil {
		return input(err)
	}
	output := c.Output
	if output == "" && c.SVG == "" && c.PNG == "" && c.Trace == "" {
		output = fileio.Stdio
	}
	if output != "" {
		if err := fileio.Write(w.ctx, output, w.stdout, contents.WriteHTML); err != nil {
			return err
		}
	}
	if c.Trace != "" {
		write := func(out io.Writer) error { return page.WriteTrace(out, contents.Timelines()) }
		if err := fileio.Write(w.ctx, c.Trace, w.stdout, write); err != nil {
			return err
		}
	}
	for _, p := range contents.Pictures() {
		png := func(out io.Writer) error { return p.WritePNG(out, c.Scale) }
		if err := errors.Join(c.picture(w, c.SVG, p.Name+".svg", p.WriteSVG), c.picture(w, c.PNG, p.Name+".png", png)); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns an error where a picture would replace another file of this command.
func (c *reportCommand) distinct(pictures []*page.Picture) error {
	outputs := []string{c.Output, c.Trace}
	for _, p := range pictures {
		if c.SVG != "" {
			outputs = append(outputs, filepath.Join(c.SVG, p.Name+".svg"))
		}
		if c.PNG != "" {
			outputs = append(outputs, filepath.Join(c.PNG, p.Name+".png"))
		}
	}
	return fileio.Distinct(append([]string{c.Frontier}, c.Profile...), outputs)
}

// picture writes a file into a folder, or nothing where there is no folder.
func (c *reportCommand) picture(w *world, folder, name string, write func(io.Writer) error) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil { //nolint:gosec // as any new folder: the umask says who may read it
		return err
	}
	return fileio.Write(w.ctx, filepath.Join(folder, name), w.stdout, write)
}

func (c *reportCommand) contents(w *world) (*page.Contents, error) {
	if c.Scale < 1 || c.Scale > 8 {
		return nil, fmt.Errorf("--scale %d: expected 1 … 8", c.Scale)
	}
	if c.PUE == 0 {
		return nil, errors.New("--pue 0: expected 1 … 10: what the data centre draws for each watt of its GPUs")
	}
	f, err := w.readFrontier(c.Frontier)
	if err != nil {
		return nil, err
	}
	p, err := c.profile(w, f)
	if err != nil {
		return nil, err
	}
	return page.New(f, page.Options{
		Title: c.Title, Request: c.request(), Profile: p, Published: c.Published,
		Prices: page.Prices{Money: c.Price, Carbon: c.Carbon, Currency: c.Currency, Overhead: c.PUE, GPUs: c.GPUs},
	})
}

// profile returns the frontier's profile, or nil where none was given.
func (c *reportCommand) profile(w *world, f *frontierfile.File) (*profile.Profile, error) {
	if len(c.Profile) == 0 {
		return nil, nil
	}
	options, err := report.ProfileOptions(&f.Header)
	if err != nil {
		return nil, err
	}
	p, err := readProfiles(w, c.Profile, options)
	if err != nil {
		return nil, err
	}
	return p, isFrom(p, &f.Header)
}

func (c *reportCommand) request() plan.Request {
	return goal{c.Time, c.Slowdown, c.Straggler, c.Power, c.MinEnergy}.of(plan.Request{Effort: c.Effort})
}
