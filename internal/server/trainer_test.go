package server

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// start returns a server on a database, running until the test ends or stop is called.
func start(t testing.TB, database string, change func(*Config)) (s *Server, stop func()) {
	t.Helper()
	c := Config{Database: database, Logger: slog.New(slog.DiscardHandler), RankDeadline: time.Hour}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, c)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// file returns the path of a fresh database.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "perseus.db") }

// trainer is a job in miniature: its ranks follow their schedules at once and report what a GPU with a simple,
// smooth model would take.
type trainer struct {
	t testing.TB
	s service
	// driven, if not nil, returns when the reports of the last iteration have been taken.
	driven     func()
	id         string
	spec       api.JobSpec
	generation int
	order      *pipeline.Order
	iteration  int64
	// versions are the schedules that the ranks were told; told is the version that each iteration ran.
	versions []known
	told     map[int64]int64
	slow     map[int]float64 // per rank: its ops take longer
	overhead float64
	drift    float64
	session  string
	acked    int64 // newest iteration whose reports were acknowledged
}

// service is what a trainer asks of a server: a Server beside it, or one behind HTTP.
type service interface {
	PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error)
	Job(ctx context.Context, id string) (api.Job, error)
	RegisterRanks(ctx context.Context, id string, r api.RankRegistration) (api.RankRegistered, error)
	Schedules(ctx context.Context, id string, q api.ScheduleQuery) (api.Schedules, error)
	Report(ctx context.Context, id string, r api.Reports) (api.Accepted, error)
}

type known struct {
	from, version int64
	every         int
	ranks         map[int]api.RankSchedule
}

var testClocks = []int{1400, 1300, 1200, 1100, 1000, 900, 800, 700, 600, 500}

