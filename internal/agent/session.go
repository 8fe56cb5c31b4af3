package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/agent/meter"
	"github.com/perseus-energy/perseus/internal/agent/trial"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/wire"
)

type request = follow.Request

// Session is the lease of a GPU to one rank, as its process sees it.
type Session struct {
	a     *Agent
	d     *driver
	link  *link
	hello wire.Hello
	uid   uint32
	name  string // of the process

	released chan struct{} // closed when the GPU is as before
	notices  chan string   // to the process; full: dropped
	ended    chan struct{} // closed when the lease ends, whoever ended it

	generation int // with the link's lock

	// All below has the driver's lock.
	closed   bool
	seen     time.Duration // last sign of life
	sequence uint64
	last     time.Duration // time of the last event
	follower *follow.Follower
	meter    *meter.Meter
	stages   []int // of each chunk
	schedule *api.RankSchedule
	version  int64
	every    int
	report   *reporting

	checkCapped, hasCapped bool
	capped                 time.Duration
	achieved               map[int]int // by clock asked for
	told                   bool

	trial    trial.Trial
	began    time.Duration // of the step under way
	needless bool          // the trial has the call that set the clock repeated in this step
	repeat   bool          // now
}

// Attach leases a GPU to a rank of this process, as a hello over the socket does for another one. It waits for Run to
// have begun, and up to a second for the server to register the rank. The error is a *wire.Refusal, or that of ctx.
func (a *Agent) Attach(ctx context.Context, h wire.Hello) (*Session, error) {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if h.Hello == 0 {
		h.Hello = wire.Version
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	if h.Session == "" {
		h.Session = fmt.Sprintf("in-process-%d-%p", h.Rank, &h)
	}
	s, err := a.lease(h, uint32(os.Geteuid()), h.Session)
	if err != nil {
		return nil, err
	}
	if err := s.registered(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Ready is closed once sessions can be had.
func (a *Agent) Ready() <-chan struct{} { return a.ready }

// lease gives the GPU that h names to it.
func (a *Agent) lease(h wire.Hello, uid uint32, name string) (*Session, error) {
	d := a.driver(h.Device)
	if d == nil {
		return nil, &wire.Refusal{Text: fmt.Sprintf("device %q: this node has no such GPU (%s)", h.Device, a.names()), Code: wire.Invalid}
	}
	s := &Session{
		a: a, d: d, hello: h, uid: uid, name: name, released: make(chan struct{}), ended: make(chan struct{}),
		notices: make(chan string, 16), every: a.c.ReportEvery, achieved: map[int]int{}, meter: meter.New(),
	}
	s.follower = follow.New(a.c.Switching, s.latencyOf, h.Iteration)
	s.stages = stagesOf(h)

	d.restored(welcomeWait)
	link, err := a.join(s)
	if err != nil {
		return nil, err
	}
	s.link = link
	for {
		before, err := d.take(s)
		if err != nil {
			link.leave(s)
			return nil, err
		}
		if before == nil {
			break
		}
		<-before // the same rank, connecting again before its old connection was found dead
	}
	link.stir()
	return s, nil
}

func (a *Agent) names() string {
	text := ""
	for i, d := range a.drivers {
		if i > 0 {
			text += ", "
		}
		text += d.id
	}
	return text
}

// take makes s the driver's lease. Where the same rank of the same user has it, that lease is ended and a channel
// returned that is closed when it is.
func (d *driver) take(s *Session) (before <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.lease
	switch {
	case d.stopped:
		return nil, &wire.Refusal{Text: "the agent is ending", Code: wire.Unavailable}
	case d.drained:
		return nil, &wire.Refusal{Text: fmt.Sprintf("GPU %s is drained", d.id), Code: wire.Unavailable}
	case old != nil && (old.hello.Job != s.hello.Job || old.hello.Rank != s.hello.Rank || old.uid != s.uid):
		return nil, &wire.Refusal{Text: fmt.Sprintf("GPU %s is leased to another process", d.id), Code: wire.Busy}
	case old != nil:
		old.endLocked("the same rank has connected again")
		return old.released, nil
	case d.restoring || d.lost:
		return nil, &wire.Refusal{Text: fmt.Sprintf("GPU %s is still being restored", d.id), Code: wire.Unavailable}
	}
	now := d.a.now()
	s.seen = now
	d.lease, d.idle, d.changed, d.retries, d.retryAt = s, make(chan struct{}), false, 0, 0
	s.follower.Override(d.overridden)
	// An earlier lease may have given the clock back just now.
	_, latest := d.a.latency.of(modelOf(d.info), own)
	s.meter.Clock(now, meter.Changing)
	s.meter.Clock(now+latest, own)
	d.stir()
	return nil, nil
}

// Send hands over events, in the order in which they happened. It does not wait for the GPU. After the end of the lease
// it does nothing.
func (s *Session) Send(events ...wire.Event) {
	d := s.d
	d.mu.Lock()
	if s.closed {
		d.mu.Unlock()
		return
	}
	now := s.a.now()
	s.seen = now
	missed := false
	for _, e := range events {
		s.handle(e, now)
		missed = missed || e.Kind == wire.StepEnd || e.Kind == wire.StepBegin
	}
	if missed || d.missed(now) {
		d.stir()
	}
	d.mu.Unlock()
	s.a.count(func(st *Stats) { st.Events += int64(len(events)) })
}

// Settle waits until the agent has done what is due by the events sent so far. A process in real time has no need of it;
// one that lives on a clock of its own can hold that clock meanwhile, so that the agent is never late by it.
func (s *Session) Settle() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for s.d.awake && !s.d.gone {
		s.d.asleep.Wait()
	}
}

// Version is the version of the schedules that the rank's latest iteration followed; 0: none.
func (s *Session) Version() int64 {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.version
}

// strange is how far the time of an event may be from the agent's: beyond it the clocks are not the same one, and the
// time of arrival is taken.
const strange = time.Second

func (s *Session) handle(e wire.Event, now time.Duration) {
	at := time.Duration(e.TimeNs)
	if at > now+strange || at < now-strange {
		at = now
	}
	at = max(at, s.last)
	s.last = at
	if e.Sequence <= s.sequence {
		return // a repeat
	}
	if lost := e.Sequence - s.sequence - 1; lost > 0 && s.sequence > 0 {
		s.follower.Lost(lost)
		s.a.count(func(st *Stats) { st.EventsLost += int64(min(lost, 1<<40)) })
	}
	s.sequence = e.Sequence
	microbatch := -1
	if e.Microbatch != wire.UnknownMicrobatch {
		microbatch = int(e.Microbatch)
	}
	switch e.Kind {
	case wire.StepBegin:
		s.endStep(at)
		s.tried(at)
		s.follower.StepBegin(at, e.Evaluation())
		s.began = at
		s.needless = s.trial.Begin(s.follower.Iteration(), s.tries() && !e.Evaluation())
		if v := s.follower.Version(); v != s.version && !e.Evaluation() {
			s.version = v
			s.meter.Reset()
		}
		s.meter.Fine(s.follower.Mode() == follow.Uniform)
		if !e.Evaluation() {
			s.meter.StepBegin(at, s.follower.Iteration(), s.follower.Version())
		}
		s.checkCapped = true
	case wire.StepEnd:
		s.endStep(at)
	case wire.OpBegin:
		name := s.hello.Instructions[e.Instruction]
		op, ok := s.follower.OpBegin(at, name, microbatch)
		if !ok {
			op.Stage = s.stage(int(e.Chunk))
		}
		s.meter.Begin(at, meter.Op{Stage: op.Stage, Instruction: name})
		s.repeat = s.needless
	case wire.OpEnd:
		s.follower.OpEnd(at)
		s.meter.End(at)
	}
}

// tries tells whether what calls cost can be tried by the plan of the iteration under way.
func (s *Session) tries() bool {
	automatic := s.a.c.Switching == "" || s.a.c.Switching == follow.Auto
	return automatic && s.d.readOnly == "" && !s.d.overridden && s.follower.Mode() == follow.Planned && s.follower.Changes() > 0
}

// tried takes the end of a step for the trial.
func (s *Session) tried(at time.Duration) {
	if s.trial.Over() {
		return
	}
	s.trial.End(s.follower.Iteration(), at-s.began, s.follower.AsPlanned())
	if cost := s.trial.Cost(); cost > 0 {
		s.a.log.Warn("setting clocks delays the training; clocks are to change less often", "gpu", s.d.id, "job", s.hello.Job,
			"rank", s.hello.Rank, "cost_of_a_call", cost, "kept_for", trial.Hold(s.a.latency.longest(modelOf(s.d.info)), cost))
	}
}

func (s *Session) endStep(at time.Duration) {
	s.follower.StepEnd(at)
	s.meter.StepEnd(at, s.follower.AsPlanned())
	s.report.unplanned(s, s.follower.Unplanned())
}

// stage returns the stage of a chunk of the rank's.
func (s *Session) stage(chunk int) int {
	if chunk < len(s.stages) {
		return s.stages[chunk]
	}
	return chunk*s.hello.Spec.PP + s.hello.PP
}

// asked says that the GPU was asked for a clock at a time; watched, that it will be seen when the clock is there.
func (s *Session) asked(r request, at time.Duration, watched bool) {
	s.follower.Asked(r)
	earliest, latest := s.latencyOf(r.MHz)
	s.meter.Clock(at+earliest, meter.Changing)
	if !watched {
		s.meter.Clock(at+latest, r.MHz)
	}
}

// latencyOf returns within which times the GPU changes to a clock.
func (s *Session) latencyOf(mhz int) (earliest, latest time.Duration) {
	if mhz != own {
		mhz = s.d.listed(mhz)
	}
	return s.a.latency.of(modelOf(s.d.info), mhz)
}

// apply takes a schedule of the server.
func (s *Session) apply(all api.Schedules, r *api.RankSchedule) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.every = all.ReportEvery
	if s.every <= 0 {
		s.every = s.a.c.ReportEvery
	}
	if r != nil {
		s.schedule = r
	} else if r = s.schedule; r == nil { // it is that of the version before
		return
	}
	p := planOf(all, r)
	if p.Mode != follow.Planned {
		p.Ops = s.link.order(s.hello.PP)
	}
	s.follower.Offer(p)
	if n := s.follower.Merged(); n > 0 {
		s.a.log.Info("ops too short for a switch of clocks share the highest clock of their neighbours", "gpu", s.d.id, "version", p.Version, "ops", n)
	}
	s.d.stir()
}

// restart begins a new generation.
func (s *Session) restart() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.follower.Restart()
	s.report, s.trial, s.needless = nil, trial.Trial{}, false
	s.d.stir()
}

