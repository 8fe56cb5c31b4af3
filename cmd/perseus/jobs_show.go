package main

import "github.com/perseus-energy/perseus/internal/client/jobtext"

type jobsShowCommand struct {
	jobArgument
	jobJSON
}

// Help is the text of perseus jobs show --help.
func (jobsShowCommand) Help() string {
	return `Examples:

    perseus jobs show gpt3
    perseus jobs show gpt3 --json

docs/jobs.md says what the words mean.`
}

// Run shows a job.
func (c *jobsShowCommand) Run(w *world, server *jobsCommand) error {
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	job, err := cl.Job(w.ctx, c.Job)
	if err != nil {
		return server.explain(err)
	}
	if c.JSON {
		return writeJSON(w.stdout, job)
	}
	return jobtext.Write(w.stdout, &job)
}
