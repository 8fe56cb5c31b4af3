package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// Planner makes plans from one frontier. It is safe for concurrent use.
type Planner struct {
	file *frontierfile.File
	*job
	// round is round.Round, or less in tests that make many plans.
	round rounding
}

type rounding func(*dag.Problem, *frontier.Solution, round.Effort) []int32

// New returns a planner for a frontier, which it keeps. It fails where the
// file's header does not describe a job. O(ops).
func New(f *frontierfile.File) (*Planner, error) {
	if len(f.Points) == 0 {
		return nil, errors.New("the frontier has no points")
	}
	j, err := newJob(&f.Header)
	if err != nil {
		return nil, err
	}
	return &Planner{f, j, round.Round}, nil
}

// Alone returns a planner of the same plans that works in the calling goroutine
// only, in up to twice the time.
func (n *Planner) Alone() *Planner { return &Planner{n.file, n.job, round.Alone} }

// Make returns the plan for a request. At effort fast it is the best point of
// the file; at the others it is never worse than that. Of equally good plans the
// fastest is taken. It fails with an *Error on a request that has no answer, and
// where the file contradicts itself. The same input gives the same plan.
//
// Effort fast costs O(points·changes + ops), the others a solution of the
// relaxed problem or two and a rounding.
func (n *Planner) Make(r Request) (*Plan, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	m := &maker{Planner: n, request: r, point: -1, start: make([]unit.Time, n.problem.Graph.Ops)}
	if r.Effort == round.Fast {
		if err := m.fromFile(); err != nil {
			return nil, err
		}
		return m.finish()
	}
	s, err := solve(n.job, n.round, r, m.gapAhead())
	if err != nil {
		return nil, err
	}
	m.solved = *s
	if r.Margin == 0 {
		if err := m.improve(); err != nil {
			return nil, err
		}
	}
	return m.finish()
}

// finish has clocks kept for as long as the request says, proves what is not proved by the file, and returns the plan.
func (m *maker) finish() (*Plan, error) {
	if m.request.Hold > 0 {
		ranks := make([]int32, 1, len(m.order.Ranks)+1)
		for _, actions := range m.order.Ranks {
			ranks = append(ranks, ranks[len(ranks)-1]+int32(len(actions)))
		}
		if held := round.Hold(m.problem, m.choice, ranks, m.request.Hold, m.cost.Time); !slices.Equal(held, m.choice) {
			m.candidate, m.point = candidate{held, m.problem.EvaluateChoice(m.start, held)}, -1
			if m.request.Goal == AveragePower && m.feasible && !within(m.cost, m.request.Power) {
				m.feasible = false
				m.note = fmt.Sprintf("where clocks are kept for %v, this plan draws %v", m.request.Hold, averagePower(m.cost))
			}
		}
	}
	if m.point < 0 {
		if err := m.prove(); err != nil {
			return nil, err
		}
	}
	return m.plan(), nil
}

// maker makes one plan.
type maker struct {
	*Planner
	request Request
	start   []unit.Time

	solved
	bound frontierfile.Nanojoules
	gap   frontierfile.Ratio
	point int // of the file, or −1
}

// fromFile makes the best point of the file the plan.
func (m *maker) fromFile() error {
	h, points := &m.file.Header, m.file.Points
	first, last := &points[0], &points[len(points)-1]
	t := target{limit: unit.MaxMakespan, feasible: true}
	switch m.request.Goal {
	case Fastest:
		t.limit = first.Time
	case WithinTime:
		t.limit = m.request.Time
	case Slowdown, Straggler:
		t.limit = times(m.request.Factor, h.TMin)
	}
	at := m.best(t.limit)
	if at < 0 {
		at = 0
		t.feasible = false
		t.note = fmt.Sprintf("no plan is as fast as %v: this is the fastest, %v", t.limit, first.Time)
		if m.request.Goal == AveragePower {
			at = leastPower(points)
			t.note = fmt.Sprintf("no point of the frontier draws as little as %v: this one draws the least", m.request.Power)
		}
	}
	switch p := &points[at]; {
	case m.request.Goal == Straggler && t.limit > last.Time:
		t.note = fmt.Sprintf("the straggler takes %v, and beyond %v no op saves anything by being slower: this is that plan, and it waits", t.limit, p.Time)
	case (m.request.Goal == WithinTime || m.request.Goal == Slowdown) && t.feasible &&
		(at == len(points)-1 && t.limit > last.Time || at < len(points)-1 && points[at+1].Time <= t.limit):
		t.note = fmt.Sprintf("an iteration of %v would use more energy: this is the plan of least energy", t.limit)
	}
	m.target = t
	return m.take(at)
}

