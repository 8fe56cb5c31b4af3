package main

import (
	"io"

	"github.com/perseus-energy/perseus/internal/fileio"
)

type jobsExportCommand struct {
	jobArgument
	What   string `enum:"frontier,profile" default:"frontier" help:"frontier (for perseus show, plan, report) or profile (what the ops were measured to take, CSV)."`
	Output string `short:"o" file:"" output:"" placeholder:"FILE" default:"-" help:"Where to write it; compressed if the name ends in .gz. Standard output without it."`
}

// Help is the text of perseus jobs export --help.
func (jobsExportCommand) Help() string {
	return `Examples:

    perseus jobs export gpt3 -o F.json.gz
    perseus jobs export gpt3 | perseus show -
    perseus jobs export gpt3 --what profile -o P.csv`
}

// Run writes what the server has.
func (c *jobsExportCommand) Run(w *world, server *jobsCommand) error {
	if err := fileio.Check(c.Output); err != nil {
		return input(err)
	}
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	get := cl.Frontier
	if c.What == "profile" {
		get = cl.Profile
	}
	err = fileio.Write(w.ctx, c.Output, w.stdout, func(out io.Writer) error {
		packed, received := io.Pipe()
		failed := make(chan error, 1)
		go func() {
			err := get(w.ctx, c.Job, received)
			received.CloseWithError(err)
			failed <- err
		}()
		text, err := fileio.Open(fileio.Stdio, packed) // unpacks, and bounds what comes of it
		if err == nil {
			_, err = io.Copy(out, text)
		}
		packed.CloseWithError(err) // so that the download ends where writing failed
		if fault := <-failed; fault != nil && err == nil {
			return fault
		}
		return err
	})
	return server.explain(err)
}
