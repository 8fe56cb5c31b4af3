package agent

import (
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/follow"
	"github.com/perseus-energy/perseus/internal/agent/meter"
	"github.com/perseus-energy/perseus/internal/agent/trial"
	"github.com/perseus-energy/perseus/internal/api"
)

// mostSamples is how many ops of a kind a report holds; later ones are left out.
const mostSamples = 256

// reporting is a report that is being put together.
type reporting struct {
	r        api.RankReport
	time     float64
	energy   float64
	energies int
	ops      []opSamples
}

type opSamples struct {
	meter.Op
	mhz              int
	times, energies  []float64
	capped           bool
	energiesComplete bool
}

// unplanned counts iterations that differed from the plan.
func (p *reporting) unplanned(s *Session, n int) {
	if n == 0 {
		return
	}
	if p == nil {
		p = &reporting{}
		s.report = p
	}
	p.r.Unplanned += n
}

// flush takes what the meter has finished into reports, and hands those that are full to the link. Called with the
// driver's lock.
func (s *Session) flush(now time.Duration) {
	for _, it := range s.meter.Take(now) {
		if s.report != nil && s.report.r.Iterations > 0 && s.report.r.Version != it.Version {
			s.send()
		}
		if s.report == nil {
			s.report = &reporting{}
		}
		s.report.add(it)
		if s.report.r.Iterations >= s.every || s.follower.Mode() == follow.Uniform {
			s.send()
		}
	}
}

// unfinished returns when flush has to be called at the latest.
func (s *Session) unfinished(time.Duration) (at time.Duration, ok bool) { return s.meter.Deadline() }

func (p *reporting) add(it meter.Iteration) {
	p.r.Iteration, p.r.Version = it.Index, it.Version
	p.r.Iterations++
	p.time += it.Time.Seconds()
	if it.Energy > 0 {
		p.energy += it.Energy
		p.energies++
	}
	for _, o := range it.Ops {
		i := slices.IndexFunc(p.ops, func(q opSamples) bool { return q.Op == o.Op && q.mhz == o.MHz && q.capped == it.Capped })
		if i < 0 {
			i = len(p.ops)
			p.ops = append(p.ops, opSamples{Op: o.Op, mhz: o.MHz, capped: it.Capped, energiesComplete: true})
		}
		q := &p.ops[i]
		if len(q.times) == mostSamples {
			continue
		}
		q.times = append(q.times, o.Time.Seconds())
		if o.Energy > 0 {
			q.energies = append(q.energies, o.Energy)
		} else {
			q.energiesComplete = false
		}
	}
}

// send hands the report to the link.
func (s *Session) send() {
	p := s.report
	s.report = nil
	r := p.r
	r.Rank = s.hello.Rank
	r.HoldS = trial.Hold(s.a.latency.longest(modelOf(s.d.info)), s.trial.Cost()).Seconds()
	r.TimeS = p.time / float64(r.Iterations)
	if p.energies > 0 {
		r.EnergyJ = p.energy / float64(p.energies)
	}
	for _, q := range p.ops {
		o := api.OpReport{Stage: q.Stage, Instruction: q.Instruction, FrequencyMHz: q.mhz, TimeS: q.times, Capped: q.capped}
		if q.mhz != own {
			o.AchievedMHz = s.achieved[s.d.listed(q.mhz)]
			if a := o.AchievedMHz; a != 0 && max(a, q.mhz)-min(a, q.mhz) > s.d.tolerance() {
				o.Capped = true
			}
		}
		if q.energiesComplete {
			o.EnergyJ = q.energies
		}
		r.Ops = append(r.Ops, o)
	}
	s.link.report(r)
}
