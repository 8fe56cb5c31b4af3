package main

import (
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/client/jobtext"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/report"
)

type jobsMeasureCommand struct {
	jobArgument
	Blocks     int  `min:"8" default:"12" placeholder:"12" help:"How many blocks of iterations, at the plan and at maximum clock in turn; rounded up to whole groups of four."`
	Iterations int  `min:"5" default:"20" placeholder:"20" help:"How many iterations a block has."`
	Wait       bool `help:"Wait until it is done, and print what was found."`
	jobJSON

	Poll time.Duration `hidden:"" default:"2s" help:"How often to look whether it is done."`
}

// Help is the text of perseus jobs measure --help.
func (jobsMeasureCommand) Help() string {
	return `Runs blocks of iterations at the plan and at maximum clock in turn, on the job itself, and compares their energy and their time. More blocks make the intervals narrower. Training goes on as ever; with --wait, an interrupt ends the waiting, not the measurement.

Examples:

    perseus jobs measure gpt3 --wait
    perseus jobs measure gpt3 --blocks 40 --iterations 50
    perseus jobs show gpt3                     # how far it is`
}

// Run begins a measurement, and waits for it where asked to.
func (c *jobsMeasureCommand) Run(w *world, server *jobsCommand) error {
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	job, err := cl.Measure(w.ctx, c.Job, api.MeasureRequest{Blocks: c.Blocks, Iterations: c.Iterations})
	if err != nil {
		return server.explain(err)
	}
	if c.Wait {
		if job, err = c.await(w, cl, job); err != nil {
			return server.explain(err)
		}
	}
	switch {
	case c.JSON:
		return writeJSON(w.stdout, job)
	case !c.Wait:
		if m := job.Measurement; m != nil {
			c.Blocks = m.Blocks // whole groups of them
		}
		_, err := fmt.Fprintf(w.stdout, "measuring %s: %s of %s; perseus jobs show %s says how far it is\n",
			c.Job, report.Count(c.Blocks, "block"), report.Count(c.Iterations, "iteration"), c.Job)
		return err
	}
	return jobtext.WriteMeasured(w.stdout, job.Measurement)
}

// await looks at the job until its measurement is done. A server that is away for a while is no error.
func (c *jobsMeasureCommand) await(w *world, cl *client.Client, job api.Job) (api.Job, error) {
	told := -1
	for {
		switch m := job.Measurement; {
		case m != nil && m.Done:
			return job, nil
		case m == nil:
			return job, fmt.Errorf("measure job %s: given up; the job is %s", c.Job, excerpt.Line(jobtext.State(&job)))
		case jobtext.Ended(&job):
			return job, fmt.Errorf("measure job %s: the job is %s before it was done", c.Job, excerpt.Line(jobtext.State(&job)))
		case m.BlocksDone != told:
			told = m.BlocksDone
			fmt.Fprintf(w.stderr, "perseus: %d of %s\n", m.BlocksDone, report.Count(m.Blocks, "block"))
		}
		select {
		case <-w.ctx.Done():
			return job, w.ctx.Err()
		case <-time.After(c.Poll):
		}
		if err := refresh(w, cl, c.Job, &job); err != nil {
			return job, err
		}
	}
}
