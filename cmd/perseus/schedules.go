package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
)

type schedulesCommand struct {
	List      schedulesListCommand    `cmd:"" default:"withargs" help:"List the schedules, with a picture of each."`
	Show      schedulesShowCommand    `cmd:"" help:"Show what each rank runs, in which order."`
	Savings   schedulesSavingsCommand `cmd:"" help:"Compare what all schedules leave to save, for the same model on the same GPUs."`
	DAGSchema schedulesDAGSchemaCmd   `cmd:"" name:"dag-schema" help:"Print the JSON Schema of what perseus frontier --dag reads."`
}

// Help is the text of perseus schedules --help.
func (schedulesCommand) Help() string {
	return `Examples:

    perseus schedules
    perseus schedules show 1f1b --ranks 4 --microbatches 8
    perseus schedules show zbv --ranks 4 --microbatches 8 --format csv > order.csv
    perseus schedules show interleaved-1f1b --ranks 4 --chunks 2 --microbatches 6 --group 6 --format csv
    perseus schedules list --json`
}

type schedulesDAGSchemaCmd struct{}

// Run prints the schema that package dagfile has.
func (schedulesDAGSchemaCmd) Run(w *world) error {
	_, err := w.stdout.Write(dagfile.Schema())
	return err
}

type schedulesListCommand struct {
	JSON   bool   `name:"json" help:"As JSON, for programs."`
	Format string `enum:"text,json" default:"text" hidden:"" help:"text or json."`
}

// Run lists the schedules that package pipeline builds, with a picture of each.
func (c schedulesListCommand) Run(w *world) error {
	if c.JSON || c.Format == "json" {
		return listJSON(w)
	}
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

// listJSON is the list as JSON.
func listJSON(w *world) error {
	type size struct {
		Ranks        int `json:"ranks"`
		Chunks       int `json:"chunks"`
		Microbatches int `json:"microbatches"`
		Group        int `json:"group_size,omitempty"`
	}
	type schedule struct {
		Name         string     `json:"name"`
		Aliases      []string   `json:"aliases"`
		Summary      string     `json:"summary"`
		Sizes        string     `json:"sizes"`
		Placement    string     `json:"placement"`
		Instructions []string   `json:"instructions"`
		Example      size       `json:"example"`
		Picture      []string   `json:"picture"`
		Order        [][]string `json:"order"`
	}
	var all []schedule
	for _, s := range pipeline.Schedules() {
		order, err := pipeline.Build(s.Name, s.Example)
		if err != nil {
			return err
		}
		picture, err := order.Picture()
		if err != nil {
			return err
		}
		all = append(all, schedule{
			Name: s.Name, Aliases: append([]string{}, s.Aliases...), Summary: s.Summary, Sizes: s.Sizes, Placement: s.Placement.String(),
			Instructions: order.Instructions(),
			Example:      size{order.Size.Ranks, order.Size.Chunks, order.Size.Microbatches, order.Size.Group},
			Picture:      strings.Split(strings.TrimSuffix(picture, "\n"), "\n"), Order: order.ToActions(),
		})
	}
	e := json.NewEncoder(w.stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"schedules": all})
}

type schedulesShowCommand struct {
	Name string `arg:"" schedules:"" help:"The schedule: ${schedules}."`

	Ranks        *int `min:"1" placeholder:"N" help:"Pipeline ranks. What is not given is of a small size that shows the schedule's shape."`
	Microbatches *int `min:"1" short:"m" placeholder:"N" help:"Microbatches of an iteration."`
	Chunks       *int `min:"1" placeholder:"N" help:"Stages that each rank holds, where the schedule has several."`
	Group        *int `min:"1" placeholder:"N" help:"Microbatches that run through one chunk before the next, in interleaved schedules."`
	jsonFlag
	Format string `enum:"text,csv,json" default:"text" help:"text (a picture), csv (PyTorch's schedule CSV) or json."`
}

// Run prints the order that package pipeline builds.
func (c *schedulesShowCommand) Run(w *world) error {
	s, err := pipeline.Find(c.Name)
	if err != nil {
		return input(err)
	}
	size := s.Example
	for _, n := range []struct{ given, into *int }{
		{c.Ranks, &size.Ranks}, {c.Microbatches, &size.Microbatches}, {c.Chunks, &size.Chunks}, {c.Group, &size.Group},
	} {
		if n.given != nil {
			*n.into = *n.given
		}
	}
	order, err := pipeline.Build(c.Name, size)
	if err != nil {
		return input(err)
	}
	switch c.or(c.Format) {
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
