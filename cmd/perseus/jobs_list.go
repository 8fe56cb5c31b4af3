package main

import (
	"fmt"

	"github.com/perseus-energy/perseus/internal/client/jobtext"
)

type jobsListCommand struct {
	State string `choices:"registered,profiling,characterizing,running,paused,stale,finished,failed" placeholder:"STATE" help:"Only jobs in this state: registered, profiling, characterizing, running, paused, stale, finished or failed."`
	jobJSON
}

// Help is the text of perseus jobs list --help.
func (jobsListCommand) Help() string {
	return `Examples:

    perseus jobs
    perseus jobs list --state running
    perseus jobs list --json

TIME is what an iteration is planned to take, with the straggler that is waited for, SAVING what the plan saves against maximum clock. RANKS says how many are there, of how many.`
}

// Run lists all jobs.
func (c *jobsListCommand) Run(w *world, server *jobsCommand) error {
	state, err := jobtext.ParseState(c.State)
	if err != nil {
		return input(fmt.Errorf("--state %w", err))
	}
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	all, err := cl.AllJobs(w.ctx, state)
	switch {
	case err != nil:
		return server.explain(err)
	case c.JSON:
		return writeJSON(w.stdout, all)
	case len(all.Jobs) == 0:
		fmt.Fprintf(w.stderr, "perseus: no jobs at %s\n", cl.Server())
		return nil
	}
	return jobtext.WriteList(w.stdout, all.Jobs)
}
