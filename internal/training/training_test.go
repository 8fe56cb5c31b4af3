package training_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/training"
	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

const (
	ms       = time.Millisecond
	blocking = 84 * unit.Watt
)

// job is a small job, its frontier and its schedules.
type job struct {
	profile  *profile.Profile
	order    *pipeline.Order
	frontier *frontierfile.File
	pipeline *simulate.Pipeline
}

func newJob(t *testing.T, schedule string, stages int) job {
	t.Helper()
	j := job{profile: profile.Synthetic(profile.SyntheticConfig{Stages: stages, StepMHz: 60})}
	var err error
	if j.order, err = jobs.Order(schedule, pipeline.Size{Microbatches: 6}, stages); err != nil {
		t.Fatal(err)
	}
	c, err := jobs.New(j.profile, j.order, []unit.Power{blocking})
	if err != nil {
		t.Fatal(err)
	}
	if j.frontier, err = characterize.Run(t.Context(), c, characterize.Options{}); err != nil {
		t.Fatal(err)
	}
	if j.pipeline, err = simulate.New(&j.frontier.Header, j.profile); err != nil {
		t.Fatal(err)
	}
	return j
}

// loop returns a loop of some pipelines of the job on boards of their own.
func (j job) loop(t *testing.T, pipelines int, latency time.Duration, c training.Config) (*training.Loop, [][]*emulated.Board) {
	t.Helper()
	c.Order = j.order
	for range pipelines {
		var boards []*emulated.Board
		for rank := range j.order.Ranks {
			b, err := emulated.New(emulated.Config{
				Info: gpu.Info{ID: "emulated:0"}, Clocks: clocks(t, j.profile, rank), Latency: latency, Idle: 40 * unit.Watt,
				Blocking: []emulated.ClockPower{{MHz: 1, Power: blocking}}, Now: c.Clock.Now,
			})
			if err != nil {
				t.Fatal(err)
			}
			boards = append(boards, b)
		}
		c.Boards = append(c.Boards, boards)
	}
	c.Op = func(p, rank int, a pipeline.Action) (*emulated.Op, error) {
		return training.Measured(c.Boards[p][rank], j.profile, a)
	}
	l, err := training.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l, c.Boards
}

