package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/client/jobtext"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// steer makes a call that is answered by the job, and prints how it is now.
func (c *jobsCommand) steer(w *world, json bool, call func(context.Context, *client.Client) (api.Job, error)) error {
	cl, err := c.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	job, err := call(w.ctx, cl)
	if err != nil {
		return c.explain(err)
	}
	if json {
		return writeJSON(w.stdout, job)
	}
	_, err = fmt.Fprintln(w.stdout, jobtext.Summary(&job))
	return err
}

type jobsStragglerCommand struct {
	jobArgument
	Rank *int   `xor:"who" group:"Who (one of these):" min:"0" placeholder:"R" help:"Its global rank."`
	GPU  string `xor:"who" name:"gpu" group:"Who (one of these):" placeholder:"UUID" help:"The GPU's UUID."`

	Slowdown     *plan.Ratio `xor:"what" group:"What (one of these):" placeholder:"1.2" help:"Its pipeline's iteration takes this many times the least time."`
	MaxFrequency *int32      `xor:"what" group:"What (one of these):" placeholder:"1200" help:"It runs at most at this clock, in MHz: its own pipeline is planned anew."`
	Clear        bool        `xor:"what" group:"What (one of these):" help:"It is as fast as the others again."`

	AtIteration    int64 `group:"When:" min:"0" placeholder:"N" help:"The first iteration with it. Without it, now."`
	UntilIteration int64 `group:"When:" min:"1" placeholder:"N" help:"The first iteration without it. Without it, until --clear."`
	jobJSON
}

// Help is the text of perseus jobs straggler --help.
func (jobsStragglerCommand) Help() string {
	return `While one pipeline is slow, the others wait for it at the end of each iteration: they save energy by being slower too. The server finds stragglers by itself; this is for what you know before, or better.

Examples:

    perseus jobs straggler gpt3 --rank 5 --slowdown 1.2
    perseus jobs straggler gpt3 --rank 5 --slowdown 1.3 --at-iteration 2000 --until-iteration 2500
    perseus jobs straggler gpt3 --gpu GPU-5d0b --max-frequency 1200
    perseus jobs straggler gpt3 --rank 5 --clear`
}

func (c *jobsStragglerCommand) straggler() (api.Straggler, error) {
	s := api.Straggler{Rank: c.Rank, GPU: c.GPU, AtIteration: c.AtIteration, UntilIteration: c.UntilIteration, Source: "operator"}
	switch {
	case c.Rank == nil && c.GPU == "":
		return s, errors.New("say which GPU is slow: --rank or --gpu")
	case c.Slowdown != nil && *c.Slowdown < plan.One:
		return s, fmt.Errorf("--slowdown %v: expected a factor of at least 1", *c.Slowdown)
	case c.Slowdown != nil:
		s.Slowdown = c.Slowdown.Float()
	case c.MaxFrequency != nil:
		s.MaxFrequencyMHz = int(*c.MaxFrequency)
	case c.Clear:
		s.Slowdown = 1
	default:
		return s, errors.New("say how slow it is: one of --slowdown, --max-frequency, --clear")
	}
	if c.UntilIteration != 0 && c.UntilIteration <= c.AtIteration {
		return s, fmt.Errorf("--until-iteration %d: expected one after --at-iteration %d", c.UntilIteration, c.AtIteration)
	}
	return s, nil
}

// Run tells the server of a straggler.
func (c *jobsStragglerCommand) Run(w *world, server *jobsCommand) error {
	s, err := c.straggler()
	if err != nil {
		return input(err)
	}
	return server.steer(w, c.JSON, func(ctx context.Context, cl *client.Client) (api.Job, error) {
		return cl.AddStraggler(ctx, c.Job, s)
	})
}

type jobsGoalCommand struct {
	jobArgument
	Fastest   bool        `xor:"goal" group:"What to plan for (one of these):" help:"The least iteration time, and of the plans that reach it the one of least energy."`
	Time      *unit.Time  `xor:"goal" group:"What to plan for (one of these):" placeholder:"2.9s" help:"The least energy with an iteration of at most this time."`
	Slowdown  *plan.Ratio `xor:"goal" group:"What to plan for (one of these):" placeholder:"1.1" help:"The same for this multiple of the least iteration time."`
	Power     *unit.Power `xor:"goal" group:"What to plan for (one of these):" placeholder:"15kW" help:"The fastest plan that draws at most this on average, all GPUs of one pipeline together."`
	MinEnergy bool        `aliases:"least-energy" xor:"goal" group:"What to plan for (one of these):" help:"The least energy, whatever the time."`
	jobJSON
}

