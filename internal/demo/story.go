package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/training"
)

// story is what the demo shows, from the first iteration to the last.
type story struct {
	Config
	View
	cluster *cluster
	world   *world
	begun   time.Time

	loop       *training.Loop
	iterations chan training.Iteration
	resume     chan struct{}
	ended      chan error // of the loop
	joined     int        // first iteration that the agents know of; theirs count from 0 there
	last       training.Iteration
	job        api.Job
	asked      time.Time // when job was read
	told       api.State
}

// span is the mean of some iterations.
type span struct{ time, energy float64 } // s and J

// less returns by how many percent b is less than a.
func less(a, b float64) float64 { return 100 * (1 - b/a) }

// How many iterations are looked at.
const (
	atMaximum = 3
	byPlan    = 6
)

// tell trains and returns the result. With Keep it calls done with it, and trains on until ctx ends. The training has
// ended when it returns, and the server knows.
func (s *story) tell(ctx context.Context, done func(*Result)) (result *Result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.iterations, s.resume, s.ended = make(chan training.Iteration), make(chan struct{}), make(chan error, 1)
	s.loop, err = training.New(training.Config{
		Clock: s.cluster.clock, Order: s.cluster.order, Boards: s.cluster.boards, Op: s.cluster.op,
		Report: func(it training.Iteration) bool {
			select {
			case s.iterations <- it:
			case <-ctx.Done():
				return false
			}
			select {
			case <-s.resume:
				return true
			case <-ctx.Done():
				return false
			}
		},
	})
	if err != nil {
		return nil, err
	}
	go func() { s.ended <- s.loop.Run(ctx) }()
	limited, stop := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("the demo did not come to its end within %v", s.Limit))
	defer stop()
	result, err = s.play(limited)
	if err == nil && s.Keep {
		done(result)
		err = s.keep(ctx)
	}
	cancel(nil)
	if ended := <-s.ended; ended != nil && !errors.Is(ended, context.Canceled) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return nil, err
	}
	s.world.leave()
	finishing, end := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer end()
	if _, err := s.world.client.Finish(finishing, jobID); err != nil {
		return nil, fmt.Errorf("finish the job: %w", err)
	}
	return result, nil
}

// next returns the iteration that is run next; what was changed before holds in it. The clock stands still until it is
// called again.
func (s *story) next(ctx context.Context) (training.Iteration, error) {
	if s.last.Time > 0 {
		select {
		case s.resume <- struct{}{}:
		case <-ctx.Done():
			return s.last, context.Cause(ctx)
		}
	}
	select {
	case s.last = <-s.iterations:
		return s.last, nil
	case err := <-s.ended:
		s.ended <- err
		return s.last, fmt.Errorf("the training ended: %w", err)
	case <-s.world.broken:
		return s.last, errors.New("a part of the demo ended early")
	case <-ctx.Done():
		return s.last, context.Cause(ctx)
	}
}

// mean returns the mean of the next n iterations.
func (s *story) mean(ctx context.Context, n int) (m span, err error) {
	for range n {
		it, err := s.next(ctx)
		if err != nil {
			return m, err
		}
		m.time += it.Time.Seconds() / float64(n)
		m.energy += it.Energy.Joules() / float64(n)
	}
	return m, nil
}

// line says what happened, and when.
func (s *story) line(format string, args ...any) {
	s.Line(fmt.Sprintf("%5.1f s  %s", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...)))
}

func (s *story) play(ctx context.Context) (*Result, error) {
	r := &Result{}
	s.line("server at %s, %d agents with %d emulated GPUs each; their time runs %.3g times as fast as yours", s.world.url, s.Pipelines, s.Stages, s.cluster.config.Speed)
	maximum, err := s.mean(ctx, atMaximum)
	if err != nil {
		return nil, err
	}
	s.line("training at maximum clock: an iteration takes %.3f s and %.0f J", maximum.time, maximum.energy)
	s.cluster.heat(true)
	slow, err := s.mean(ctx, atMaximum)
	if err != nil {
		return nil, err
	}
	s.cluster.heat(false)
	p, rank, mhz := s.cluster.straggler()
	s.line("the same while GPU %d of pipeline %d is hot and gets no more than %d MHz: %.3f s and %.0f J", rank, p, mhz, slow.time, slow.energy)
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	before, planned, err := s.planned(ctx)
	if err != nil {
		return nil, err
	}
	r.Profiling = s.profiled()
	r.Saving, r.Slowdown = less(maximum.energy, planned.energy), 100*(planned.time/maximum.time-1)
	s.line("with the schedule: %.3f s and %.0f J an iteration, %.2f %% less energy, %+.2f %% time", planned.time, planned.energy, r.Saving, r.Slowdown)
	check, err := s.check(ctx, before, maximum, planned)
	if err != nil {
		return nil, err
	}

	s.cluster.heat(true)
	s.line("GPU %d of pipeline %d gets hot", rank, p)
	answered, err := s.answered(ctx, before)
	if err != nil {
		return nil, err
	}
	s.cluster.heat(false)
	r.Straggler = less(slow.energy, answered.energy)
	s.line("with the answer: %.3f s and %.0f J an iteration, %.2f %% less than at maximum clock", answered.time, answered.energy, r.Straggler)
	r.Simulated, r.Frontier = check.simulated, check.frontier
	r.MaxTimeS, r.MaxEnergyJ, r.TimeS, r.EnergyJ = maximum.time, maximum.energy, planned.time, planned.energy
	r.SlowTimeS, r.SlowEnergyJ, r.Iterations = answered.time, answered.energy, s.last.Number+1
	r.Checks = append(r.Checks,
		Check{fmt.Sprintf("%.2f %% are saved at unchanged time: %+.2f %%, 0.5 %% at most", r.Saving, r.Slowdown), r.Saving > 0 && r.Slowdown <= 0.5})
	r.Checks = append(r.Checks, check.checks...)
	r.Checks = append(r.Checks,
		Check{
			fmt.Sprintf("with the straggler %.2f %% are saved, and it is not held up further: %+.2f %%, 1 %% at most", r.Straggler, 100*(answered.time/slow.time-1)),
			r.Straggler > 0 && answered.time <= 1.01*slow.time,
		})
	return r, nil
}

