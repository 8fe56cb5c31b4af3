package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/client"
)

type jobsCommand struct {
	List      jobsListCommand      `cmd:"" default:"1" help:"List the jobs: state, iteration, saving."`
	Show      jobsShowCommand      `cmd:"" help:"Show all that the server knows of a job."`
	Watch     jobsWatchCommand     `cmd:"" help:"Follow what happens to a job until it ends."`
	Schedule  jobsScheduleCommand  `cmd:"" help:"Show which clocks a job's ranks are to run."`
	Straggler jobsStragglerCommand `cmd:"" help:"Say that a GPU is slow, or will be."`
	Goal      jobsGoalCommand      `cmd:"" help:"Say what to plan for: time, power, energy."`
	Measure   jobsMeasureCommand   `cmd:"" help:"Prove on the job itself what the plan saves."`
	Pause     jobsPauseCommand     `cmd:"" help:"Bring a job's ranks back to maximum clock."`
	Resume    jobsResumeCommand    `cmd:"" help:"Let a paused job's ranks follow the plan again."`
	Finish    jobsFinishCommand    `cmd:"" help:"Say that a job has ended."`
	Export    jobsExportCommand    `cmd:"" help:"Write a job's frontier or profile to a file."`
	Delete    jobsDeleteCommand    `cmd:"" help:"Remove a job and all that is known of it."`

	Server string `group:"The server:" env:"PERSEUS_SERVER" default:"http://127.0.0.1:7787" placeholder:"URL" help:"Where perseus serve listens; http://127.0.0.1:7787 without it."`
	serverFlags
	Patience time.Duration `group:"The server:" default:"2s" placeholder:"2s" help:"For how long to try again where the server does not answer, or is busy."`
}

// Help is the text of perseus jobs --help.
func (jobsCommand) Help() string {
	return `Talks to the control plane that perseus serve runs. docs/jobs.md shows how to look at a job and steer it.

The variable PERSEUS_SERVER names the server for all of these commands, PERSEUS_TOKEN holds the token where one is needed.

Examples:

    perseus jobs
    perseus jobs show gpt3
    perseus jobs watch gpt3
    perseus jobs goal gpt3 --slowdown 1.05
    perseus jobs straggler gpt3 --rank 5 --slowdown 1.2
    perseus jobs pause gpt3
    perseus jobs list --server https://perseus.example:7787 --tls-ca ca.pem --token-file token`
}

// jobArgument is the job that a command is about.
type jobArgument struct {
	Job string `arg:"" name:"job" help:"The job's id, as perseus jobs lists them."`
}

// jobJSON is for programs.
type jobJSON struct {
	JSON bool `name:"json" help:"As JSON, for programs."`
}

// connect returns a client of the server. The caller closes it.
func (c *jobsCommand) connect(w *world) (*client.Client, error) {
	patience := c.Patience
	if patience <= 0 {
		patience = -1
	}
	return c.client(w, c.Server, client.Config{Patience: patience})
}

// unknownJob is the code of a refusal for want of the job, and not of what is asked of it.
const unknownJob = "unknown-job"

// explain returns the error of a call with the way out, and with the exit status of wrong input where that is at fault.
func (c *jobsCommand) explain(err error) error {
	var id *client.InvalidID
	var out *client.Unreachable
	var refused *client.Error
	switch {
	case errors.As(err, &id):
		return input(err)
	case errors.As(err, &out):
		return &hint{err, c.reach(out)}
	case !errors.As(err, &refused):
		return err
	}
	switch refused.Status {
	case http.StatusUnauthorized:
		if !strings.Contains(refused.Detail, "PERSEUS_TOKEN") { // of which a server of this version speaks itself
			return &hint{err, "; give a token in PERSEUS_TOKEN or with --token-file, as perseus token create makes one"}
		}
	case http.StatusForbidden:
		if refused.Code != "token" { // it is for the lack of one
			return &hint{err, "; perseus token create makes a token of another scope"}
		}
	case http.StatusNotFound:
		if refused.Code == "" || refused.Code == unknownJob {
			err = &hint{err, "; perseus jobs lists the jobs that there are"}
		}
		return input(err)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return input(err)
	}
	return err
}

// reach returns what may help where the server was not reached.
func (c *jobsCommand) reach(out *client.Unreachable) string {
	text := out.Error()
	switch {
	case strings.Contains(text, "certificate required"):
		return "; the server asks for a client certificate: --tls-cert and --tls-key"
	case strings.Contains(text, "certificate"):
		return "; name the authority that signed the server's certificate with --tls-ca"
	case strings.Contains(text, "HTTP response to HTTPS"):
		return "; the server speaks plain HTTP: write http:// in place of https://"
	}
	return "; start a server with perseus serve, or name the one that runs with --server or PERSEUS_SERVER"
}

// hint is an error with the way out behind it.
type hint struct {
	error
	wayOut string
}

func (h *hint) Error() string { return h.error.Error() + h.wayOut }

func (h *hint) Unwrap() error { return h.error }

// writeJSON writes v for programs.
func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