// Generation is the one that the server has the rank in; 0: it has not answered yet.
func (s *Session) Generation() int { return s.link.currentGeneration() }

// Steering tells whether clocks will be changed; note says why not.
func (s *Session) Steering() (steering bool, note string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.a.c.Uplink == nil {
		return false, "there is no server; only measuring"
	}
	return s.d.readOnly == "", s.d.readOnly
}

// Notices are what the process should log. The channel is never closed.
func (s *Session) Notices() <-chan string { return s.notices }

// Ended is closed when the lease ends, by Close or by the agent.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Close ends the lease and waits until the GPU is as it was, or the agent has ended.
func (s *Session) Close() {
	s.end("")
	select {
	case <-s.released:
	case <-s.a.done:
	}
}

func (s *Session) end(why string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.endLocked(why)
}

func (s *Session) endLocked(why string) {
	if s.closed {
		return
	}
	s.closed = true
	if why != "" {
		s.notifyLocked(why)
	}
	s.link.leave(s)
	close(s.ended)
	s.d.restoring, s.d.retryAt, s.d.retries = true, 0, 0
	s.d.stir()
}

func (s *Session) notify(text string) { s.notifyLocked(text) }

// notifyLocked tells the process; it needs no lock, and is named for those that have it.
func (s *Session) notifyLocked(text string) {
	s.a.log.Info("notice", "gpu", s.d.id, "job", s.hello.Job, "rank", s.hello.Rank, "text", text)
	select {
	case s.notices <- text:
	default:
	}
}