// join attaches the agents while the job trains on, and lets all ranks be heard from the same iteration on.
func (s *story) join(ctx context.Context) error {
	joined := make(chan error, 1)
	go func() { joined <- s.world.join(ctx, s.loop.Instructions()) }()
	for {
		select {
		case err := <-joined:
			if err != nil {
				return err
			}
			for i, a := range s.world.attach {
				s.loop.Attach(i/s.Stages, i%s.Stages, a)
			}
			s.joined = s.last.Number + 1
			s.line("all %d ranks have joined", len(s.world.attach))
			return nil
		default:
		}
		if _, err := s.next(ctx); err != nil {
			return errors.Join(err, <-joined)
		}
	}
}

// interval is how often the server is asked how the job is, in real time.
const interval = 50 * time.Millisecond

// look asks for the job, if that was not just done, and tells what is new.
func (s *story) look(ctx context.Context) error {
	if time.Since(s.asked) < interval {
		return nil
	}
	job, err := s.world.client.Job(ctx, jobID)
	if err != nil {
		return fmt.Errorf("ask for the job: %w", err)
	}
	s.asked, s.job = time.Now(), job
	switch {
	case job.State == api.Failed || job.State == api.Paused:
		return fmt.Errorf("the job is %s: %s", job.State, job.Reason)
	case job.State == api.Profiling && job.Profiling != nil:
		s.Status(fmt.Sprintf("profiling: %.0f %%, %d iterations", 100*job.Profiling.DoneFraction, job.Profiling.Iterations))
	default:
		s.Status(fmt.Sprintf("%s, iteration %d", job.State, job.Iteration))
	}
	if job.State == s.told {
		return nil
	}
	switch {
	case job.State == api.Profiling:
		s.line("profiling: the agents try clocks and read the energy counters while the job trains")
	case s.told == api.Profiling:
		s.line("profiled in %d iterations", s.profiled())
	}
	if f := job.Frontier; job.State == api.Running && f != nil {
		s.line("frontier found: %d points from %.3f s to %.3f s an iteration", f.Points, f.MinTimeS, f.MaxTimeS)
	}
	s.told = job.State
	return nil
}

func (s *story) profiled() int64 {
	if s.job.Profiling == nil {
		return 0
	}
	return s.job.Profiling.Iterations
}

// planned returns the energy schedule that the server made, and what the iterations by it take.
func (s *story) planned(ctx context.Context) (api.Schedules, span, error) {
	return s.settled(ctx, func() bool { return s.job.State == api.Running && s.job.Plan != nil })
}

// answered returns what iterations take once the server has answered the straggler.
func (s *story) answered(ctx context.Context, before api.Schedules) (span, error) {
	said := false
	fastest := s.job.Plan.WaitTimeS
	_, m, err := s.settled(ctx, func() bool {
		ok := s.job.State == api.Running && len(s.job.Stragglers) > 0 && s.job.Version > before.Version && s.job.Plan != nil &&
			s.job.Plan.WaitTimeS > 1.001*fastest
		if ok && !said {
			said = true
			g := s.job.Stragglers[0]
			s.line("the server has seen it (source %s, slowdown %.3g) and lets the others wait less: an iteration may take %.3f s", g.Source, g.Slowdown, s.job.Plan.WaitTimeS)
		}
		return ok
	})
	return m, err
}

// settled waits until the job is as wished, and for a schedule that lasts, and returns it and what iterations take by it.
func (s *story) settled(ctx context.Context, wished func() bool) (now api.Schedules, m span, err error) {
	for {
		if _, err := s.next(ctx); err != nil {
			return now, m, fmt.Errorf("%w (the job is %s %s)", err, s.job.State, s.job.Reason)
		}
		if err := s.look(ctx); err != nil {
			return now, m, err
		}
		if !wished() {
			continue
		}
		if now, err = s.schedules(ctx); err != nil {
			return now, m, err
		}
		// The server reckons in real time how far the ranks are: in scaled time its schedules may come late.
		for !s.world.follow(now.Version) {
			if _, err := s.next(ctx); err != nil {
				return now, m, err
			}
		}
		if m, err = s.mean(ctx, byPlan); err != nil {
			return now, m, err
		}
		after, err := s.schedules(ctx)
		if err != nil {
			return now, m, err
		}
		if after.Version == now.Version && wished() {
			return now, m, nil
		}
		s.asked = time.Time{}
	}
}

// schedules returns what all ranks are to do.
func (s *story) schedules(ctx context.Context) (api.Schedules, error) {
	q := api.ScheduleQuery{}
	for rank := range s.Stages * s.Pipelines {
		q.Ranks = append(q.Ranks, rank)
	}
	got, _, err := s.world.client.Schedules(ctx, jobID, q)
	if err != nil {
		return got, fmt.Errorf("ask for the schedules: %w", err)
	}
	return got, nil
}

// keep trains on until ctx ends.
func (s *story) keep(ctx context.Context) error {
	s.line("the job trains on; stop it with Ctrl-C. To look at it:  perseus jobs show %s --server %s", jobID, s.world.url)
	for {
		if _, err := s.next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.line("%v", err)
			s.asked = time.Now().Add(time.Second)
		}
	}
}
