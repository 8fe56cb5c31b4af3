package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/agent/record"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/gpu"
)

// Uplink is the server as the agent needs it; *client.Client is one. A refusal is a *client.Error or an *api.Error.
type Uplink interface {
	PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error)
	RegisterRanks(ctx context.Context, job string, r api.RankRegistration) (api.RankRegistered, error)
	Schedules(ctx context.Context, job string, q api.ScheduleQuery) (s api.Schedules, changed bool, err error)
	Report(ctx context.Context, job string, r api.Reports) (api.Accepted, error)
}

var _ Uplink = (*client.Client)(nil)

// Open opens the node's GPUs. The function that it returns, which may be nil, lets go of all of them.
type Open func() ([]gpu.Device, func() error, error)

// Config says what an agent works with. The zero values of all but the GPUs are useful.
type Config struct {
	// Devices are the node's GPUs. Open, instead, is called at the start, and again after a GPU was lost or a drain
	// has ended; the handles of before are closed first.
	Devices []gpu.Device
	Open    Open
	// Uplink is nil where there is no server: then nothing is steered.
	Uplink Uplink
	// Socket is the path of the socket for training processes; empty: none. Group is the id of the group that may
	// connect besides root and the agent's own user; 0 or less: no other.
	Socket string
	Group  int
	// StateDir holds the records of what was found; empty: they are in memory only.
	StateDir string
	// Restore is the range that a GPU's clock is locked to when it is given back; nil: it is unlocked.
	Restore *gpu.Range
	// KillSwitch is a file's path: as long as there is one, all clocks are at their highest.
	KillSwitch string
	Switching  follow.Switching
	// Heartbeat is how often clients show that they are alive; 0: 5 s.
	Heartbeat time.Duration
	// Latency is taken for that of switching until it is measured; 0: 30 ms.
	Latency time.Duration
	// ReportEvery holds where the server names none; 0: 20.
	ReportEvery int
	Clock       Clock        // nil: CLOCK_MONOTONIC
	Logger      *slog.Logger // nil: none
}

// Agent is one node's agent.
type Agent struct {
	c     Config
	log   *slog.Logger
	boot  string
	ready chan struct{}
	done  chan struct{} // closed when no GPU is driven any more

	latency *latencies
	folder  *record.Folder
	handles *handles

	mu      sync.Mutex
	running bool
	drivers []*driver
	links   map[string]*link
	group   sync.WaitGroup // what Run waits for
	ctx     context.Context
	stats   Stats
}

// Stats are counts since the start, for metrics.
type Stats struct {
	Connections, Refused, Dropped int64 // of clients; Dropped: for what they sent
	Events, EventsLost            int64
	Requests, Failures            int64 // calls that set a clock
	Reports, ReportsLost          int64
	Leases                        int // now
}