func clocks(t *testing.T, p *profile.Profile, stage int) []int {
	t.Helper()
	c, err := training.Clocks(p, stage)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// steering asks for the clocks of a schedule as ops begin.
type steering struct {
	device gpu.Device
	mhz    []int
	next   int
	fault  error
	events []wire.Event
}

func (s *steering) Event(e wire.Event) {
	s.events = append(s.events, e)
	switch e.Kind {
	case wire.StepBegin:
		s.next = 0
	case wire.OpBegin:
		if f := s.mhz[s.next]; f > 0 {
			s.fault = errors.Join(s.fault, s.device.LockClocks(gpu.Range{Min: f, Max: f}))
		}
		s.next++
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-7*math.Abs(want) {
		t.Errorf("%s: %.9g, want %.9g", what, got, want)
	}
}

// TestAsSimulated runs a plan whose clocks are asked for as ops begin: time and energy of each pipeline are those that
// the simulator gives it, whatever the latency of a switch and the speed of the clock.
func TestAsSimulated(t *testing.T) {
	for _, schedule := range []string{"1f1b", "interleaved-1f1b"} {
		j := newJob(t, schedule, 4)
		planner, err := plan.New(j.frontier)
		if err != nil {
			t.Fatal(err)
		}
		made, err := planner.Make(plan.Request{Goal: plan.LeastEnergy})
		if err != nil {
			t.Fatal(err)
		}
		for _, latency := range []string{"0", "5ms", "70ms"} {
			for _, maximum := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					s, err := j.pipeline.Plan(made)
					if maximum {
						s = j.pipeline.MaxClocks()
					}
					if err != nil {
						t.Fatal(err)
					}
					table, err := simulate.ParseSwitchTable(latency)
					if err != nil {
						t.Fatal(err)
					}
					simulator, err := simulate.NewSimulator([]simulate.Member{{Schedule: s, Copies: 2}}, simulate.Options{Switch: table, Optimizer: 20 * unit.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					duration, err := time.ParseDuration(latency)
					if err != nil {
						t.Fatal(err)
					}
					checked := 0
					config := training.Config{Clock: emulated.NewClock(time.Unix(0, 0), 20), Optimizer: 20 * ms}
					config.Report = func(it training.Iteration) bool {
						want := simulator.Next()
						if it.Number == 0 && !maximum {
							return true // which clock a GPU has at first is not the simulator's
						}
						checked++
						near(t, "time", it.Time.Seconds(), want.Time.Seconds())
						energy := want.Energy().Joules()
						near(t, "energy", it.Energy.Joules(), energy)
						near(t, "energy of a pipeline", it.PipelineEnergy[1].Joules(), energy/2)
						return it.Number < 2
					}
					l, boards := j.loop(t, 2, duration, config)
					var clients []*steering
					for p := range boards {
						for r, b := range boards[p] {
							c := &steering{device: b.Open()}
							from, to := j.pipeline.Rank(r)
							for op := from; op < to; op++ {
								c.mhz = append(c.mhz, int(s.Option[op].Knobs.ClockMHz))
							}
							clients = append(clients, c)
							l.Attach(p, r, c)
						}
					}
					if err := l.Run(t.Context()); err != nil || checked == 0 {
						t.Fatal(err, checked)
					}
					for _, c := range clients {
						if c.fault != nil {
							t.Fatal(c.fault)
						}
						if want := 3 * (2 + 2*len(c.mhz)); len(c.events) != want || c.events[want-1].Sequence != uint64(want) {
							t.Errorf("%d events, want %d: %v", len(c.events), want, c.events[len(c.events)-1])
						}
					}
				})
			}
		}
	}
}

// TestStraggler has one hot GPU make both pipelines slow, in iterations that train and in one that does not.
func TestStraggler(t *testing.T) {
	j := newJob(t, "1f1b", 4)
	synctest.Test(t, func(t *testing.T) {
		var boards [][]*emulated.Board
		var all []training.Iteration
		config := training.Config{Clock: emulated.NewClock(time.Unix(0, 0), 20), Evaluation: func(i int) bool { return i == 1 }}
		config.Report = func(it training.Iteration) bool {
			all = append(all, it)
			if it.Number == 1 {
				boards[1][3].SetCeiling(1110)
			}
			return it.Number < 3
		}
		var l *training.Loop
		l, boards = j.loop(t, 2, 0, config)
		c := &steering{mhz: make([]int, 12)}
		l.Attach(0, 0, c)
		if err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		fast, forwards, slow := all[0], all[1], all[2]
		near(t, "time", fast.Time.Seconds(), j.frontier.Header.MaxClockTime.Seconds())
		near(t, "energy", fast.Energy.Joules(), 2*j.frontier.Header.MaxClockEnergy.Joules())
		if !forwards.Evaluation || forwards.Time > fast.Time/2 || fast.Evaluation {
			t.Errorf("evaluation %v takes %v, an iteration %v", forwards.Evaluation, forwards.Time, fast.Time)
		}
		if slow.Pipelines[0] != fast.Time || slow.Pipelines[1] != slow.Time || slow.Time < fast.Time*11/10 {
			t.Errorf("%v after %v", slow.Pipelines, fast.Time)
		}
		wait := unit.Product(4*blocking, slow.Time-fast.Time)
		near(t, "energy of who waits", slow.PipelineEnergy[0].Joules(), fast.PipelineEnergy[0].Add(wait).Joules())
		if all[3].Time != slow.Time || !all[3].Begin.Equal(slow.Begin.Add(time.Duration(slow.Time))) {
			t.Errorf("%+v after %+v", all[3], slow)
		}
		evaluations := 0
		for _, e := range c.events {
			if e.Kind == wire.StepBegin && e.Evaluation() {
				evaluations++
			}
		}
		if want := 3*26 + 14; len(c.events) != want || evaluations != 1 {
			t.Errorf("%d events with %d evaluations, want %d with 1", len(c.events), evaluations, want)
		}
		if got, err := boards[0][0].Open().Power(); got != 40*unit.Watt || err != nil {
			t.Errorf("a GPU that was left draws %v, %v", got, err)
		}
	})
}

// TestChangeOnTheWay has somebody else change a clock while an op runs, at any moment of real time.
func TestChangeOnTheWay(t *testing.T) {
	j := newJob(t, "1f1b", 4)
	synctest.Test(t, func(t *testing.T) {
		clock := emulated.NewClock(time.Unix(0, 0), 20)
		var fast, slow, again training.Iteration
		config := training.Config{Clock: clock}
		var boards [][]*emulated.Board
		config.Report = func(it training.Iteration) bool {
			switch it.Number {
			case 0:
				fast = it
				clock.AfterFunc(11*ms, func() { boards[0][0].SetCeiling(810) })
				clock.AfterFunc(43*ms, func() { boards[0][0].SetCeiling(0) })
			case 1:
				slow = it
			case 2:
				again = it
			}
			return it.Number < 2
		}
		var l *training.Loop
		l, boards = j.loop(t, 1, 0, config)
		if err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if slow.Time <= fast.Time || slow.Time > fast.Time+32*unit.Millisecond || again.Time != fast.Time {
			t.Errorf("%v, %v, %v", fast.Time, slow.Time, again.Time)
		}
	})
}

func TestEnds(t *testing.T) {
	j := newJob(t, "1f1b", 4)
	synctest.Test(t, func(t *testing.T) {
		l, boards := j.loop(t, 1, 0, training.Config{Clock: emulated.NewClock(time.Unix(0, 0), 1)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := l.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if end, running := boards[0][0].End(); running {
			t.Errorf("an op still runs until %v", end)
		}
		if th, err := boards[0][0].Open().Throttle(); !th.Idle || err != nil {
			t.Errorf("%+v, %v", th, err)
		}
	})
}

func TestRefused(t *testing.T) {
	j := newJob(t, "1f1b", 4)
	config := training.Config{Clock: emulated.NewClock(time.Unix(0, 0), 1), Order: j.order}
	if _, err := training.New(config); err == nil {
		t.Error("no pipeline")
	}
	config.Boards = [][]*emulated.Board{make([]*emulated.Board, 3)}
	if _, err := training.New(config); err == nil {
		t.Error("a GPU is missing")
	}
}
