package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/verify"
)

type verifyCommand struct {
	Frontier string `arg:"" name:"F.json" file:"" help:"The frontier, from perseus frontier; - is standard input."`
	Profile  string `required:"" short:"p" file:"" placeholder:"P.csv" help:"The profile that it was computed from; - is standard input."`
	Quiet    bool   `short:"q" help:"Print nothing where all is well."`
}

// Help is the text of perseus verify --help.
func (verifyCommand) Help() string {
	return `Checks everything the file says from the profile and the rules of the pipeline alone, with code that shares nothing with the solver: each option, time and energy, each bound, and that the frontier between the points is what the file says. How the profile was read (--units, --skip-bad-rows) is in the file.

The exit status is 0 where all of it is proved, 1 at the first thing that is not as the file says, 2 where a file cannot be read.

Example:

    perseus verify F.json --profile P.csv`
}

// Run verifies a frontier with package verify.
func (c *verifyCommand) Run(w *world) error {
	if c.Frontier == fileio.Stdio && c.Profile == fileio.Stdio {
		return input(errors.New("the frontier and --profile cannot both be standard input"))
	}
	profile, err := readAll(w, c.Profile)
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
	case c.Quiet:
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
	r, err := fileio.Open(path, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fileio.Name(path), err)
	}
	return b, nil
}