// expire ends a lease whose process has been silent for three heartbeats.
func (d *driver) expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lease; l != nil && !l.closed && d.a.now()-l.seen > 3*d.a.c.Heartbeat {
		l.endLocked("no sign of life for three heartbeats: the lease has ended")
	}
}

// override brings the clock to the highest, or takes that back.
func (d *driver) override(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.overridden = on
	if d.lease != nil {
		d.lease.follower.Override(on)
	}
	d.stir()
}

// stop ends the lease for good.
func (d *driver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.lease != nil {
		d.lease.endLocked("the agent is ending")
	}
	d.stir()
}

// restored waits until a GPU that is being restored is as before, for a time at most.
func (d *driver) restored(limit time.Duration) {
	d.mu.Lock()
	restoring := d.restoring && d.lease == nil
	d.mu.Unlock()
	if !restoring {
		return
	}
	t, stop := d.a.c.Clock.NewTimer(limit)
	defer stop()
	select {
	case <-d.free():
	case <-t:
	}
}

// free returns a channel that is closed once nobody has the GPU and it is as it was.
func (d *driver) free() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease == nil && !d.restoring {
		c := make(chan struct{})
		close(c)
		return c
	}
	if d.idle == nil {
		d.idle = make(chan struct{})
	}
	return d.idle
}
