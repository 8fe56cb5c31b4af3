package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/pipeline"
)

type schedulesCommand struct {
	List schedulesListCommand `cmd:"" default:"1" help:"List the schedules."`
	Show schedulesShowCommand `cmd:"" help:"Show what each rank runs, in which order."`
}

// Help is the text of perseus schedules --help.
func (schedulesCommand) Help() string {
	return `Examples:

    perseus schedules
    perseus schedules show 1f1b --ranks 4 --microbatches 8
    perseus schedules show zbv --ranks 4 --microbatches 8 --format csv > order.csv`
}

type schedulesListCommand struct{}

// Run lists the schedules that package pipeline builds, with a picture of each.
func (schedulesListCommand) Run(w *world) error {
	for i, s := range pipeline.Schedules() {
		if i > 0 {
			fmt.Fprintln(w.stdout)
		}
		fmt.Fprintf(w.stdout, "%s\n    %s\n    sizes: %s\n", s.Name, s.Summary, s.Sizes)
		if len(s.Aliases) > 0 {
			fmt.Fprintf(w.stdout, "    also called %s\n", strings.Join(s.Aliases, ", "))
		}
		order, err := pipeline.Build(s.Name, s.Example)
		if err != nil {
			return err
		}
		picture, err := order.Picture()
		if err != nil {
			return err
		}
		for line := range strings.Lines(picture) {
			fmt.Fprint(w.stdout, "    "+line)
		}
	}
	return nil
}

type schedulesShowCommand struct {
	Name string `arg:"" schedules:"" help:"The schedule: ${schedules}."`

	Ranks        int    `placeholder:"N" help:"Pipeline ranks. What is not given is of a small size that shows the schedule's shape."`
	Microbatches int    `short:"m" placeholder:"N" help:"Microbatches of an iteration."`
	Chunks       int    `placeholder:"N" help:"Stages that each rank holds, where the schedule has several."`
	Group        int    `placeholder:"N" help:"Microbatches that run through one chunk before the next, in interleaved schedules."`
	Format       string `enum:"text,csv,json" default:"text" help:"text (a picture), csv (PyTorch's schedule CSV) or json."`
}

// Run prints the order that package pipeline builds.
func (c *schedulesShowCommand) Run(w *world) error {
	s, err := pipeline.Find(c.Name)
	if err != nil {
		return input(err)
	}
	size := s.Example
	if c.Ranks != 0 || c.Microbatches != 0 || c.Chunks != 0 || c.Group != 0 {
		size = pipeline.Size{
			Ranks: cmp.Or(c.Ranks, size.Ranks), Microbatches: cmp.Or(c.Microbatches, size.Microbatches),
			Chunks: cmp.Or(c.Chunks, size.Chunks), Group: c.Group,
		}
	}
	order, err := pipeline.Build(c.Name, size)
	if err != nil {
		return input(err)
	}
	switch c.Format {
	case "csv":
		return order.WriteCSV(w.stdout)
	case "json":
		e := json.NewEncoder(w.stdout)
		return e.Encode(struct {
			Schedule     string     `json:"schedule"`
			Ranks        int        `json:"ranks"`
			Chunks       int        `json:"chunks"`
			Microbatches int        `json:"microbatches"`
			Group        int        `json:"group_size,omitempty"`
			Stages       int        `json:"stages"`
			Placement    string     `json:"placement"`
			Order        [][]string `json:"order"`
		}{
			order.Schedule, order.Size.Ranks, order.Size.Chunks, order.Size.Microbatches, order.Size.Group,
			order.Stages, order.Placement.String(), order.ToActions(),
		})
	}
	picture, err := order.Picture()
	if err != nil {
		return input(fmt.Errorf("%w; --format csv writes any size", err))
	}
	_, err = fmt.Fprint(w.stdout, picture)
	return err
}
