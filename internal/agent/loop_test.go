package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/unit"
)

const ms = time.Millisecond

// bubble is the clock of a synctest bubble.
type bubble struct{}

func (bubble) Now() time.Time { return time.Now() }

func (bubble) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	t := time.NewTimer(d)
	return t.C, t.Stop
}

const top = 1410

var whole = gpu.Range{Min: 210, Max: top}

func board(t testing.TB, i int, latency, step time.Duration, now func() time.Time) *emulated.Board {
	t.Helper()
	b, err := emulated.New(config(i, latency, step, now))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func config(i int, latency, step time.Duration, now func() time.Time) emulated.Config {
	return emulated.Config{
		Info:   gpu.Info{ID: fmt.Sprintf("emulated:%d", i), Name: "emulated", Driver: "1", Index: i},
		MinMHz: 210, MaxMHz: top, StepMHz: 15, MemoryMHz: 1593,
		Idle: 50 * unit.Watt, Static: 50 * unit.Watt, Dynamic: 300 * unit.Watt,
		Limit:   gpu.PowerLimit{Requested: 400 * unit.Watt, Enforced: 400 * unit.Watt, Default: 400 * unit.Watt},
		Latency: latency, CounterStep: step, Now: now, Seed: uint64(i),
	}
}

// server is an Uplink that remembers.
type server struct {
	mu         sync.Mutex
	generation int
	sessions   map[int]string
	schedules  api.Schedules
	changed    chan struct{}
	reports    []api.RankReport
	registered []api.RankRegistration
	down       error
}

func newServer() *server {
	return &server{sessions: map[int]string{}, changed: make(chan struct{}), generation: 1}
}

func (s *server) PutJob(context.Context, string, api.JobSpec) (api.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return api.Job{}, s.down
}

func (s *server) RegisterRanks(_ context.Context, _ string, r api.RankRegistration) (api.RankRegistered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range r.Ranks {
		if old := s.sessions[k.Rank]; old != "" && old != k.Session {
			s.generation++
			s.sessions = map[int]string{}
		}
		s.sessions[k.Rank] = k.Session
	}
	s.registered = append(s.registered, r)
	return api.RankRegistered{Generation: s.generation}, s.down
}

func (s *server) Schedules(ctx context.Context, _ string, q api.ScheduleQuery) (api.Schedules, bool, error) {
	limit := time.NewTimer(q.Wait)
	defer limit.Stop()
	for {
		s.mu.Lock()
		got, changed, down := s.schedules, s.changed, s.down
		got.Generation = s.generation
		got.Ranks = slices.Clone(got.Ranks)
		s.mu.Unlock()
		switch {
		case down != nil:
			return got, false, down
		case q.Generation != got.Generation:
			return got, false, &client.Error{Status: 409}
		case got.Version > q.Version:
			return got, true, nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return got, false, nil
		case <-ctx.Done():
			return got, false, ctx.Err()
		}
	}
}

func (s *server) Report(_ context.Context, _ string, r api.Reports) (api.Accepted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return api.Accepted{}, s.down
	}
	if r.Generation != s.generation {
		return api.Accepted{}, &client.Error{Status: 409}
	}
	s.reports = append(s.reports, r.Ranks...)
	return api.Accepted{Version: s.schedules.Version}, nil
}

// publish makes a schedule the newest.
func (s *server) publish(from int64, every int, ranks ...api.RankSchedule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedules = api.Schedules{Version: s.schedules.Version + 1, EffectiveIteration: from, ReportEvery: every, Ranks: ranks}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

func (s *server) taken() []api.RankReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reports
	s.reports = nil
	return r
}

// op is what the training loop does in one op: cycles in MHz·ns, at a load.
type op struct {
	name       string
	microbatch int
	start      time.Duration // not before, within the iteration
	cycles     float64
	load       float64
}

// trainer is a training process on an emulated board.
type trainer struct {
	b        *emulated.Board
	dev      gpu.Device
	s        *agent.Session
	ops      []op
	length   time.Duration // of an iteration, at least
	sequence uint64
	wait     float64 // load while waiting
}

