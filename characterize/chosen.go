package characterize

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// minPoints is the fewest points that a chosen frontier can have: t_min, the
// time of the least energy and t_max.
const minPoints = 3

// check returns an error for options that make no sense.
func (o *Options) check() error {
	if o.Points != 0 && o.Points < minPoints {
		return fmt.Errorf("%d points; at least %d are needed: the fastest, the one of least energy and the slowest", o.Points, minPoints)
	}
	if o.Epsilon < 0 {
		return fmt.Errorf("a distance of %v is negative", o.Epsilon)
	}
	return nil
}

// candidate is a breakpoint that may be chosen. Its certificate is that of the
// problem that was solved, relative to whose frontier it is chosen.
type candidate struct {
	time        unit.Time
	certificate certificate
	solution    *frontier.Solution // nil at t_max, and where it was not taken
	kept        bool               // solution must not be overwritten
}

// chooser chooses points during one walk of the frontier, slowest first. It keeps
// a few times as many candidates as will be chosen, so that memory does not grow
// with the number of breakpoints.
type chooser struct {
	blocking unit.Power
	opt      Options
	spacing  frontierfile.Ratio // least distance of lines between candidates
	few      int

	candidates []candidate
	segments   int // walked until now
	// lost is the time of the least energy, where its solution was not kept.
	lost            unit.Time
	lostCertificate certificate

	// The breakpoint before the present one, where its solution was kept, and
	// the present one.
	before, now candidate
	check       int // the segment at which to measure next
	since       int // the segment of the last candidate
	spare       *frontier.Solution
}

// fewSegments returns up to how many segments every solution is taken, which costs
// O(ops + arcs), to have it where the next breakpoint shows that it is needed.
// Where there are more, neighbours differ so little that any will do.
func fewSegments(g *dag.Graph) int {
	const numbers = 100_000_000 // copied in about a tenth of a second
	return numbers / (g.Ops + len(g.Arcs))
}

// choose walks the frontier of p, which may be coarse, and returns the chosen
// breakpoints, slowest first, the one at t_max left out: as few as keep the lines
// between them within opt.Epsilon, or opt.Points, spread so that the largest
// distance of a line is small. t_min, t_max and the time of the least energy are
// always among them; all says that they are all there are. spacing is how far
// apart candidates are at least, few see fewSegments. It fails where ctx ends, or where candidates
// would take more memory than there may be.
func choose(ctx context.Context, p *dag.Problem, l frontierfile.Landmarks, opt Options, spacing frontierfile.Ratio, few int) (chosen []candidate, all bool, err error) {
	c := chooser{blocking: p.BlockingPower, opt: opt, spacing: spacing, few: few}
	start := make([]unit.Time, p.Graph.Ops)
	slowest := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Slowest() })
	c.now = candidate{time: l.TMax, certificate: certificate{base: slowest.Effective}}
	c.accept(&c.now)
	cost := slowest.Effective
	most := int(maxCandidates / (16*int64(p.Graph.Ops) + 8*int64(len(p.Graph.Arcs))))
	for s := range frontier.Solve(p) {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		cost = cost.Add(unit.Product(s.Price, s.Slow-s.Fast))
		c.step(s, certificate{base: cost.Add(unit.Product(s.Price, s.Fast)), price: s.Price}, s.Fast == l.TMin)
		if opt.Progress != nil {
			opt.Progress(Progress{At: s.Fast, Slow: l.TMax, Fast: l.TMin, Points: len(c.candidates)})
		}
		if len(c.candidates) > most {
			return nil, false, fmt.Errorf("more than %d points are needed, too many to choose from: ask for fewer, or for the whole frontier", most)
		}
	}
	if err := c.recover(p); err != nil {
		return nil, false, err
	}
	picked := c.pick()
	for _, i := range picked[1:] {
		chosen = append(chosen, c.candidates[i])
	}
	return chosen, len(picked) == c.segments+1, nil
}

// maxCandidates is how much memory candidates may take, in bytes.
const maxCandidates = 1 << 30

// step takes the segment that ends at the next faster breakpoint.
func (c *chooser) step(s *frontier.Segment, own certificate, last bool) {
	c.segments++
	if !c.before.kept && c.before.solution != nil {
		c.spare = c.before.solution
	}
	c.before, c.now = c.now, candidate{time: s.Fast, certificate: own}
	latest := &c.candidates[len(c.candidates)-1]

	crossing := own.price > c.blocking && c.before.certificate.price <= c.blocking
	// Breakpoints just before the price of waiting are kept, to have the last.
	near := own.price <= c.blocking && own.price+50*(own.price/unit.Power(c.segments)) >= c.blocking
	if c.segments <= c.few || near || last {
		c.fill(s)
	}
	if crossing && c.before.time != latest.time {
		if c.before.solution != nil {
			c.accept(&c.before)
		} else {
			c.lost, c.lostCertificate = c.before.time, c.before.certificate
		}
	}
	if c.segments >= c.check || last {
		c.measure(s)
	}
	if last {
		c.accept(&c.now)
	}
}

