package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/verify"
)

type verifyCommand struct {
	Frontier string   `arg:"" name:"F.json" file:"" help:"The frontier, from perseus frontier; - is standard input."`
	Profile  []string `short:"p" file:"" sep:"none" xor:"profile" placeholder:"P.csv" help:"The profile that it was computed from; - is standard input. Several as they were given to perseus frontier."`
	DAG      string   `name:"dag" file:"" xor:"profile" placeholder:"G.json" help:"The graph that it was computed from."`
	Quiet    bool     `short:"q" help:"Print nothing where all is well."`
}

// Help is the text of perseus verify --help.
func (verifyCommand) Help() string {
	return `Checks everything the file says from the profile and the rules of the pipeline alone, with code that shares nothing with the solver: each option, time and energy, each bound, and that the frontier between the points is what the file says. How the profile was read (--units, --skip-bad-rows), and what was said besides (--derive, --fixed, --cap and so on), is in the file and applied anew. An order that the file holds is checked against the rules and then compared with that of the schedule it names.

The exit status is 0 where all of it is proved, 1 at the first thing that is not as the file says, 2 where a file cannot be read.

Example:

    perseus verify F.json --profile P.csv
    perseus verify F.json --dag G.json`
}

// Run verifies a frontier with package verify.
func (c *verifyCommand) Run(w *world) error {
	measured := c.Profile
	if c.DAG != "" {
		measured = []string{c.DAG}
	}
	switch {
	case len(measured) == 0:
		return input(errors.New("--profile is missing: the profile that the frontier was computed from, or --dag, the graph"))
	case c.Frontier == fileio.Stdio && slices.Contains(measured, fileio.Stdio):
		return input(errors.New("the frontier and --profile cannot both be standard input"))
	}
	profile, _, err := readJoined(w, measured)
	if err != nil {
		return input(err)
	}
	r, err := fileio.Open(c.Frontier, w.stdin)
	if err != nil {
		return input(err)
	}
	defer r.Close()
	report, err := verify.Read(r, fileio.Name(c.Frontier), profile)
	var violation *verify.Violation
	switch {
	case errors.As(err, &violation):
		return fmt.Errorf("%s: not as it says: %w", fileio.Name(c.Frontier), err)
	case err != nil:
		return input(err)
	}
	// Package verify knows the rules that orders keep, not the schedules' names.
	if err := jobs.CheckSchedule(report.Header); err != nil {
		return fmt.Errorf("%s: not as it says: %w", fileio.Name(c.Frontier), err)
	}
	if c.Quiet {
		return nil
	}
	for _, line := range report.Lines() {
		if _, err := fmt.Fprintln(w.stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func readAll(w *world, path string) ([]byte, error) {
	return fileio.ReadAll(path, w.stdin)
}