var instructions = []string{"forward", "backward"}

func (tr *trainer) event(kind wire.Kind, name string, microbatch uint32) {
	tr.sequence++
	tr.s.Send(wire.Event{
		Kind: kind, Instruction: uint8(slices.Index(instructions, name) & 1), Microbatch: microbatch, Sequence: tr.sequence,
		TimeNs: uint64(time.Now().UnixNano()),
	})
}

// iterate runs one iteration and returns how long it took and what it needed by the board's own books.
func (tr *trainer) iterate() time.Duration {
	const slice = ms / 4
	begin := time.Now()
	tr.event(wire.StepBegin, "", 0)
	for _, o := range tr.ops {
		tr.b.SetLoad(tr.wait)
		time.Sleep(max(0, o.start-time.Since(begin)))
		tr.event(wire.OpBegin, o.name, uint32(o.microbatch))
		tr.b.SetLoad(o.load)
		for left := o.cycles; left > 0; {
			mhz, _ := tr.dev.Clock()
			d := min(slice, max(1, time.Duration(left/float64(mhz))))
			time.Sleep(d)
			left -= float64(d) * float64(mhz)
		}
		tr.event(wire.OpEnd, o.name, uint32(o.microbatch))
		tr.b.SetLoad(tr.wait)
	}
	time.Sleep(max(0, tr.length-time.Since(begin)))
	tr.event(wire.StepEnd, "", 0)
	return time.Since(begin)
}

func hello(i int) wire.Hello {
	return wire.Hello{
		Job: "job", Spec: api.JobSpec{PP: 8, WorldSize: 8, Microbatches: 4}, Rank: i, PP: i,
		Device: fmt.Sprint(i), Instructions: instructions, Session: fmt.Sprintf("s%d", i),
	}
}

// pipeline returns the ops of rank 7 of 8 in 1F1B, forward and backward in turn, and the schedule at the clocks given.
func alternating(n int, unitTime time.Duration, clocks ...int) (ops []op, r api.RankSchedule) {
	r = api.RankSchedule{Rank: 7, Mode: api.Planned, Instructions: instructions}
	t := time.Duration(0)
	for i := range 2 * n {
		name, d, load := "forward", unitTime, 0.8
		if i%2 == 1 {
			name, d, load = "backward", 2*unitTime, 1.0
		}
		mhz := clocks[i%len(clocks)]
		if i%3 == 0 {
			t += unitTime / 2
		}
		ops = append(ops, op{name, i / 2, t, float64(d) * float64(mhz), load})
		r.Instruction = append(r.Instruction, i%2)
		r.Stage = append(r.Stage, 7)
		r.Microbatch = append(r.Microbatch, i/2)
		r.FrequencyMHz = append(r.FrequencyMHz, mhz)
		r.StartNs = append(r.StartNs, int64(t))
		r.TimeNs = append(r.TimeNs, int64(d))
		t += d
	}
	r.IterationNs = int64(t)
	return ops, r
}

func start(t *testing.T, c agent.Config) (a *agent.Agent, stop func() error) {
	t.Helper()
	c.Clock = bubble{}
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	a, err := agent.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() error { cancel(); return <-done }
}

func clockOf(b *emulated.Board) int {
	mhz, _ := b.Open().Clock()
	return mhz
}