// New returns an agent. It touches nothing yet. Errors name the field that is wrong.
func New(c Config) (*Agent, error) {
	switch {
	case len(c.Devices) == 0 && c.Open == nil, len(c.Devices) > 0 && c.Open != nil:
		return nil, errors.New("agent: exactly one of Devices and Open is needed")
	case c.Restore != nil && (c.Restore.Min <= 0 || c.Restore.Max < c.Restore.Min):
		return nil, fmt.Errorf("agent: restore to %d to %d MHz: expected a range of clocks, the lower one first", c.Restore.Min, c.Restore.Max)
	case c.Heartbeat < 0 || c.Latency < 0 || c.ReportEvery < 0:
		return nil, errors.New("agent: times and counts must not be negative")
	}
	switch c.Switching {
	case "":
		c.Switching = follow.Auto
	case follow.Auto, follow.Fine, follow.Phase, follow.Step:
	default:
		return nil, fmt.Errorf("agent: switching %q: expected auto, fine, phase or step", c.Switching)
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 5 * time.Second
	}
	if c.Latency == 0 {
		c.Latency = 30 * time.Millisecond
	}
	if c.ReportEvery == 0 {
		c.ReportEvery = 20
	}
	if c.Clock == nil {
		c.Clock = Monotonic
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Open == nil {
		devices := c.Devices
		c.Open = func() ([]gpu.Device, func() error, error) { return devices, nil, nil }
	}
	return &Agent{
		c: c, log: c.Logger, boot: bootID(), ready: make(chan struct{}), done: make(chan struct{}),
		links: map[string]*link{}, latency: newLatencies(c.Latency), handles: &handles{open: c.Open},
	}, nil
}

// Run serves until ctx ends, and returns when all GPUs are given back, which it tries for at most ten seconds: what is
// left then stays in the records. It can be called once. It fails where the state folder, the GPUs or the socket cannot
// be had.
func (a *Agent) Run(ctx context.Context) (err error) {
	a.mu.Lock()
	again := a.running
	a.running = true
	a.mu.Unlock()
	if again {
		return errors.New("agent: Run was called before")
	}
	finish := sync.OnceFunc(func() { close(a.done) })
	defer finish()
	if a.c.StateDir != "" {
		if a.folder, err = record.Open(a.c.StateDir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.folder.Close()) }()
		a.latency.load(a.folder)
		defer a.latency.save(a.folder)
	}
	var changed []record.Record
	if a.folder != nil {
		changed, err = a.folder.All()
		if err != nil {
			a.log.Warn("a record cannot be read; its GPU is reset", "error", err)
		}
	}
	devices, err := a.handles.get()
	if err != nil {
		return fmt.Errorf("open the GPUs: %w", err)
	}
	defer func() { err = errors.Join(err, a.handles.close()) }()
	if err := a.adopt(devices, changed); err != nil {
		return err
	}
	// Drivers live on after ctx, to give their GPUs back.
	driving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var socket *listener
	if a.c.Socket != "" {
		if socket, err = listen(a); err != nil {
			return err
		}
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	a.mu.Lock()
	a.ctx = serving
	a.mu.Unlock()
	var drivers sync.WaitGroup
	for _, d := range a.drivers {
		drivers.Go(func() { d.run(driving) })
	}
	a.group.Go(func() { a.watch(serving) })
	if socket != nil {
		a.group.Go(func() { socket.run(serving) })
	}
	close(a.ready)

	<-ctx.Done()
	end()
	a.stopAll()
	stop()
	drivers.Wait()
	finish() // nobody waits for a GPU any more
	a.group.Wait()
	return nil
}

// adopt makes a driver for each device, with what is to be restored.
func (a *Agent) adopt(devices []gpu.Device, changed []record.Record) error {
	known := map[string]bool{}
	for _, dev := range devices {
		id := dev.Info().ID
		if known[id] {
			return fmt.Errorf("GPU %s is there twice", id)
		}
		known[id] = true
		d := newDriver(a, dev)
		d.probe()
		a.drivers = append(a.drivers, d)
	}
	for _, r := range changed {
		d := a.driver(r.GPU)
		if d == nil {
			a.log.Error("a GPU that is to be restored is missing; its record stays", "gpu", r.GPU)
			continue
		}
		a.log.Warn("an earlier agent was killed before it could restore a GPU: restoring it", "gpu", r.GPU, "job", r.Job)
		d.recorded, d.changed, d.restoring = true, true, true
	}
	return nil
}

// stopAll releases every GPU and waits for it, ten seconds at most.
func (a *Agent) stopAll() {
	limit, stop := a.c.Clock.NewTimer(10 * time.Second)
	defer stop()
	for _, d := range a.drivers {
		d.stop()
	}
	for _, d := range a.drivers {
		select {
		case <-d.free():
		case <-limit:
			a.log.Error("a GPU could not be restored in time; its record stays", "gpu", d.id)
			return
		}
	}
}

// driver returns that of a GPU, by id with or without the vendor's prefix, or by index; nil where there is none.
func (a *Agent) driver(name string) *driver {
	for _, d := range a.drivers {
		_, bare, _ := strings.Cut(d.id, ":")
		if d.id == name || bare == name && bare != "" {
			return d
		}
	}
	for _, d := range a.drivers {
		if fmt.Sprint(d.index) == name {
			return d
		}
	}
	return nil
}

// watch looks for the kill switch and for clients that have gone silent.
func (a *Agent) watch(ctx context.Context) {
	was := false
	for {
		if a.c.KillSwitch != "" {
			_, err := os.Lstat(a.c.KillSwitch)
			if on := err == nil; on != was {
				a.log.Warn("kill switch", "file", a.c.KillSwitch, "maximum_clocks", on)
				for _, d := range a.drivers {
					d.override(on)
				}
				was = on
			}
		}
		for _, d := range a.drivers {
			d.expire()
		}
		if sleep(ctx, a.c.Clock, 200*time.Millisecond) != nil {
			return
		}
	}
}

// Stats returns the counts so far.
func (a *Agent) Stats() Stats {
	a.mu.Lock()
	s := a.stats
	a.mu.Unlock()
	for _, d := range a.drivers {
		d.mu.Lock()
		if d.lease != nil {
			s.Leases++
		}
		d.mu.Unlock()
	}
	return s
}

func (a *Agent) count(f func(*Stats)) {
	a.mu.Lock()
	f(&a.stats)
	a.mu.Unlock()
}

// bootID names the boot of the machine, or is empty.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// handles are the open GPUs.
type handles struct {
	open Open
	mu   sync.Mutex
	held []gpu.Device
	stop func() error
}

// get returns the devices, opened where they are not.
func (h *handles) get() ([]gpu.Device, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		devices, stop, err := h.open()
		if err != nil {
			return nil, err
		}
		h.held, h.stop = devices, stop
	}
	return h.held, nil
}

// again returns a new handle of a GPU in the place of old. Other GPUs may keep the handles that they have: those of
// before are only closed with all.
func (h *handles) again(id string, old gpu.Device) (gpu.Device, error) {
	h.mu.Lock()
	if i := h.find(id); i >= 0 && h.held[i] == old {
		devices, stop, err := h.open()
		if err != nil {
			h.mu.Unlock()
			return nil, err
		}
		h.held, h.stop = devices, both(h.stop, stop)
	}
	h.mu.Unlock()
	if _, err := h.get(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.find(id); i >= 0 {
		return h.held[i], nil
	}
	return nil, fmt.Errorf("GPU %s: %w", id, gpu.ErrLost)
}

func (h *handles) find(id string) int {
	for i, d := range h.held {
		if d.Info().ID == id {
			return i
		}
	}
	return -1
}

// close lets go of all GPUs.
func (h *handles) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	stop := h.stop
	h.held, h.stop = nil, nil
	if stop == nil {
		return nil
	}
	return stop()
}

func both(a, b func() error) func() error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func() error { return errors.Join(b(), a()) }
}
