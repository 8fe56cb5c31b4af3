package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/nvml"
	"github.com/perseus-energy/perseus/internal/wire"
)

type agentCommand struct {
	Server string `group:"The server:" env:"PERSEUS_SERVER" placeholder:"URL" help:"The control plane, as http://HOST:7787. Without one the agent steers nothing."`
	serverFlags

	Socket string `default:"/run/perseus/agent.sock" placeholder:"PATH" help:"Where training processes connect (${default})."`
	Group  string `placeholder:"NAME" help:"Group whose members may connect, besides root."`

	StateDir   string `default:"/var/lib/perseus-agent" placeholder:"DIR" help:"Folder that remembers, over crashes, what GPUs were like (${default})."`
	Restore    string `default:"reset" placeholder:"reset|LOW,HIGH" help:"What a GPU is brought back to: reset unlocks its clocks, LOW,HIGH in MHz locks them to a range that was there before (${default})."`
	KillSwitch string `default:"/run/perseus/max-clock" placeholder:"FILE" help:"As long as this file is there, all clocks are at their highest (${default})."`
	Switching  string `enum:"auto,fine,phase,step" default:"auto" help:"How often clocks may change: auto, fine (each op), phase, step (${default})."`

	gpuFlags
	EmulatedFiles string `hidden:"" placeholder:"DIR" help:"Keep what emulated GPUs are set to in files here."`
	Metrics       string `group:"What it tells:" placeholder:"HOST:PORT" help:"Serve Prometheus metrics there, at /metrics."`

	Drain  string `placeholder:"GPU|all" help:"Tell the running agent to let go of a GPU, by id or index, and end."`
	Resume string `placeholder:"GPU|all" help:"Tell the running agent to take a GPU again, and end."`
	logFlags
}

// Help is the text of perseus agent --help.
func (agentCommand) Help() string {
	return `Runs on each GPU node, as the only process with the permission to set clocks. Training processes connect to its socket; it leases each its GPU, sets the clocks that the server plans, a little ahead of each op, measures, and gives the GPU back as it was: when the process ends, when the agent is stopped, and after it was killed, at its next start. docs/agent.md says how.

Examples:

    sudo perseus agent --server http://control:7787 --token-file /etc/perseus/token --group train
    perseus agent --emulated 8 --socket /tmp/agent.sock --state-dir /tmp/agent
    sudo perseus agent --drain all && sudo nvidia-smi --gpu-reset -i 0`
}

// Validate checks the flags.
func (c *agentCommand) Validate() error {
	if err := c.gpuFlags.Validate(); err != nil {
		return err
	}
	switch {
	case c.Emulated == 0 && c.EmulatedFiles != "":
		return errors.New("--emulated-files needs --emulated")
	case c.Drain != "" && c.Resume != "":
		return errors.New("--drain and --resume exclude each other")
	}
	return nil
}

// grace is what an interrupt leaves to give GPUs back.
func (*agentCommand) grace() time.Duration { return 15 * time.Second }

// Run runs the agent until it is stopped, or talks to the one that runs.
func (c *agentCommand) Run(w *world) error {
	if c.Drain != "" || c.Resume != "" {
		return c.ask(w)
	}
	log := c.logger(w)
	config, err := c.config(w, log)
	if err != nil {
		return err
	}
	a, err := agent.New(config)
	if err != nil {
		return input(err)
	}
	// Metrics must not outlive the agent, nor the agent them.
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	metrics := make(chan error, 1)
	if c.Metrics == "" {
		metrics <- nil
	} else {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Metrics)
		if err != nil {
			return input(fmt.Errorf("--metrics: %w", err))
		}
		go func() { metrics <- a.ServeMetrics(ctx, l); stop() }()
	}
	go func() {
		select {
		case <-a.Ready():
			log.Info("ready", "socket", c.Socket, "server", c.Server)
		case <-ctx.Done():
		}
	}()
	err = a.Run(ctx)
	stop()
	return errors.Join(err, <-metrics)
}

// ask sends the running agent a request.
func (c *agentCommand) ask(w *world) error {
	var message any = wire.Drain{Drain: c.Drain}
	if c.Resume != "" {
		message = wire.Resume{Resume: c.Resume}
	}
	drained, err := agent.Ask(w.ctx, c.Socket, message)
	if err != nil {
		return err
	}
	for _, id := range drained {
		if _, err := fmt.Fprintln(w.stdout, id); err != nil {
			return err
		}
	}
	return nil
}

func (c *agentCommand) config(w *world, log *slog.Logger) (agent.Config, error) {
	config := agent.Config{
		Socket: c.Socket, StateDir: c.StateDir, KillSwitch: c.KillSwitch, Switching: follow.Switching(c.Switching), Logger: log,
	}
	var err error
	if config.Restore, err = restoreRange(c.Restore); err != nil {
		return config, input(err)
	}
	if c.Group != "" {
		g, err := user.LookupGroup(c.Group)
		if err != nil {
			return config, input(fmt.Errorf("--group: %w", err))
		}
		if config.Group, err = strconv.Atoi(g.Gid); err != nil {
			return config, input(fmt.Errorf("--group %s: id %q is no number", c.Group, g.Gid))
		}
	}
	if c.Server != "" {
		// The agent tries again by itself, with all that has happened meanwhile.
		up, err := c.client(w, c.Server, client.Config{Patience: -1, UserAgent: "perseus-agent"})
		if err != nil {
			return config, err
		}
		config.Uplink = up
	}
	if c.Emulated > 0 {
		boards, err := c.emulate(agent.Monotonic.Now, c.EmulatedFiles)
		// The boards outlive the handles.
		config.Open = func() ([]gpu.Device, func() error, error) { return opened(boards), nil, nil }
		return config, err
	}
	config.Open = func() ([]gpu.Device, func() error, error) {
		return nvml.Open(w.ctx, nvml.Config{Library: c.Library, Skipped: func(i int, err error) {
			log.Error("a GPU is left out", "index", i, "error", err)
		}})
	}
	return config, nil
}

// restoreRange reads --restore; nil is a reset.
func restoreRange(s string) (*gpu.Range, error) {
	if s == "reset" {
		return nil, nil
	}
	low, high, ok := strings.Cut(s, ",")
	min, err := strconv.Atoi(low)
	max, err2 := strconv.Atoi(high)
	if !ok || err != nil || err2 != nil || min <= 0 || max < min {
		return nil, fmt.Errorf("--restore %.40q: expected reset, or two clocks in MHz, the lower one first, as 900,1200", s)
	}
	return &gpu.Range{Min: min, Max: max}, nil
}
