package training

import (
	"context"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/unit"
)

// progress is where an iteration is.
type progress struct {
	missing []int32 // ops that each op of each pipeline waits for
	left    int     // ops that have not ended
	done    []time.Time
}

// iteration runs one iteration, which begins now, while the clock is held.
func (l *Loop) iteration(ctx context.Context, begin time.Time) (it Iteration, err error) {
	it = Iteration{Number: l.iterations, Begin: begin}
	it.Evaluation = l.c.Evaluation != nil && l.c.Evaluation(it.Number)
	ops := l.graph.Ops
	p := &progress{missing: make([]int32, ops*len(l.c.Boards)), left: ops * len(l.c.Boards)}
	p.done = make([]time.Time, len(l.c.Boards))
	for i := range p.missing {
		for _, a := range l.graph.In(int32(i % ops)) {
			if l.graph.Arcs[a].From >= 0 {
				p.missing[i]++
			}
		}
	}
	step := wire.Event{Kind: wire.StepBegin}
	if it.Evaluation {
		step.Microbatch = 1
	}
	for _, r := range l.ranks {
		r.next = 0
		l.join(r)
		l.tell(r, step, begin)
	}
	at := begin
	for {
		if err := l.start(p, at, it.Evaluation); err != nil {
			return it, err
		}
		if p.left == 0 {
			break
		}
		if at, err = l.advance(ctx); err != nil {
			return it, err
		}
		for i, r := range l.ranks {
			l.mu.Lock() // an agent's change of clock moves the end
			due := r.running && !r.ends.After(at)
			l.mu.Unlock()
			if due {
				l.end(p, i, at)
			}
		}
	}
	if l.c.Optimizer > 0 {
		at = at.Add(l.c.Optimizer)
		if err := l.wait(ctx, at); err != nil {
			return it, err
		}
	}
	for i, r := range l.ranks {
		l.tell(r, wire.Event{Kind: wire.StepEnd}, at)
		if i%l.each == 0 {
			it.PipelineEnergy = append(it.PipelineEnergy, unit.Energy128{})
			it.Pipelines = append(it.Pipelines, unit.Time(p.done[i/l.each].Sub(begin)))
		}
		total := r.board.Total(at)
		used := total.Sub(r.before)
		r.before = total
		it.PipelineEnergy[i/l.each] = it.PipelineEnergy[i/l.each].Add(used)
		it.Energy = it.Energy.Add(used)
	}
	it.Time = unit.Time(at.Sub(begin))
	l.iterations++
	return it, nil
}

// start starts all ops that can, and passes over those that an evaluation leaves out.
func (l *Loop) start(p *progress, at time.Time, evaluation bool) error {
	for again := true; again; {
		again = false
		for i, r := range l.ranks {
			for !r.running && r.next < len(r.ops) && p.missing[l.number(i, r.next)] == 0 {
				o := &r.ops[r.next]
				if evaluation && !o.forward {
					l.finish(p, i, at)
					again = true
					continue
				}
				ends, err := r.board.Start(at, o.Op)
				if err != nil {
					return fmt.Errorf("training, pipeline %d, rank %d: %w", i/l.each, i%l.each, err)
				}
				l.mu.Lock()
				r.running, r.ends = true, ends
				l.mu.Unlock()
				l.tell(r, kind(o.event, wire.OpBegin), at)
			}
		}
	}
	return nil
}

// end takes the end of the op that runs on a rank, unless it is a last nanosecond early.
func (l *Loop) end(p *progress, i int, at time.Time) {
	r := l.ranks[i]
	ends, running := r.board.End()
	l.mu.Lock()
	r.running, r.ends = running, ends
	l.mu.Unlock()
	if !running {
		l.tell(r, kind(r.ops[r.next].event, wire.OpEnd), at)
		l.finish(p, i, at)
	}
}

// finish counts the op at which a rank is as done, and goes on to the next.
func (l *Loop) finish(p *progress, i int, at time.Time) {
	pipeline := i / l.each
	n := l.number(i, l.ranks[i].next)
	first := n - n%l.graph.Ops
	for _, a := range l.graph.Out(int32(n - first)) {
		if to := l.graph.Arcs[a].To; to >= 0 {
			p.missing[first+int(to)]--
		}
	}
	l.ranks[i].next++
	p.left--
	p.done[pipeline] = at
}

// number returns the number of an op of a rank among those of all pipelines.
func (l *Loop) number(i, next int) int {
	return i/l.each*l.graph.Ops + int(l.ranks[i].first) + next
}

func kind(e wire.Event, k wire.Kind) wire.Event {
	e.Kind = k
	return e
}

// join lets a new client take its place.
func (l *Loop) join(r *rank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.attached {
		r.client, r.new, r.attached, r.sequence = r.new, nil, false, 0
	}
}

func (l *Loop) tell(r *rank, e wire.Event, at time.Time) {
	if r.client == nil {
		return
	}
	r.sequence++
	e.Sequence, e.TimeNs = r.sequence, uint64(at.UnixNano())
	r.client.Event(e)
}