// best returns the index of the point that serves the request best within a
// limit of time, or −1 where none does.
func (m *maker) best(limit unit.Time) int {
	best := -1
	for i := range m.file.Points {
		p := &m.file.Points[i]
		if p.Time > limit {
			continue
		}
		if m.request.Goal == AveragePower {
			if draws(p, m.request.Power) {
				return i
			}
			continue
		}
		if best < 0 || m.wanted(p) < m.wanted(&m.file.Points[best]) {
			best = i
		}
	}
	return best
}

// gapAhead returns about how far a schedule near the answer will be above the
// relaxed optimum, where that is of use: as far as the file's own, so that the
// first one made with more effort is most often within a budget of power.
func (m *maker) gapAhead() frontierfile.Ratio {
	if m.request.Goal != AveragePower {
		return 0
	}
	at := m.best(unit.MaxMakespan)
	if at < 0 {
		return 0
	}
	return m.file.Points[at].Gap
}

// wanted returns what the request's goal wants least of, among plans that are fast
// enough.
func (m *maker) wanted(p *frontierfile.Point) frontierfile.Nanojoules {
	if m.request.Goal == Straggler || m.request.Goal == Fastest {
		return p.Effective
	}
	return p.Energy
}

// draws says whether a point draws at most power on average, sure in spite of
// its energy being rounded.
func draws(p *frontierfile.Point, power unit.Power) bool {
	return wide(p.Energy+1).Cmp(unit.Product(power, p.Time)) <= 0
}

// leastPower returns the index of the point of least average power.
func leastPower(points []frontierfile.Point) int {
	least := 0
	for i := range points {
		a, b := &points[i], &points[least]
		// a.Energy/a.Time < b.Energy/b.Time, multiplied out.
		if unit.Product(unit.Power(a.Energy), b.Time).Cmp(unit.Product(unit.Power(b.Energy), a.Time)) < 0 {
			least = i
		}
	}
	return least
}

// wide returns e in 128 bits, exact.
func wide(e frontierfile.Nanojoules) unit.Energy128 {
	const femtojoules = 1e6
	return unit.Product(unit.Power(e), femtojoules)
}

// take makes a point of the file the plan.
func (m *maker) take(at int) error {
	c, err := m.load(at)
	if err != nil {
		return err
	}
	p := &m.file.Points[at]
	m.candidate, m.time, m.price = c, p.RelaxedTime, p.Price
	m.bound, m.gap, m.point = p.Bound, p.Gap, at
	return nil
}

// load returns a point's schedule after checking that its time and energy are
// those of its options.
func (m *maker) load(at int) (candidate, error) {
	p, err := m.file.Load(at)
	if err != nil {
		return candidate{}, err
	}
	if err := frontierfile.CheckChoice(m.problem, p.Choice); err != nil {
		return candidate{}, fmt.Errorf("points[%d]: %w", at, err)
	}
	c := candidate{p.Choice, m.problem.EvaluateChoice(m.start, p.Choice)}
	if e := frontierfile.InNanojoules(c.cost.Energy, unit.Nearest); e != p.Energy || c.cost.Time != p.Time {
		return candidate{}, fmt.Errorf("points[%d]: its options take %v and %v, but it says %v and %v; perseus verify tells more",
			at, c.cost.Time, e, p.Time, p.Energy)
	}
	return c, nil
}

// improve takes the file's best point instead of the schedule at hand where it
// is better.
func (m *maker) improve() error {
	at := m.best(m.limit)
	if at < 0 {
		if m.request.Goal != AveragePower {
			return nil
		}
		at = leastPower(m.file.Points)
	}
	c, err := m.load(at)
	if err != nil {
		return err
	}
	if !m.better(&c.cost, &m.cost) {
		return nil
	}
	p := &m.file.Points[at]
	m.candidate, m.bound, m.gap, m.point = c, p.Bound, p.Gap, at
	if m.request.Goal == AveragePower {
		m.feasible, m.note = within(c.cost, m.request.Power), ""
		if !m.feasible {
			m.note = fmt.Sprintf("no plan draws as little as %v: this one draws the least, %v", m.request.Power, averagePower(c.cost))
		}
	}
	return nil
}

