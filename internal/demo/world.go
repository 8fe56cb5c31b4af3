package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/server"
	"github.com/perseus-energy/perseus/internal/wire"
)

// session is a rank at its agent, as the training loop speaks to it.
type session struct{ *agent.Session }

// Event tells the agent what the rank does, and lets it act before time goes on.
func (s session) Event(e wire.Event) {
	s.Send(e)
	s.Settle()
}

// world is what runs besides the training: the server and the agents.
type world struct {
	config  Config
	cluster *cluster
	url     string
	client  *client.Client
	server  *server.Server
	http    *http.Server
	agents  []*agent.Agent
	attach  []session

	stopAgents, stopServer context.CancelFunc
	agentsDone, serverDone sync.WaitGroup
	mu                     sync.Mutex
	failed                 []error
	broken                 chan struct{} // closed with the first failure
}

// startWorld starts the server and the agents, in this order. They live until stop, whatever becomes of ctx.
func startWorld(ctx context.Context, c Config, database string, k *cluster) (*world, error) {
	w := &world{config: c, cluster: k, broken: make(chan struct{})}
	free := context.WithoutCancel(ctx)
	var serverCtx, agentCtx context.Context
	serverCtx, w.stopServer = context.WithCancel(free)
	agentCtx, w.stopAgents = context.WithCancel(free)
	if err := w.start(ctx, serverCtx, agentCtx, database); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *world) start(ctx, serverCtx, agentCtx context.Context, database string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", w.config.Listen)
	if err != nil {
		return fmt.Errorf("the server's address: %w", err)
	}
	w.url = "http://" + listener.Addr().String()
	w.server, err = server.New(serverCtx, server.Config{
		Database: database, Version: w.config.Version, Logger: w.config.Logger.With("part", "server"),
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the server: %w", err), listener.Close())
	}
	handler, err := w.server.Handler()
	if err != nil {
		return errors.Join(fmt.Errorf("the server: %w", err), listener.Close())
	}
	w.serverDone.Go(func() { w.fail("the server", w.server.Run(serverCtx)) })
	w.http = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	w.serverDone.Go(func() {
		if err := w.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.fail("the server", err)
		}
	})
	if w.client, err = client.New(client.Config{Server: w.url}); err != nil {
		return err
	}
	for p := range w.cluster.boards {
		a, err := agent.New(agent.Config{
			Devices: w.cluster.devices(p), Uplink: w.client, Clock: w.cluster.clock, Latency: w.config.Latency,
			Logger: w.config.Logger.With("part", "agent"),
		})
		if err != nil {
			return fmt.Errorf("agent %d: %w", p, err)
		}
		w.agents = append(w.agents, a)
		w.agentsDone.Go(func() { w.fail(fmt.Sprintf("agent %d", p), a.Run(agentCtx)) })
	}
	return nil
}

// fail notes that something ended that should not have.
func (w *world) fail(what string, err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failed) == 0 {
		close(w.broken)
	}
	w.failed = append(w.failed, fmt.Errorf("%s: %w", what, err))
}

// spec is what the job says of itself.
func (w *world) spec() api.JobSpec {
	c := &w.config
	return api.JobSpec{
		Name: "perseus demo", PP: c.Stages, DP: c.Pipelines, TP: 1, CP: 1, EP: 1, WorldSize: c.Stages * c.Pipelines,
		Schedule: "1f1b", Microbatches: c.Microbatches, Chunks: 1, GPU: model, ReportEvery: 1, ProfilingBudget: 0.5,
	}
}

// rank is the global rank of a place: data-parallel neighbours come first, as in Megatron-LM.
func (w *world) rank(pipeline, rank int) int { return rank*w.config.Pipelines + pipeline }

// follow tells whether all ranks follow the schedules of a version, or of a later one.
func (w *world) follow(version int64) bool {
	for _, s := range w.attach {
		if s.Version() < version {
			return false
		}
	}
	return true
}

// join registers the job and attaches all ranks.
func (w *world) join(ctx context.Context, instructions []string) error {
	if _, err := w.client.PutJob(ctx, jobID, w.spec()); err != nil {
		return fmt.Errorf("register the job: %w", err)
	}
	for p, boards := range w.cluster.boards {
		for r, b := range boards {
			info := b.Open().Info()
			a, err := w.agents[p].Attach(ctx, wire.Hello{
				Hello: wire.Version, Job: jobID, Spec: w.spec(), Rank: w.rank(p, r), PP: r, DP: p, Device: info.ID,
				Instructions: instructions, Client: "demo", Session: fmt.Sprintf("demo-%d-%d", p, r),
			})
			if err != nil {
				return fmt.Errorf("rank %d on %s: %w", w.rank(p, r), info.ID, err)
			}
			w.attach = append(w.attach, session{a})
		}
	}
	return nil
}

// patience is how long the end may take.
const patience = 10 * time.Second

// leave closes what training processes hold, all at once, and returns when their GPUs are given back.
func (w *world) leave() {
	var all sync.WaitGroup
	for _, a := range w.attach {
		all.Go(a.Close)
	}
	all.Wait()
	w.attach = nil
}

// endAgents returns when the agents have ended.
func (w *world) endAgents() {
	w.stopAgents()
	w.agentsDone.Wait()
}

// stop ends everything that has not ended, agents before the server, and returns what failed on the way.
func (w *world) stop() error {
	w.leave()
	w.endAgents()
	if w.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		w.stopServer() // so that long-polls are answered
		if err := w.http.Shutdown(ctx); err != nil {
			w.fail("the server's end", errors.Join(err, w.http.Close()))
		}
	}
	w.stopServer()
	w.serverDone.Wait()
	if w.client != nil {
		w.client.Close()
	}
	if w.server != nil {
		w.fail("the server's end", w.server.Close())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.failed...)
}
