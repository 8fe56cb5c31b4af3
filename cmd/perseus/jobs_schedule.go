package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/client/jobtext"
)

type jobsScheduleCommand struct {
	jobArgument
	Rank []int `placeholder:"R" help:"Only these ranks, as in --rank 0,1. Can be repeated. Without it, all."`
	jsonFlag
	Format string `enum:"text,csv,json" default:"text" help:"text (for people), csv (one op a line) or json."`
}

// Help is the text of perseus jobs schedule --help.
func (jobsScheduleCommand) Help() string {
	return `Shows the newest schedule. A rank may train at maximum clock, at one clock for each instruction, or at one for each op. A clock of 0 stands for the GPU's own choice.

The CSV has rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s, in each rank's execution order. Rows of ranks without a plan leave empty what they do not have.

Examples:

    perseus jobs schedule gpt3 --rank 0
    perseus jobs schedule gpt3 --format csv > clocks.csv`
}

// Run shows schedules.
func (c *jobsScheduleCommand) Run(w *world, server *jobsCommand) error {
	for _, r := range c.Rank {
		if r < 0 {
			return input(fmt.Errorf("--rank %d: ranks count from 0", r))
		}
	}
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	s, err := c.schedules(w, cl)
	if err != nil {
		return server.explain(err)
	}
	switch c.or(c.Format) {
	case "json":
		return json.NewEncoder(w.stdout).Encode(s)
	case "csv":
		return jobtext.WriteSchedulesCSV(w.stdout, &s)
	}
	return jobtext.WriteSchedules(w.stdout, &s)
}

// schedules asks for all ranks wanted, some at a time: the ops of thousands make too long an answer.
func (c *jobsScheduleCommand) schedules(w *world, cl *client.Client) (api.Schedules, error) {
	const (
		together = 256
		tries    = 5
	)
	job, err := cl.Job(w.ctx, c.Job)
	if err != nil {
		return api.Schedules{}, err
	}
	ranks := slices.Compact(slices.Sorted(slices.Values(c.Rank)))
	for _, r := range ranks {
		if r >= job.Spec.WorldSize {
			return api.Schedules{}, input(fmt.Errorf("--rank %d: job %s has ranks 0 to %d", r, c.Job, job.Spec.WorldSize-1))
		}
	}
	if len(ranks) == 0 {
		for r := range job.Spec.WorldSize {
			ranks = append(ranks, r)
		}
	}
	for range tries {
		var all api.Schedules
		same := true
		for part := range slices.Chunk(ranks, together) {
			s, _, err := cl.Schedules(w.ctx, c.Job, api.ScheduleQuery{Ranks: part})
			if err != nil {
				return api.Schedules{}, err
			}
			if all.Ranks != nil && (s.Version != all.Version || s.Generation != all.Generation) {
				same = false // there is a new one since the first part
				break
			}
			s.Ranks = append(all.Ranks, s.Ranks...)
			all = s
		}
		if same {
			return all, nil
		}
	}
	return api.Schedules{}, errors.New("the schedule changes faster than it can be read; name fewer ranks with --rank")
}