// better says whether a serves the request better than b; both keep the limit.
func (m *maker) better(a, b *dag.Cost) bool {
	switch m.request.Goal {
	case Straggler, Fastest:
		return cmp.Or(a.Effective.Cmp(b.Effective), cmp.Compare(a.Time, b.Time)) < 0
	case AveragePower:
		switch budget := m.request.Power; {
		case !within(*a, budget):
			return !within(*b, budget) && averagePower(*a) < averagePower(*b)
		case !within(*b, budget):
			return true
		}
		return cmp.Or(cmp.Compare(a.Time, b.Time), a.Energy.Cmp(b.Energy)) < 0
	}
	return cmp.Or(a.Energy.Cmp(b.Energy), cmp.Compare(a.Time, b.Time)) < 0
}

// prove finds the bound for the schedule at hand: what the relaxed optimum costs
// at the schedule's own time.
func (m *maker) prove() error {
	relaxed, err := frontier.At(m.problem, m.cost.Time)
	if err != nil {
		return err
	}
	base, price := m.problem.Bound(relaxed.Flow)
	bound := base.Add(unit.Product(m.problem.BlockingPower-price, m.cost.Time))
	m.bound = frontierfile.InNanojoules(bound, unit.Down)
	m.gap = (frontierfile.InNanojoules(m.cost.Energy, unit.Nearest) - m.bound).ShareOf(m.bound)
	return nil
}

// plan returns the plan of the schedule at hand.
func (m *maker) plan() *Plan {
	h, p := &m.file.Header, m.problem
	n := &Plan{
		Request: m.request, Feasible: m.feasible, Note: m.note, Point: m.point,
		RelaxedTime: m.time, Time: m.cost.Time, Price: m.price,
		Energy: frontierfile.InNanojoules(m.cost.Energy, unit.Nearest), Effective: frontierfile.InNanojoules(m.cost.Effective, unit.Nearest),
		Bound: m.bound, Gap: m.gap, AveragePower: averagePower(m.cost),
		Schedule: h.Schedule, Microbatches: h.Microbatches, ProfileSHA256: h.Profile.SHA256,
		Parallel: h.Parallel,
	}
	top := p.Evaluate(m.start, func(op int32) dag.Option { return p.Curve(op).Top })
	n.WaitTime, n.BaselineTime = m.cost.Time, top.Time
	if m.request.Goal == Straggler {
		straggler := times(m.request.Factor, h.TMin)
		n.WaitTime, n.BaselineTime = max(n.WaitTime, straggler), max(n.BaselineTime, straggler)
	}
	waiting := m.cost.Effective.Add(unit.Product(p.BlockingPower, n.WaitTime))
	baseline := top.Effective.Add(unit.Product(p.BlockingPower, n.BaselineTime))
	n.WaitEnergy, n.BaselineEnergy = frontierfile.InNanojoules(waiting, unit.Nearest), frontierfile.InNanojoules(baseline, unit.Nearest)
	n.Saving = (n.BaselineEnergy - n.WaitEnergy).ShareOf(n.BaselineEnergy)

	p.EvaluateChoice(m.start, m.choice)
	n.Ranks = make([][]Op, len(m.order.Ranks))
	op := int32(0)
	for rank, actions := range m.order.Ranks {
		n.Ranks[rank] = make([]Op, len(actions))
		for i, a := range actions {
			o := p.Curve(op).Options[m.choice[op]]
			instruction := a.Kind.Instruction()
			if h.Graph != nil {
				instruction = h.Graph.Ops[op].Name
			}
			n.Ranks[rank][i] = Op{
				Stage: a.Stage, Microbatch: a.Microbatch, Instruction: instruction,
				Knobs: o.Knobs, Start: m.start[op], Time: o.Time, Energy: o.Energy,
			}
			op++
		}
	}
	return n
}