func newTrainer(t testing.TB, s service, id string, spec api.JobSpec) *trainer {
	spec = control.Complete(spec)
	spec.WorldSize = spec.PP * spec.DP * spec.TP
	o, err := pipeline.Build(spec.Schedule, pipeline.Size{Ranks: spec.PP, Microbatches: spec.Microbatches})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trainer{t: t, s: s, id: id, spec: spec, order: o, told: map[int64]int64{}, slow: map[int]float64{}, overhead: 0.05, session: "s"}
	if beside, ok := s.(*Server); ok {
		// The reports are taken before the next iteration, as if it were long.
		tr.driven = func() {
			if err := beside.drive(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
	}
	return tr
}

func (tr *trainer) place(rank int) (pp, dp, tp int) {
	tp = rank % tr.spec.TP
	dp = rank / tr.spec.TP % tr.spec.DP
	pp = rank / tr.spec.TP / tr.spec.DP
	return
}

func (tr *trainer) register() {
	tr.t.Helper()
	if _, err := tr.s.PutJob(context.Background(), tr.id, tr.spec); err != nil {
		tr.t.Fatal(err)
	}
	reg := api.RankRegistration{}
	for r := range tr.spec.WorldSize {
		pp, dp, tp := tr.place(r)
		reg.Ranks = append(reg.Ranks, api.Rank{Rank: r, PP: pp, DP: dp, TP: tp, GPU: fmt.Sprint("GPU-", r), GPUModel: "Test", FrequencyMHz: testClocks, Session: tr.session})
	}
	done, err := tr.s.RegisterRanks(context.Background(), tr.id, reg)
	if err != nil {
		tr.t.Fatal(err)
	}
	if done.MissingCount != 0 {
		tr.t.Fatalf("%d ranks are missing", done.MissingCount)
	}
	tr.generation = done.Generation
	tr.iteration = 0
	tr.versions = nil
}

// model returns time in s and energy in J of an op.
func (tr *trainer) model(stage int, instruction string, mhz int) (s, j float64) {
	work := 0.010 * (1 + 0.15*float64(stage))
	if instruction == "backward" {
		work *= 2
	}
	f := float64(mhz) / 1400
	s = work * (0.2 + 0.8/f) * (1 + tr.drift)
	return s, s * (90 + 210*f*f*f)
}

const waitingW = 70

// fetch takes newer schedules.
func (tr *trainer) fetch(wait time.Duration) {
	tr.t.Helper()
	last := int64(0)
	if n := len(tr.versions); n > 0 {
		last = tr.versions[n-1].version
	}
	got, err := tr.s.Schedules(context.Background(), tr.id, api.ScheduleQuery{Generation: tr.generation, Version: last, Wait: wait})
	if err != nil {
		tr.t.Fatal(err)
	}
	if got.Version == last {
		return
	}
	k := known{from: got.EffectiveIteration, version: got.Version, every: got.ReportEvery, ranks: map[int]api.RankSchedule{}}
	if n := len(tr.versions); n > 0 {
		for r, sched := range tr.versions[n-1].ranks {
			k.ranks[r] = sched
		}
		if k.from <= tr.versions[n-1].from {
			tr.t.Fatalf("version %d holds from %d on, version %d before it from %d", got.Version, k.from, last, tr.versions[n-1].from)
		}
	}
	for _, r := range got.Ranks {
		k.ranks[r.Rank] = r
	}
	tr.versions = append(tr.versions, k)
}

// run trains one iteration and reports it. It returns the iteration's time.
func (tr *trainer) run() float64 {
	tr.t.Helper()
	if len(tr.versions) == 0 {
		tr.fetch(10 * time.Second) // a replica may not have heard yet that all ranks are here
	} else {
		tr.fetch(0)
	}
	cur := tr.versions[0]
	for _, k := range tr.versions {
		if k.from <= tr.iteration {
			cur = k
		}
	}
	if v, ok := tr.told[tr.iteration]; ok && v != cur.version {
		tr.t.Fatalf("iteration %d: told version %d, and now %d", tr.iteration, v, cur.version)
	}
	g, err := tr.order.Graph()
	if err != nil {
		tr.t.Fatal(err)
	}
	total := 0.0
	type measured struct {
		ops          map[string]*api.OpReport
		timeS, busyJ float64
	}
	ranks := make([]measured, tr.spec.WorldSize)
	for dp := range tr.spec.DP {
		var times []unit.Time
		for pp, actions := range tr.order.Ranks {
			lead := pp*tr.spec.DP*tr.spec.TP + dp*tr.spec.TP
			m := measured{ops: map[string]*api.OpReport{}}
			sched := cur.ranks[lead]
			for i, a := range actions {
				name := a.Kind.Instruction()
				mhz := testClocks[0]
				switch sched.Mode {
				case api.Uniform:
					mhz = sched.Uniform[name]
				case api.Planned:
					mhz = sched.FrequencyMHz[i]
				}
				s, j := tr.model(int(a.Stage), name, mhz)
				if f := tr.slow[lead]; f > 0 {
					s, j = s*f, j*f
				}
				times = append(times, unit.Time(math.Round(s*float64(unit.Second))))
				k := fmt.Sprint(name, mhz)
				if m.ops[k] == nil {
					m.ops[k] = &api.OpReport{Stage: int(a.Stage), Instruction: name, FrequencyMHz: mhz}
				}
				m.ops[k].TimeS, m.ops[k].EnergyJ = append(m.ops[k].TimeS, s), append(m.ops[k].EnergyJ, j)
				m.timeS += s
				m.busyJ += j
			}
			for tp := range tr.spec.TP {
				ranks[lead+tp] = m
			}
		}
		start := make([]unit.Time, len(times))
		total = max(total, g.Starts(start, func(op int32) unit.Time { return times[op] }).Seconds())
	}
	total += tr.overhead
	if tr.iteration%int64(max(1, cur.every)) == 0 {
		reports := api.Reports{Generation: tr.generation}
		for r, m := range ranks {
			rep := api.RankReport{Rank: r, Version: cur.version, Iteration: tr.iteration, Iterations: 1, TimeS: total, EnergyJ: m.busyJ + waitingW*(total-m.timeS)}
			for _, op := range m.ops {
				rep.Ops = append(rep.Ops, *op)
			}
			reports.Ranks = append(reports.Ranks, rep)
		}
		if _, err := tr.s.Report(context.Background(), tr.id, reports); err != nil {
			tr.t.Fatal(err)
		}
		tr.acked = tr.iteration
		if tr.driven != nil {
			tr.driven()
		}
	}
	tr.told[tr.iteration] = cur.version
	tr.iteration++
	return total
}

// until trains until the job is in a state, at most n iterations.
func (tr *trainer) until(n int, done func(api.Job) bool) api.Job {
	tr.t.Helper()
	var job api.Job
	for range n {
		job = tr.job()
		if done(job) {
			return job
		}
		if job.State == api.Characterizing {
			tr.settleBackground()
		}
		tr.run()
	}
	tr.t.Fatalf("after %d iterations the job is %s (%s), plan %+v", n, job.State, job.Reason, job.Plan)
	return job
}

// settleBackground gives background work, which runs beside the trainer, a little time.
func (tr *trainer) settleBackground() {
	beside, ok := tr.s.(*Server)
	if !ok {
		return
	}
	select {
	case <-beside.hub.waiting(tr.id):
	case <-time.After(50 * time.Millisecond):
	}
}

func (tr *trainer) job() api.Job {
	tr.t.Helper()
	job, err := tr.s.Job(context.Background(), tr.id)
	if err != nil {
		tr.t.Fatal(err)
	}
	return job
}

func running(j api.Job) bool { return j.State == api.Running && j.Plan != nil }
