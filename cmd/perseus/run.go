package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
)

// The exit statuses.
const (
	statusDone        = 0
	statusFailed      = 1
	statusBadInput    = 2
	statusInterrupted = 130
)

// commands are the program's commands and the flags that all have.
type commands struct {
	Frontier   frontierCommand   `cmd:"" help:"Compute the time–energy frontier of a job from its profile."`
	Show       showCommand       `cmd:"" help:"Show a frontier: landmarks, savings, a table, a plot."`
	Plan       planCommand       `cmd:"" help:"Look up the clock of every op for a time, a straggler, a power budget or the least energy."`
	Verify     verifyCommand     `cmd:"" help:"Check a frontier against the profile it came from."`
	Simulate   simulateCommand   `cmd:"" help:"Replay a plan or fixed clocks: who works, who waits, where the energy goes. Predict measured runs."`
	Compare    compareCommand    `cmd:"" help:"Set the plans of other methods beside ours; make the paper's tables."`
	Report     reportCommand     `cmd:"" help:"Write a page for people: frontier, timelines, clocks, cost. Pictures and traces."`
	Schedules  schedulesCommand  `cmd:"" help:"List the pipeline schedules, and show what each rank runs in which order."`
	Demo       demoCommand       `cmd:"" help:"Show everything end to end on emulated GPUs, in half a minute: no GPU is needed."`
	Serve      serveCommand      `cmd:"" help:"Run the control plane: profile jobs while they train, hand out clocks, answer stragglers."`
	Token      tokenCommand      `cmd:"" help:"Make, list and revoke the tokens by which a server knows who asks."`
	Jobs       jobsCommand       `cmd:"" help:"Look at jobs of a server and steer them: state, schedules, stragglers, wishes."`
	Agent      agentCommand      `cmd:"" help:"Run on a GPU node: set the clocks of training processes' GPUs, measure, and give them back."`
	Doctor     doctorCommand     `cmd:"" help:"Say what this node and its GPUs can and cannot do, with the way out of each."`
	Completion completionCommand `cmd:"" help:"Print the script by which a shell completes perseus on the Tab key."`
	Version    versionCommand    `cmd:"" help:"Print the version."`

	Man manCommand `cmd:"" hidden:""`

	CPUProfile string `name:"cpuprofile" hidden:"" placeholder:"FILE" output:"" help:"Write a CPU profile."`
}

const description = `Perseus finds the energy that a training pipeline wastes without being any faster for it.

From measurements of each forward and backward at each GPU clock it computes the whole frontier of iteration time and energy, with a proof for every point, and the clock of every op for any point on it.

To begin:

    perseus demo                  # a whole job on emulated GPUs, in half a minute
    perseus frontier --example    # the frontier of a made-up model`

// world is what a command may touch: its context and its three streams.
type world struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	parser         *kong.Kong
}

// run runs the program with its arguments, without its name, and returns its
// exit status. It returns soon after ctx ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c commands
	out := &checked{Writer: stdout}
	w := &world{ctx: ctx, stdin: stdin, stdout: out, stderr: stderr, getenv: os.Getenv}
	parsed, status := w.parse(args, &c)
	if parsed == nil {
		return status
	}
	stop, err := profileCPU(c.CPUProfile)
	if err != nil {
		return w.fail(badInput{err})
	}
	defer stop()
	return w.finish(parsed, out)
}

