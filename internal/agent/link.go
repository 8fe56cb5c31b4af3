package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/wire"
)

const (
	// gather is how long registrations and reports of the node's other ranks are waited for, to send all as one.
	gather = 20 * time.Millisecond
	// poll is how long the server may hold a request for schedules.
	poll = 30 * time.Second
	// mostReports are kept while the server cannot be reached; beyond, the oldest are dropped.
	mostReports = 4096
	// lastWords is how long the end of a job waits for its last reports to be taken.
	lastWords = 2 * time.Second
	// welcomeWait is how long a hello waits for the server.
	welcomeWait = time.Second
)

// link is a job's connection to the server, for all of its ranks on this node.
type link struct {
	a    *Agent
	job  string
	spec api.JobSpec
	uid  uint32 // whose job it is

	mu         sync.Mutex
	sessions   []*Session
	generation int
	put        bool // the server knows the job
	registered map[*Session]chan struct{}
	version    int64
	cancel     context.CancelFunc // of the poll under way
	reports    []api.RankReport

	wake    chan struct{} // membership has changed
	waiting chan struct{} // reports are waiting
	orders  map[int][]follow.Op
}

// join adds s to the link of its job, which it begins where there is none.
func (a *Agent) join(s *Session) (*link, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil || a.ctx.Err() != nil {
		return nil, &wire.Refusal{Text: "the agent is ending", Code: wire.Unavailable}
	}
	l := a.links[s.hello.Job]
	if l == nil {
		l = &link{
			a: a, job: s.hello.Job, spec: s.hello.Spec, uid: s.uid, registered: map[*Session]chan struct{}{},
			wake: make(chan struct{}, 1), waiting: make(chan struct{}, 1), orders: map[int][]follow.Op{},
		}
		a.links[s.hello.Job] = l
		ctx := a.ctx
		a.group.Go(func() { l.run(ctx) })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uid != s.uid {
		return nil, &wire.Refusal{Text: fmt.Sprintf("job %s belongs to another user", l.job), Code: wire.Denied}
	}
	for _, o := range l.sessions {
		if o.hello.Rank == s.hello.Rank && o.d != s.d {
			return nil, &wire.Refusal{Text: fmt.Sprintf("rank %d of job %s has GPU %s", s.hello.Rank, l.job, o.d.id), Code: wire.Busy}
		}
	}
	l.sessions = append(l.sessions, s)
	l.registered[s] = make(chan struct{})
	return l, nil
}

// leave takes s off the link, which ends with its last rank.
func (l *link) leave(s *Session) {
	l.mu.Lock()
	l.sessions = slices.DeleteFunc(l.sessions, func(o *Session) bool { return o == s })
	delete(l.registered, s)
	last := len(l.sessions) == 0
	l.mu.Unlock()
	if last {
		l.stir()
	}
}

// stir makes the link look at its ranks anew.
func (l *link) stir() {
	l.mu.Lock()
	if l.cancel != nil {
		l.cancel()
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) currentGeneration() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation
}

// registered waits until the server has the rank, for welcomeWait at most.
func (s *Session) registered(ctx context.Context) error {
	if s.a.c.Uplink == nil {
		return nil
	}
	s.link.mu.Lock()
	c := s.link.registered[s]
	s.link.mu.Unlock()
	t, stop := s.a.c.Clock.NewTimer(welcomeWait)
	defer stop()
	select {
	case <-c:
	case <-t:
	case <-s.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// run registers, polls and reports until the job has no more ranks here or ctx ends.
func (l *link) run(ctx context.Context) {
	var reporting sync.WaitGroup
	words, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	over := make(chan struct{})
	if l.a.c.Uplink != nil {
		reporting.Go(func() { l.send(words, over) })
	}
	tries := 0
	for ctx.Err() == nil {
		if l.over() {
			break
		}
		if l.a.c.Uplink == nil {
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		err := l.once(ctx)
		switch {
		case err == nil:
			tries = 0
		case ctx.Err() == nil:
			tries++
			l.pause(ctx, tries, err)
		}
	}
	l.remove()
	// The last reports have a moment.
	close(over)
	limit := time.AfterFunc(lastWords, stop)
	defer limit.Stop()
	reporting.Wait()
}

// over tells whether no rank is left, and takes the link out of the agent if so: from then on a rank begins another.
func (l *link) over() bool {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sessions) > 0 {
		return false
	}
	delete(l.a.links, l.job)
	return true
}

func (l *link) remove() {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	if l.a.links[l.job] == l {
		delete(l.a.links, l.job)
	}
}

// pause waits after a failure: from 0.1 s on, twice as long each time, up to 10 s; a new rank ends it.
func (l *link) pause(ctx context.Context, tries int, err error) {
	if tries == 1 {
		l.a.log.Warn("the server cannot be had; the last schedule stays in force", "job", l.job, "error", err)
	}
	t, stop := l.a.c.Clock.NewTimer(min(100*time.Millisecond<<min(tries, 10), 10*time.Second))
	defer stop()
	select {
	case <-t:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// once registers the ranks that are not yet, or else asks for schedules once.
func (l *link) once(ctx context.Context) error {
	ask, stop := context.WithCancel(ctx)
	defer stop()
	l.mu.Lock()
	l.cancel = stop
	sessions := slices.Clone(l.sessions)
	var fresh []*Session
	for _, s := range sessions {
		if c := l.registered[s]; c != nil && !isClosed(c) {
			fresh = append(fresh, s)
		}
	}
	put, version, generation := l.put, l.version, l.generation
	l.mu.Unlock()
	select {
	case <-l.wake: // what it says is in sessions
	default:
	}
	if len(sessions) == 0 {
		return nil
	}
	var err error
	if len(fresh) > 0 || generation == 0 {
		err = l.register(ctx, put)
	} else {
		err = l.ask(ask, sessions, generation, version)
		if err != nil && ask.Err() != nil {
			err = nil // another rank has come, or this one gone
		}
	}
	switch statusOf(err) {
	case http.StatusConflict:
		l.a.log.Warn("the server has a newer generation of the job; registering again", "job", l.job, "error", err)
		l.forget(true)
	case http.StatusNotFound:
		l.forget(false)
	}
	return err
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// forget makes the link register again.
func (l *link) forget(put bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generation, l.version = 0, 0
	l.put = l.put && put
}

// register tells the server of all ranks here.
func (l *link) register(ctx context.Context, put bool) error {
	if err := sleep(ctx, l.a.c.Clock, gather); err != nil {
		return err
	}
	if !put {
		if _, err := l.a.c.Uplink.PutJob(ctx, l.job, l.spec); err != nil {
			return fmt.Errorf("register job %s: %w", l.job, err)
		}
	}
	l.mu.Lock()
	l.put = true
	sessions := slices.Clone(l.sessions)
	l.mu.Unlock()
	if len(sessions) == 0 {
		return nil
	}
	var r api.RankRegistration
	for _, s := range sessions {
		s.d.mu.Lock()
		clocks := slices.Clone(s.d.clocks)
		s.d.mu.Unlock()
		h := s.hello
		r.Ranks = append(r.Ranks, api.Rank{
			Rank: h.Rank, PP: h.PP, DP: h.DP, TP: h.TP, CP: h.CP, EP: h.EP, GPU: s.d.id, GPUModel: s.d.info.Name,
			Session: s.name, FrequencyMHz: clocks[:min(len(clocks), 1024)],
		})
	}
	got, err := l.a.c.Uplink.RegisterRanks(ctx, l.job, r)
	if err != nil {
		return fmt.Errorf("register ranks of job %s: %w", l.job, err)
	}
	l.mu.Lock()
	l.generation, l.version = got.Generation, 0
	var old []*Session
	for _, s := range sessions {
		c := l.registered[s]
		if c == nil {
			continue // it has left
		}
		if !isClosed(c) {
			close(c)
		}
		// A job that the server has forgotten counts its versions anew, whatever its generation is called.
		if s.generation != 0 && (s.generation != got.Generation || !put) {
			old = append(old, s)
			l.reports = nil // of an older generation
		}
		s.generation = got.Generation
	}
	l.mu.Unlock()
	for _, s := range old {
		s.restart()
	}
	return nil
}

// ask asks for schedules and hands them out.
func (l *link) ask(ctx context.Context, sessions []*Session, generation int, version int64) error {
	q := api.ScheduleQuery{Generation: generation, Version: version, Wait: poll}
	for _, s := range sessions {
		q.Ranks = append(q.Ranks, s.hello.Rank)
	}
	got, changed, err := l.a.c.Uplink.Schedules(ctx, l.job, q)
	if err != nil {
		return fmt.Errorf("schedules of job %s: %w", l.job, err)
	}
	if !changed {
		return nil
	}
	l.mu.Lock()
	l.version = got.Version
	l.mu.Unlock()
	for _, s := range sessions {
		var mine *api.RankSchedule
		for i := range got.Ranks {
			if got.Ranks[i].Rank == s.hello.Rank {
				mine = &got.Ranks[i]
			}
		}
		s.apply(got, mine)
	}
	return nil
}

// report keeps a report until it is sent.
func (l *link) report(r api.RankReport) {
	if l.a.c.Uplink == nil {
		return
	}
	l.mu.Lock()
	full := len(l.reports) >= mostReports
	if full {
		l.reports = l.reports[1:]
	}
	l.reports = append(l.reports, r)
	l.mu.Unlock()
	if full {
		l.a.count(func(st *Stats) { st.ReportsLost++ })
	}
	select {
	case l.waiting <- struct{}{}:
	default:
	}
}

// send sends reports until over is closed and none is left, or ctx ends.
func (l *link) send(ctx context.Context, over <-chan struct{}) {
	tries, ending := 0, false
	for ctx.Err() == nil {
		l.mu.Lock()
		n, generation := min(len(l.reports), mostReports), l.generation
		l.mu.Unlock()
		if n == 0 || generation == 0 {
			if ending {
				return
			}
			select {
			case <-l.waiting:
				if sleep(ctx, l.a.c.Clock, gather) != nil {
					return
				}
			case <-over:
				ending = true
			case <-ctx.Done():
			}
			continue
		}
		l.mu.Lock()
		n = min(len(l.reports), mostReports)
		batch := l.reports[:n:n]
		l.reports = l.reports[n:]
		l.mu.Unlock()
		if n == 0 {
			continue
		}
		_, err := l.a.c.Uplink.Report(ctx, l.job, api.Reports{Generation: generation, Ranks: batch})
		status := statusOf(err)
		switch {
		case err == nil:
			tries = 0
			l.a.count(func(s *Stats) { s.Reports += int64(n) })
		case status == http.StatusConflict:
			l.a.count(func(s *Stats) { s.ReportsLost += int64(n) })
			if l.currentGeneration() == generation {
				l.forget(true)
				l.stir()
			}
		case status >= 400 && status < 500 && status != http.StatusTooManyRequests:
			l.a.count(func(s *Stats) { s.ReportsLost += int64(n) })
			l.a.log.Error("the server refuses reports", "job", l.job, "error", err)
		default:
			l.mu.Lock()
			all := append(batch, l.reports...)
			lost := max(0, len(all)-mostReports)
			l.reports = all[lost:]
			l.mu.Unlock()
			if ending {
				return
			}
			tries++
			l.a.count(func(s *Stats) { s.ReportsLost += int64(lost) })
			t, stop := l.a.c.Clock.NewTimer(min(100*time.Millisecond<<min(tries, 10), 10*time.Second))
			select {
			case <-t:
			case <-over:
				ending = true
			case <-ctx.Done():
			}
			stop()
		}
	}
}

// statusOf returns the HTTP status of a refusal, or 0.
func statusOf(err error) int {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	var own *api.Error
	if errors.As(err, &own) {
		return own.Status
	}
	return 0
}