// TestIterationTime: with latencies up to those of slow GPUs, a planned iteration takes what the plan says, and what is
// reported is what the counter shows.
func TestIterationTime(t *testing.T) {
	for _, latency := range []time.Duration{5 * ms, 20 * ms, 60 * ms} {
		t.Run(latency.String(), func(t *testing.T) {
			var b *emulated.Board
			up := newServer()
			c := agent.Config{
				Open:   func() ([]gpu.Device, func() error, error) { return []gpu.Device{b.Open()}, nil, nil },
				Uplink: up, StateDir: t.TempDir() + "/state", Switching: follow.Fine,
			}
			synctest.Test(t, func(t *testing.T) {
				b = board(t, 7, latency, 20*ms, time.Now)
				a, stop := start(t, c)
				s, err := a.Attach(t.Context(), hello(7))
				if err != nil {
					t.Fatal(err)
				}
				ops, plan := alternating(4, 80*ms, 1200, 1305, 990, 1110)
				up.publish(0, 5, plan)
				tr := &trainer{b: b, dev: b.Open(), s: s, ops: ops, length: time.Duration(plan.IterationNs), wait: 0.2}
				for range 4 {
					tr.iterate() // latencies are measured
				}
				time.Sleep(10 * time.Millisecond)
				before, _ := tr.dev.Energy()
				for i := range 16 {
					if r := float64(tr.iterate()) / float64(plan.IterationNs); r > 1.005 || r < 0.995 {
						t.Errorf("iteration %d takes %.4f of the plan", i, r)
					}
				}
				after, _ := tr.dev.Energy()
				time.Sleep(2 * time.Second)
				joules, n := 0.0, 0
				for _, r := range up.taken() {
					if r.Iteration >= 5 {
						joules += r.EnergyJ * float64(r.Iterations)
						n += r.Iterations
					}
				}
				mean := (after.Energy - before.Energy).Joules() / 16
				if r := joules / float64(n) / mean; n < 10 || r < 0.99 || r > 1.01 {
					t.Errorf("%d iterations reported, of %.1f J; the counter shows %.1f", n, joules/float64(n), mean)
				}
				s.Close()
				time.Sleep(time.Second)
				if got := clockOf(b); got != top {
					t.Errorf("left at %d MHz", got)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

var errDown = errors.New("down")

// TestTrial: where calls delay what runs, that is found out and reported, and where they do not, nothing is.
func TestTrial(t *testing.T) {
	for _, cost := range []time.Duration{0, 2 * ms} {
		t.Run(cost.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := config(7, 5*ms, 20*ms, time.Now)
				conf.CallCost = cost
				b, err := emulated.New(conf)
				if err != nil {
					t.Fatal(err)
				}
				up := newServer()
				a, stop := start(t, agent.Config{
					Open:   func() ([]gpu.Device, func() error, error) { return []gpu.Device{b.Open()}, nil, nil },
					Uplink: up,
				})
				s, err := a.Attach(t.Context(), hello(7))
				if err != nil {
					t.Fatal(err)
				}
				_, plan := alternating(4, 80*ms, 1200, 990)
				plan.IterationNs = 0
				for i, mhz := range plan.FrequencyMHz {
					plan.StartNs[i], plan.TimeNs[i] = plan.IterationNs, int64(80e9/mhz)
					plan.IterationNs += plan.TimeNs[i]
				}
				up.publish(0, 5, plan)
				work := b.Formula("work", 80e6, 0, 1)
				sequence := uint64(0)
				event := func(k wire.Kind, i int) {
					sequence++
					s.Send(wire.Event{Kind: k, Instruction: uint8(i % 2), Microbatch: uint32(i / 2), Sequence: sequence, TimeNs: uint64(time.Now().UnixNano())})
				}
				b.Join()
				for range 60 {
					event(wire.StepBegin, 0)
					for i := range plan.Instruction {
						if _, err := b.Start(time.Now(), work); err != nil {
							t.Fatal(err)
						}
						event(wire.OpBegin, i) // what is called now delays it
						for end, running := b.End(); running; end, running = b.End() {
							time.Sleep(max(1, time.Until(end)))
						}
						event(wire.OpEnd, i)
					}
					event(wire.StepEnd, 0)
				}
				time.Sleep(2 * time.Second)
				reports := up.taken()
				last := reports[len(reports)-1]
				low, high := 0.0065, 0.0075 // 1.3 times 5 ms, found to a millisecond
				if cost > 0 {
					low, high = 0.8, 1.2 // 500 times 2 ms
				}
				if last.HoldS < low || last.HoldS > high {
					t.Errorf("clocks are to be kept for %v s", last.HoldS)
				}
				if early := reports[2]; early.HoldS > 0.01 {
					t.Errorf("before the trial: %v s", early.HoldS)
				}
				b.Leave()
				s.Close()
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
