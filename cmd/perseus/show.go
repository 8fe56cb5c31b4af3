package main

import (
	"fmt"
	"io"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/report"
)

type showCommand struct {
	Frontier string `arg:"" name:"F.json" file:"" help:"The frontier, from perseus frontier; - is standard input."`

	jsonFlag
	Format string `enum:"text,csv,json,svg" default:"text" help:"text (for people), csv (all points), json (landmarks and savings) or svg (a picture)."`
	Output string `short:"o" file:"" output:"" placeholder:"FILE" default:"-" help:"Where to write it. Standard output without it."`
	ASCII  bool   `name:"ascii" help:"Draw the plot with plain characters."`

	Profile   []string `group:"How sure the savings are:" file:"" sep:"none" placeholder:"P.csv" help:"The profile, if ops were measured more than once: gives the interval of each saving, by drawing new profiles from the repeats."`
	Resamples int      `group:"How sure the savings are:" default:"1000" placeholder:"N" help:"How many profiles to draw."`
	Level     float64  `group:"How sure the savings are:" default:"95" placeholder:"95" help:"How sure the interval is to be, in percent."`
	Seed      uint64   `group:"How sure the savings are:" default:"1" placeholder:"N" help:"Of the random numbers: the same seed gives the same interval."`
}

// Help is the text of perseus show --help.
func (showCommand) Help() string {
	return `Savings are against all ops at their top clocks. Under a straggler, both sides wait for it.

Clocks for: the iteration time that the clocks are made for; a pipeline that is done before a straggler waits. Price of time: what each second of being slower saves in the ops from there on, before what waiting costs; below the blocking power of all GPUs together, being slower does not pay. Above the bound: how far the energy is, at most, above the least that clocks can reach in that time. The numbers are those of the file's points as they are: perseus plan refines a point and may save a little more. docs/show.md describes the CSV and the JSON.

Examples:

    perseus show F.json
    perseus show F.json --profile P.csv               # with intervals
    perseus show F.json --format svg -o frontier.svg
    perseus frontier --example | perseus show -

The variables NO_COLOR and COLUMNS are respected.`
}

// Run shows a frontier with package report.
func (c *showCommand) Run(w *world) error {
	f, err := w.readFrontier(c.Frontier)
	if err != nil {
		return input(err)
	}
	intervals, err := c.intervals(w, f)
	if err != nil {
		return input(err)
	}
	width, color := w.look()
	write := map[string]func(io.Writer) error{
		"text": func(out io.Writer) error {
			return writeShown(out, f, report.TextOptions{
				Width: width, Color: color && c.Output == fileio.Stdio, ASCII: c.ASCII, Intervals: intervals,
			})
		},
		"csv":  func(out io.Writer) error { return report.WriteCSV(out, f) },
		"json": func(out io.Writer) error { return report.WriteJSON(out, f, intervals) },
		"svg":  func(out io.Writer) error { return report.WriteSVG(out, f, report.Title(f)) },
	}[c.or(c.Format)]
	return fileio.Write(w.ctx, c.Output, w.stdout, write)
}

// writeShown writes a frontier for people, and where to go from it.
func writeShown(out io.Writer, f *frontierfile.File, o report.TextOptions) error {
	if err := report.WriteText(out, f, o); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nThese are points of the file as they are. perseus plan refines the one that is asked for, and may save a little more.")
	return err
}

func (c *showCommand) intervals(w *world, f *frontierfile.File) ([]report.Interval, error) {
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
	if err := isFrom(p, &f.Header); err != nil {
		return nil, err
	}
	if !p.HasRepeats() {
		fmt.Fprintf(w.stderr, "perseus: %s has no repeats: each op was measured once at each clock, which says nothing about how sure the savings are\n", p.Report.Name)
		return nil, nil
	}
	return report.Intervals(f, p, report.Resampling{Resamples: c.Resamples, Level: c.Level / 100, Seed: c.Seed})
}