// checked keeps the first error of writing to standard output, so that none is
// lost, whoever wrote. One that the caller has closed gives none: Go has opened
// /dev/null in its place before main.
type checked struct {
	io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// parse fills c with the arguments. It returns nil and the exit status where
// there is nothing to run: help was asked for, or the arguments are wrong.
func (w *world) parse(args []string, c *commands) (parsed *kong.Context, status int) {
	helped := false
	parser, err := kong.New(c,
		kong.Name("perseus"), kong.Description(description),
		kong.Writers(w.stdout, w.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars(variables()), mappers(),
	)
	if err != nil {
		panic(err) // the commands above contradict themselves: every run fails, and the tests do
	}
	w.parser = parser
	if len(args) == 0 {
		parser.Stdout = w.stderr
		_, _ = parser.Parse([]string{"--help"})
		return nil, statusBadInput
	}
	parsed, err = parser.Parse(familiar(args))
	if out, ok := w.stdout.(*checked); ok && out.err != nil {
		return nil, w.fail(out.err) // it is of the help, not of the arguments
	}
	switch {
	case helped: // kong goes on after the help, to no use
		return nil, statusDone
	case err == nil:
		err = errors.Join(oneFormat(parsed), check(parsed))
	}
	if err != nil {
		return nil, w.fail(badInput{err})
	}
	return parsed, statusDone
}

// grace is how long a command has to clean up after an interrupt. What does not
// look at the context sooner computes, and has nothing to clean up.
const grace = 20 * time.Millisecond

// untilStopped is a command that runs until it is told to stop: an interrupt is its
// regular end.
type untilStopped interface {
	// grace is how long it has, after an interrupt, to give back what it took.
	grace() time.Duration
}

// finish runs the command that was parsed and returns the exit status, at the
// latest grace after the context ended: the process ends then, and with it what
// still runs. A command that is untilStopped says by itself how it ended.
func (w *world) finish(parsed *kong.Context, out *checked) int {
	wait, regular := grace, false
	if target := parsed.Selected().Target; target.CanAddr() {
		if c, ok := target.Addr().Interface().(untilStopped); ok {
			wait, regular = c.grace(), true
		}
	}
	done := make(chan error, 1)
	go func() { done <- parsed.Run(w) }()
	select {
	case err := <-done:
		if err == nil {
			err = out.err
		}
		return w.fail(err)
	case <-w.ctx.Done():
	}
	select {
	case err := <-done:
		switch {
		case regular && err == nil:
			return w.fail(out.err)
		case regular:
			return w.fail(err)
		}
	case <-time.After(wait):
	}
	return w.fail(w.ctx.Err())
}

// badInput marks an error of the input or the flags.
type badInput struct{ error }

func (e badInput) Unwrap() error { return e.error }

// input marks err as one of the input, where it is one.
func input(err error) error {
	if err == nil {
		return nil
	}
	return badInput{err}
}

// fail prints an error and returns the exit status for it: the one place where
// kinds of errors become numbers.
func (w *world) fail(err error) int {
	var bad badInput
	var usage *kong.ParseError
	switch {
	case err == nil:
		return statusDone
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w.stderr, "perseus: interrupted")
		return statusInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(w.stderr, "perseus: %v%s\nRun %q for help.\n", err, profileHint(usage), usageOf(usage.Context))
		return statusBadInput
	case errors.As(err, &bad):
		fmt.Fprintf(w.stderr, "perseus: %s\n", inFlags(err))
		return statusBadInput
	}
	fmt.Fprintf(w.stderr, "perseus: %s\n", inFlags(err))
	return statusFailed
}

// usageOf returns the command line that shows the help of what was parsed.
func usageOf(parsed *kong.Context) string {
	if node := parsed.Selected(); node != nil {
		return node.FullPath() + " --help"
	}
	return "perseus --help"
}

// terminal returns the size of a stream's terminal, and whether it is one.
func terminal(stream any) (width, height int, ok bool) {
	if c, ok := stream.(*checked); ok {
		stream = c.Writer
	}
	f, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80, 24, true
	}
	return width, height, true
}

// look returns the width for text on stdout and whether to colour it, by the
// terminal and the variables NO_COLOR (no-color.org), TERM and COLUMNS.
func (w *world) look() (width int, color bool) {
	width, _, ok := terminal(w.stdout)
	if n, err := strconv.Atoi(w.getenv("COLUMNS")); err == nil && n > 0 && !ok {
		width = n
	}
	if width == 0 {
		width = 80
	}
	return width, ok && w.getenv("NO_COLOR") == "" && w.getenv("TERM") != "dumb"
}

// readFrontier returns the frontier in a file, or on standard input.
func (w *world) readFrontier(path string) (*frontierfile.File, error) {
	r, err := fileio.Open(path, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return frontierfile.Read(r, fileio.Name(path))
}