// Help is the text of perseus jobs goal --help.
func (jobsGoalCommand) Help() string {
	return `Sets what the job is planned for from now on. Stragglers come on top: while the job waits for one, it may be that slow anyway. docs/plan.md says what each wish means.

Examples:

    perseus jobs goal gpt3 --slowdown 1.05   # 5 % slower is fine
    perseus jobs goal gpt3 --time 2.9s
    perseus jobs goal gpt3 --power 15kW
    perseus jobs goal gpt3 --fastest         # as it was at first`
}

func (c *jobsGoalCommand) goal() (api.Goal, error) {
	switch {
	case c.Fastest:
		return api.Goal{}, nil
	case c.Time != nil && *c.Time <= 0:
		return api.Goal{}, fmt.Errorf("--time %v: expected a time over 0s", *c.Time)
	case c.Time != nil:
		return api.Goal{TimeS: c.Time.Seconds()}, nil
	case c.Slowdown != nil && *c.Slowdown < plan.One:
		return api.Goal{}, fmt.Errorf("--slowdown %v: expected a factor of at least 1", *c.Slowdown)
	case c.Slowdown != nil:
		return api.Goal{Slowdown: c.Slowdown.Float()}, nil
	case c.Power != nil && *c.Power <= 0:
		return api.Goal{}, fmt.Errorf("--power %v: expected a power over 0W", *c.Power)
	case c.Power != nil:
		return api.Goal{PowerW: c.Power.Watts()}, nil
	case c.MinEnergy:
		return api.Goal{LeastEnergy: true}, nil
	}
	return api.Goal{}, errors.New("say what to plan for: one of --fastest, --time, --slowdown, --power, --min-energy")
}

// Run sets the goal.
func (c *jobsGoalCommand) Run(w *world, server *jobsCommand) error {
	g, err := c.goal()
	if err != nil {
		return input(err)
	}
	return server.steer(w, c.JSON, func(ctx context.Context, cl *client.Client) (api.Job, error) {
		return cl.SetGoal(ctx, c.Job, g)
	})
}

type jobsPauseCommand struct {
	jobArgument
	jobJSON
}

// Help is the text of perseus jobs pause --help.
func (jobsPauseCommand) Help() string {
	return `All ranks go back to maximum clock at one iteration, and stay there until they are told to resume. Training goes on.

Example:

    perseus jobs pause gpt3`
}

// Run pauses a job.
func (c *jobsPauseCommand) Run(w *world, server *jobsCommand) error {
	return server.steer(w, c.JSON, func(ctx context.Context, cl *client.Client) (api.Job, error) { return cl.Pause(ctx, c.Job) })
}

type jobsResumeCommand struct {
	jobArgument
	jobJSON
}

// Help is the text of perseus jobs resume --help.
func (jobsResumeCommand) Help() string {
	return `The job goes on from where it was paused: profiling or following its plan.

Example:

    perseus jobs resume gpt3`
}

// Run resumes a job.
func (c *jobsResumeCommand) Run(w *world, server *jobsCommand) error {
	return server.steer(w, c.JSON, func(ctx context.Context, cl *client.Client) (api.Job, error) { return cl.Resume(ctx, c.Job) })
}

type jobsFinishCommand struct {
	jobArgument
	jobJSON
}

// Help is the text of perseus jobs finish --help.
func (jobsFinishCommand) Help() string {
	return `For jobs that ended without saying so. What is known of the job stays until it is deleted.

Example:

    perseus jobs finish gpt3`
}

// Run finishes a job.
func (c *jobsFinishCommand) Run(w *world, server *jobsCommand) error {
	return server.steer(w, c.JSON, func(ctx context.Context, cl *client.Client) (api.Job, error) { return cl.Finish(ctx, c.Job) })
}

type jobsDeleteCommand struct {
	jobArgument
	Yes bool `short:"y" help:"Even if the job has not ended."`
	jobJSON
}

// Help is the text of perseus jobs delete --help.
func (jobsDeleteCommand) Help() string {
	return `Removes a job with its profile, its frontier and its history. The ranks of a job that has not ended train at maximum clock from then on, which has to be confirmed with --yes.

Examples:

    perseus jobs delete gpt3
    perseus jobs delete gpt3 --yes`
}

// Run deletes a job.
func (c *jobsDeleteCommand) Run(w *world, server *jobsCommand) error {
	cl, err := server.connect(w)
	if err != nil {
		return err
	}
	defer cl.Close()
	if !c.Yes {
		job, err := cl.Job(w.ctx, c.Job)
		if err != nil {
			return server.explain(err)
		}
		if !jobtext.Ended(&job) {
			return input(fmt.Errorf("job %s is %s: it is deleted all the same with --yes", c.Job, excerpt.Line(string(job.State))))
		}
	}
	if err := cl.DeleteJob(w.ctx, c.Job); err != nil {
		return server.explain(err)
	}
	if c.JSON {
		return writeJSON(w.stdout, map[string]string{"deleted": c.Job})
	}
	_, err = fmt.Fprintf(w.stdout, "%s is deleted\n", c.Job)
	return err
}
