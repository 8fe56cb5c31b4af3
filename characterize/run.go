package characterize

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// Options say how much of the frontier is wanted.
type Options struct {
	// Points is the most points that the file may have, at least 3; 0 means all.
	Points int
	// Epsilon is how far the straight line between two neighbouring points may
	// lie above the exact frontier, as a fraction; 0 means exact, unless Points
	// asks for fewer.
	Epsilon frontierfile.Ratio
	// Progress, if not nil, is called for each segment, by another goroutine than
	// Run's but never by two at once.
	Progress func(Progress)
}

// Progress is how far the walk along the frontier is.
type Progress struct {
	// At is the time that the walk has come to, on its way from Slow to Fast.
	At, Slow, Fast unit.Time
	// Points is how many points were found until now.
	Points int
}

// Run returns the frontier of a job. The same job and options give the same file,
// however many cores there are. It fails where the measurements lack an op or are
// out of range, and with ctx.Err() soon after ctx ends. It uses GOMAXPROCS cores.
func Run(ctx context.Context, job Job, opt Options) (*frontierfile.File, error) {
	p, h, err := job.problem()
	if err != nil {
		return nil, err
	}
	if err := opt.check(); err != nil {
		return nil, err
	}
	h.Landmarks = landmarks(p)
	if err := inRange(p, h.Landmarks); err != nil {
		return nil, err
	}
	if opt.Points == 0 && opt.Epsilon == 0 {
		return collect(ctx, &collector{problem: p, whole: true}, h, segments(p), opt.Progress)
	}
	return chosenPoints(ctx, p, h, opt, quantumFor(p, opt.Epsilon), fewSegments(p.Graph))
}

// chosenPoints returns a frontier of chosen points. It takes the problem coarser by quantum,
// and where that does not come within opt.Epsilon, less so.
func chosenPoints(ctx context.Context, p *dag.Problem, h frontierfile.Header, opt Options, quantum unit.Power, few int) (*frontierfile.File, error) {
	for spacing := opt.Epsilon / 4; ; spacing /= 4 {
		lines := opt
		if quantum > 0 {
			lines.Epsilon -= opt.Epsilon / 4 // which is left for being coarse
		}
		chosen, all, err := choose(ctx, frontier.Coarsen(p, quantum), h.Landmarks, lines, spacing, few)
		if err != nil {
			return nil, err
		}
		c := &collector{problem: p, quantum: quantum, whole: all && quantum == 0}
		f, err := collect(ctx, c, h, walkOf(chosen), nil)
		if err != nil {
			return nil, err
		}
		// A part per thousand million is lost in rounding up.
		within := opt.Epsilon == 0 || f.Header.LineGap <= opt.Epsilon+1
		if within || opt.Points != 0 && len(f.Points) >= opt.Points || quantum == 0 && spacing == 0 {
			return f, nil
		}
		if quantum /= 2; quantum < unit.Watt/10 {
			quantum = 0
		}
	}
}

// quantumFor returns to what slopes may be rounded so that choosing points of a
// large problem takes a third less time; 0 where that is quick, or no distance
// from the frontier is allowed for.
func quantumFor(p *dag.Problem, epsilon frontierfile.Ratio) unit.Power {
	const many = 300_000
	vertices := 0
	for _, k := range p.CurveOf {
		vertices += len(p.Curves[k].Hull)
	}
	if vertices < many || epsilon == 0 {
		return 0
	}
	// With measured profiles being coarse takes about a quarter of epsilon.
	const watts = 16_000
	return min(watts*unit.Watt/1_000_000_000*unit.Power(epsilon), 64*unit.Watt)
}

