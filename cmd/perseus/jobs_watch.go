package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/client/jobtext"
)

type jobsWatchCommand struct {
	jobArgument
	After int64 `min:"0" default:"0" placeholder:"ID" help:"Leave out the events up to this one, by its id as --json shows it."`
	JSON  bool  `name:"json" help:"An event a line as JSON, for programs."`

	Poll  time.Duration `hidden:"" default:"5s" help:"How often to look whether the job has ended, where no event says so."`
	Quiet time.Duration `hidden:"" default:"1s" help:"How long to wait for the last events of a job that has ended."`
}

// Help is the text of perseus jobs watch --help.
func (jobsWatchCommand) Help() string {
	return `Prints what has happened to a job so far, and then each new event when it happens, a line each, until the job ends or you stop it. It goes on where it was when the server restarts. The exit status is 0 when the job has finished or you stopped watching, 1 when it failed or was deleted.

Examples:

    perseus jobs watch gpt3
    perseus jobs watch gpt3 --json`
}

func (*jobsWatchCommand) grace() time.Duration { return 2 * time.Second }

// Run follows a job.
func (c *jobsWatchCommand) Run(w *world, server *jobsCommand) error {
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	job, err := cl.Job(w.ctx, c.Job)
	if err != nil {
		if w.ctx.Err() != nil {
			return nil
		}
		return server.explain(err)
	}
	told := false // of the outage
	follow, err := server.client(w, server.Server, client.Config{OnRetry: func(err error, _ time.Duration) {
		var out *client.Unreachable
		var refused *client.Error
		if told || errors.Is(err, client.ErrStreamEnded) || !errors.As(err, &out) && !errors.As(err, &refused) {
			return
		}
		told = true
		fmt.Fprintf(w.stderr, "perseus: %v; trying again until it answers\n", err)
	}})
	if err != nil {
		return err
	}
	defer follow.Close()

	ctx, cancel := context.WithCancel(w.ctx)
	events, failed := make(chan api.Event), make(chan error, 1)
	go func() {
		defer close(events)
		for e, err := range follow.Events(ctx, c.Job, c.After) {
			if err != nil {
				failed <- err
				return
			}
			told = false
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = c.follow(w, server, cl, &job, events, failed)
	cancel()
	for range events { // until the goroutine is gone
	}
	if w.ctx.Err() != nil {
		return nil // stopped, which is how most watching ends
	}
	return err
}

// follow prints events until the job has ended and none came for a while.
func (c *jobsWatchCommand) follow(w *world, server *jobsCommand, cl *client.Client, job *api.Job, events <-chan api.Event, failed <-chan error) error {
	look := time.NewTimer(c.until(job))
	defer look.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return c.stopped(server, <-failed)
			}
			if err := c.print(w, e); err != nil {
				return err
			}
			if e.Kind != "state" {
				break
			}
			if err := refresh(w, cl, c.Job, job); err != nil {
				return c.stopped(server, err)
			}
		case <-look.C:
			if jobtext.Ended(job) {
				return jobtext.Failure(job)
			}
			if err := refresh(w, cl, c.Job, job); err != nil {
				return c.stopped(server, err)
			}
		case <-w.ctx.Done():
			return nil
		}
		look.Reset(c.until(job))
	}
}

// until returns how long to wait for an event before looking at the job, or leaving.
func (c *jobsWatchCommand) until(job *api.Job) time.Duration {
	if jobtext.Ended(job) {
		return c.Quiet
	}
	return c.Poll
}

func (c *jobsWatchCommand) print(w *world, e api.Event) error {
	if c.JSON {
		return json.NewEncoder(w.stdout).Encode(e)
	}
	_, err := fmt.Fprintln(w.stdout, jobtext.Event(e))
	return err
}

// stopped returns why a job can no longer be followed.
func (c *jobsWatchCommand) stopped(server *jobsCommand, err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return fmt.Errorf("job %s was deleted", c.Job)
	}
	return server.explain(err)
}

// refresh looks at the job again. A server that is away is no error: the events wait for it.
func refresh(w *world, cl *client.Client, id string, job *api.Job) error {
	j, err := cl.Job(w.ctx, id)
	var out *client.Unreachable
	var refused *client.Error
	switch {
	case err == nil:
		*job = j
	case errors.As(err, &out), errors.As(err, &refused) && refused.Status >= 500:
	default:
		return err
	}
	return nil
}
