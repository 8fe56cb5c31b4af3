// Package server is the control plane: it answers jobs and operators over HTTP, drives each job by package control, and
// keeps everything in a store. Any number of replicas may share a PostgreSQL store; a job's row lock lets one drive it
// at a time.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
	"golang.org/x/time/rate"
)

// Config says how to serve. Zero fields get the defaults of Standard.
type Config struct {
	// Database is a file or a postgres:// URL.
	Database string
	Defaults control.Defaults
	// RankDeadline is how long nothing may be heard of a job's ranks.
	RankDeadline time.Duration
	// RequireToken asks for a token on loopback addresses too.
	RequireToken bool
	// ZeusSchedule and ZeusMicrobatches are those of Zeus jobs that name none.
	ZeusSchedule     string
	ZeusMicrobatches int
	// LongestWait bounds how long a request for schedules may wait, whatever it asks for.
	LongestWait time.Duration
	Version     string
	Logger      *slog.Logger
	// Tracing wraps the HTTP handler, if not nil.
	Tracing func(http.Handler) http.Handler
}

// Server is a replica. New makes it, Run does the work that no request waits for, Handler answers requests.
type Server struct {
	config  Config
	log     *slog.Logger
	store   *store.Store
	release func() error // of the claim on the database
	hub     *hub
	plans   *plans
	shown   *recent[shown] // by hash: the schedules used last
	metrics *metrics
	dirty   chan string
	turns   map[string]*turn
	mu      sync.Mutex
	stop    context.CancelFunc
	// planning is a plan that is being made ahead of time.
	planning sync.WaitGroup
	stopped  context.Context
	refine   chan control.Want
	// unavailable keeps the log readable while the store is away and all ranks ask.
	unavailable rate.Sometimes
	// waiters is how many requests wait for a schedule.
	waiters atomic.Int64
	// computed counts frontiers computed.
	computed atomic.Int64
}

// New opens the store and returns a server that is ready to answer. Close it after Run has returned.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Defaults == (control.Defaults{}) {
		c.Defaults = control.Standard()
	}
	if c.RankDeadline <= 0 {
		c.RankDeadline = 10 * time.Minute
	}
	if c.LongestWait <= 0 {
		c.LongestWait = 10 * time.Minute
	}
	if c.ZeusSchedule == "" {
		c.ZeusSchedule = "1f1b"
	}
	if c.ZeusMicrobatches == 0 {
		c.ZeusMicrobatches = 8
	}
	m := newMetrics(c.Version)
	release, err := store.Claim(c.Database)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, c.Database, store.Options{Logger: c.Logger, Observe: m.commit})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	s := &Server{
		release: release,
		config:  c, log: c.Logger, store: st, metrics: m, turns: map[string]*turn{},
		unavailable: rate.Sometimes{Interval: time.Second},
		shown:       newRecent[shown](shownMax),
		dirty:       make(chan string, 1<<16), refine: make(chan control.Want, 256),
	}
	s.plans = newPlans(s.frontierBlob)
	s.hub = newHub(s)
	s.stopped, s.stop = context.WithCancel(context.Background())
	m.watch(s)
	return s, nil
}

// Close waits for a plan that is being made, and closes the store.
func (s *Server) Close() error {
	s.stop()
	s.planning.Wait()
	return errors.Join(s.store.Close(), s.release())
}

// Run drives jobs, computes frontiers and minds deadlines until ctx ends. Long-polls are answered at once then.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.stop()
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	start := func(what string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("%s: %w", what, err)
				cancel()
			}
		})
	}
	start("following the store", s.hub.run)
	start("background work", func(ctx context.Context) error {
		return s.store.Work(ctx, map[string]func(context.Context, string, []byte) error{workCharacterize: s.characterize}, 2)
	})
	for range drivers {
		start("driving jobs", s.driveDirty)
	}
	start("deadlines", s.mindDeadlines)
	start("refining plans", s.refineWants)
	start("cleaning up", s.sweep)
	<-ctx.Done()
	s.stop()
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// turn is where a job stands with those who drive: it waits for one, or one drives it, who looks again if asked to.
type turn struct{ again bool }

// touch has a job driven soon. It never blocks.
func (s *Server) touch(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turns[job]; t != nil {
		t.again = true
		return
	}
	select {
	case s.dirty <- job:
		s.turns[job] = &turn{}
	default: // the sweep finds it
	}
}

// drivers is how many jobs are driven side by side.
const drivers = 8

func (s *Server) driveDirty(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case job := <-s.dirty:
			s.driveInTurn(ctx, job)
		}
	}
}

// driveInTurn drives a job, and once more if reports came meanwhile: after a rest, so that those of a large job, whose
// state is long to read and write, are taken together.
func (s *Server) driveInTurn(ctx context.Context, job string) {
	for {
		s.mu.Lock()
		t := s.turns[job]
		t.again = false
		s.mu.Unlock()
		began := time.Now()
		if err := s.drive(ctx, job); err != nil && ctx.Err() == nil && !isUnknown(err) && !errors.Is(err, store.ErrNotFound) {
			s.log.Error("driving a job failed", "job", job, "error", err)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			select {
			case <-ctx.Done():
			case <-time.After(min(3*took, 200*time.Millisecond)):
			}
		}
		s.mu.Lock()
		if !t.again || ctx.Err() != nil {
			delete(s.turns, job)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// sweep deletes what nothing refers to any more, at the start and every hour.
func (s *Server) sweep(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := s.store.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("cleaning up failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