// collect returns the file of the points that walk comes to.
func collect(ctx context.Context, c *collector, h frontierfile.Header, walk walker, progress func(Progress)) (*frontierfile.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.start = make([]unit.Time, c.problem.Graph.Ops)
	c.add(c.slowest(h.TMax))
	var workers sync.WaitGroup
	defer workers.Wait()
	for s := range c.rounded(ctx, &workers, walk, progress, h.Landmarks) {
		if s.cost.Time > s.solution.Time {
			cancel()
			return nil, fmt.Errorf("a schedule for %v takes %v", s.solution.Time, s.cost.Time)
		}
		c.add(s)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.file(h), nil
}

// walker calls take for each point after the slowest, slowest first, until it
// returns false. fill puts the point's solution into a buffer.
type walker func(take func(at unit.Time, fill func(*frontier.Solution)) bool)

// segments walks all of the frontier.
func segments(p *dag.Problem) walker {
	return func(take func(unit.Time, func(*frontier.Solution)) bool) {
		for s := range frontier.Solve(p) {
			if !take(s.Fast, s.Solution) {
				return
			}
		}
	}
}

// slot is a point on its way from the solver to the file.
type slot struct {
	solution frontier.Solution
	choice   []int32
	cost     dag.Cost
	done     chan struct{}
}

// rounded yields the walk's points in order, each with its schedule. One
// goroutine walks and as many as there are cores round; a few slots go round
// between them. All end soon after ctx does, or after the loop is left and ctx
// ended.
func (c *collector) rounded(ctx context.Context, workers *sync.WaitGroup, walk walker, progress func(Progress), l frontierfile.Landmarks) func(func(*slot) bool) {
	cores := runtime.GOMAXPROCS(0)
	slots := 2*cores + 2
	free, work, order := make(chan *slot, slots), make(chan *slot, slots), make(chan *slot, slots)
	for range slots {
		free <- &slot{done: make(chan struct{}, 1)}
	}
	workers.Go(func() {
		defer close(order)
		defer close(work)
		points := 1
		walk(func(at unit.Time, fill func(*frontier.Solution)) bool {
			if ctx.Err() != nil {
				return false
			}
			points++
			if progress != nil {
				progress(Progress{At: at, Slow: l.TMax, Fast: l.TMin, Points: points})
			}
			select {
			case s := <-free:
				fill(&s.solution)
				order <- s
				work <- s
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	for range cores {
		workers.Go(func() {
			rounder := round.NewRounder(c.problem)
			start := make([]unit.Time, c.problem.Graph.Ops)
			for s := range work {
				if ctx.Err() == nil {
					s.choice = rounder.Round(&s.solution, round.Fast, s.choice)
					s.cost = c.problem.EvaluateChoice(start, s.choice)
				}
				s.done <- struct{}{}
			}
		})
	}
	return func(yield func(*slot) bool) {
		for s := range order {
			<-s.done
			if ctx.Err() != nil || !yield(s) {
				return
			}
			free <- s
		}
	}
}

// collector takes points slowest first and makes the file.
type collector struct {
	problem *dag.Problem
	start   []unit.Time
	builder frontierfile.Builder
	points  []point // slowest first
	whole   bool    // they are all there are
	quantum unit.Power

	// The certificate of the point added last: each op's flow and least cost,
	// and the sum of the latter.
	through []unit.Power
	least   []unit.Energy128
	base    unit.Energy128
}

// point is what is kept of a point but for its choice and flow.
type point struct {
	relaxed     unit.Time
	time        unit.Time
	effective   unit.Energy128
	certificate certificate
}

// landmarks returns the landmarks, all but LeastEnergyTime, which the walk finds.
func landmarks(p *dag.Problem) (l frontierfile.Landmarks) {
	start := make([]unit.Time, p.Graph.Ops)
	l.TMin = p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Fastest().Time })
	l.TMax = p.Graph.Starts(start, func(op int32) unit.Time { return p.Curve(op).Slowest().Time })
	top := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Top })
	l.MaxClockTime, l.MaxClockEnergy = top.Time, frontierfile.InNanojoules(top.Energy, unit.Nearest)
	return l
}

// slowest returns the point at t_max: all ops at their least effective energy.
func (c *collector) slowest(tMax unit.Time) *slot {
	g := c.problem.Graph
	s := &slot{choice: make([]int32, g.Ops)}
	s.solution = frontier.Solution{Time: tMax, Flow: make([]unit.Power, len(g.Arcs))}
	s.cost = c.problem.EvaluateChoice(c.start, s.choice)
	return s
}

// add takes the next faster point.
func (c *collector) add(s *slot) {
	c.builder.Add(s.choice, s.solution.Flow)
	c.points = append(c.points, point{
		relaxed: s.solution.Time, time: s.cost.Time, effective: s.cost.Effective,
		certificate: c.certify(s.solution.Flow),
	})
}

// file returns the file with the points added.
func (c *collector) file(h frontierfile.Header) *frontierfile.File {
	n := len(c.points)
	points := make([]frontierfile.Point, n)
	certificates := make([]certificate, n)
	relaxed := make([]unit.Time, n)
	for i := range c.points {
		p := &c.points[n-1-i]
		relaxed[i], certificates[i] = p.relaxed, p.certificate
	}
	for i := range points {
		p := &c.points[n-1-i]
		waiting := unit.Product(c.problem.BlockingPower, p.time)
		v := &points[i]
		v.Time, v.RelaxedTime, v.Price = p.time, p.relaxed, p.certificate.price
		v.Energy = frontierfile.InNanojoules(p.effective.Add(waiting), unit.Nearest)
		v.Effective = frontierfile.InNanojoules(p.effective, unit.Nearest)
		v.Bound = frontierfile.InNanojoules(boundAt(relaxed, certificates, p.time).Add(waiting), unit.Down)
		v.Gap = (v.Energy - v.Bound).ShareOf(v.Bound)
	}
	for i := n - 1; i >= 0 && points[i].Price <= c.problem.BlockingPower; i-- {
		h.LeastEnergyTime = relaxed[i]
	}
	if !c.whole {
		h.Quantum = c.quantum
		h.LineGap = lineGap(relaxed, certificates, c.problem.BlockingPower)
	}
	return c.builder.File(h, points)
}