// measure makes a candidate where the line from the latest one gets too far off:
// of the breakpoint before, if it can, else of the present one.
func (c *chooser) measure(s *frontier.Segment) {
	latest := &c.candidates[len(c.candidates)-1]
	if c.segments > c.few {
		// Distances grow with the square of steps: measure at 1, 2, …, 5, 6, 8, 10.
		c.check = c.segments + 1 + (c.segments-c.since)/5
	}
	if lineDistance(c.now.time, latest.time, c.now.certificate, latest.certificate, c.blocking) <= c.spacing {
		return
	}
	if c.before.solution == nil {
		c.fill(s)
		c.accept(&c.now)
		return
	}
	c.accept(&c.before)
}

// fill takes the present solution.
func (c *chooser) fill(s *frontier.Segment) {
	if c.now.solution == nil {
		c.now.solution, c.spare = c.spare, nil
		if c.now.solution == nil {
			c.now.solution = &frontier.Solution{}
		}
		s.Solution(c.now.solution)
	}
}

// accept makes x a candidate, unless it is the latest one, and thins them out where
// they are many.
func (c *chooser) accept(x *candidate) {
	if n := len(c.candidates); n > 0 && c.candidates[n-1].time == x.time {
		return
	}
	x.kept = true
	c.candidates = append(c.candidates, *x)
	c.since, c.check = c.segments, c.segments+1
	if c.opt.Points == 0 {
		return
	}
	for len(c.candidates) > 6*c.opt.Points+minPoints {
		c.spacing = max(1, 2*c.spacing)
		var kept []candidate
		for _, i := range c.within(c.spacing) {
			kept = append(kept, c.candidates[i])
		}
		c.candidates = kept
	}
}

// recover solves for the point of least energy again if it was lost.
func (c *chooser) recover(p *dag.Problem) error {
	if c.lost == 0 {
		return nil
	}
	s, err := frontier.At(p, c.lost)
	if err != nil {
		return err
	}
	i := sort.Search(len(c.candidates), func(i int) bool { return c.candidates[i].time <= c.lost })
	if i < len(c.candidates) && c.candidates[i].time == c.lost {
		return nil
	}
	c.candidates = slices.Insert(c.candidates, i, candidate{time: c.lost, certificate: c.lostCertificate, solution: s})
	return nil
}

// pick returns the indexes of the chosen candidates.
func (c *chooser) pick() []int {
	if c.opt.Epsilon > 0 {
		if within := c.within(c.opt.Epsilon); c.opt.Points == 0 || len(within) <= c.opt.Points {
			return within
		}
	}
	// Beyond 100 % no line lies above a bound that is not negative.
	const most = 1_000_000_000
	least := sort.Search(most, func(e int) bool { return len(c.within(frontierfile.Ratio(e))) <= c.opt.Points })
	return c.within(frontierfile.Ratio(least))
}

// within goes from each candidate as far as the line stays within epsilon, and
// returns the indexes of where it stops.
func (c *chooser) within(epsilon frontierfile.Ratio) []int {
	last := len(c.candidates) - 1
	// The least energy is at the fastest breakpoint whose price is not above
	// what waiting costs; prices rise.
	must := sort.Search(len(c.candidates), func(i int) bool { return c.candidates[i].certificate.price > c.blocking }) - 1
	chosen := []int{0}
	for at := 0; at < last; {
		end := last
		if at < must {
			end = must
		}
		slow := &c.candidates[at]
		steps := sort.Search(end-at-1, func(k int) bool {
			fast := &c.candidates[at+k+2]
			return lineDistance(fast.time, slow.time, fast.certificate, slow.certificate, c.blocking) > epsilon
		})
		at += steps + 1
		chosen = append(chosen, at)
	}
	return chosen
}

// walkOf returns a walk to what was chosen.
func walkOf(chosen []candidate) walker {
	return func(take func(unit.Time, func(*frontier.Solution)) bool) {
		for i := range chosen {
			if !take(chosen[i].time, func(into *frontier.Solution) { *into = *chosen[i].solution }) {
				return
			}
		}
	}
}
