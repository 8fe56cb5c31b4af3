package round

import (
	"math"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/unit"
)

// fast fills choice in passes of O(ops + arcs): the better of tight and dither,
// each followed by reclaim.
func (r *Rounder) fast(s *frontier.Solution, choice []int32) {
	if !r.tight(s, choice) {
		return
	}
	r.reclaim(s.Time, choice)
	if !complete(r.p, s) {
		return
	}
	r.second = slices.Grow(r.second[:0], len(choice))[:len(choice)]
	r.dither(s, r.second)
	r.reclaim(s.Time, r.second)
	if r.cost(r.second) < r.cost(choice) {
		copy(choice, r.second)
	}
}

// cost returns Σe' in picojoules; it only ranks.
func (r *Rounder) cost(choice []int32) (sum float64) {
	for op, k := range choice {
		sum += float64(r.p.Curve(int32(op)).Options[k].Effective)
	}
	return sum
}

// tight gives each op the slowest option that ends before the relaxed schedule
// starts any successor; an op that ends sooner leaves the time to those after it.
// It is false, and all ops fastest, where no schedule is as fast as s.
func (r *Rounder) tight(s *frontier.Solution, choice []int32) bool {
	if r.forward(s, choice) {
		return true
	}
	if !r.latestEnds(s.Time) {
		for op := range choice {
			choice[op] = int32(len(r.p.Curve(int32(op)).Options) - 1)
		}
		return false
	}
	r.forwardWithin(s, choice)
	return true
}

// ditherWeight is the price of an op's distance from its relaxed end, as a share
// of its flow.
const ditherWeight = 0.3

// dither gives each op the option that costs least where time costs the op's
// flow and the way to its relaxed end part of that. An op may end later than in
// the relaxed schedule, where the ops after it can make up for it: errors cancel.
// It needs that a schedule of s.Time exists.
func (r *Rounder) dither(s *frontier.Solution, choice []int32) {
	g := r.p.Graph
	r.latestEnds(s.Time)
	clear(r.start)
	for _, op := range g.Order() {
		var through unit.Power
		for _, a := range g.In(op) {
			through += s.Flow[a]
		}
		price := float64(through) / 1000 // pJ/ns
		c := r.p.Curve(op)
		start, limit := r.start[op], r.late[op]
		relaxed := s.Start[op] + s.Duration[op] - start
		best, least := int32(len(c.Options)-1), math.Inf(1)
		try := func(k int32) {
			o := &c.Options[k]
			if start+o.Time > limit {
				return
			}
			cost := float64(o.Effective) + float64(price*float64(o.Time)) +
				float64(price*(ditherWeight*math.Abs(float64(o.Time-relaxed))))
			if cost < least {
				best, least = k, cost
			}
		}
		k := slowestWithin(c, relaxed)
		if k < 0 {
			k = int32(len(c.Options) - 1)
		}
		h, _ := slices.BinarySearch(c.Hull, k)
		try(k)
		try(max(k-1, 0))
		try(c.Hull[min(h, len(c.Hull)-1)])
		try(c.Hull[max(h-1, 0)])
		choice[op] = best
		r.push(op, start+c.Options[best].Time)
	}
}

// forward is false where s is not a schedule, so that the result may be too slow.
func (r *Rounder) forward(s *frontier.Solution, choice []int32) bool {
	g := r.p.Graph
	if len(s.Start) != g.Ops {
		return false
	}
	clear(r.start)
	for _, op := range g.Order() {
		deadline := s.Time
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 {
				deadline = min(deadline, s.Start[to])
			}
		}
		c := r.p.Curve(op)
		k := slowestWithin(c, deadline-r.start[op])
		if k < 0 {
			return false
		}
		choice[op] = k
		r.push(op, r.start[op]+c.Options[k].Time)
	}
	return true
}

// forwardWithin is forward with the latest ends as a second, hard deadline. It
// keeps the time for any s; where no option meets a deadline it takes the fastest.
func (r *Rounder) forwardWithin(s *frontier.Solution, choice []int32) {
	g := r.p.Graph
	clear(r.start)
	for _, op := range g.Order() {
		deadline := r.late[op]
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 && to < int32(len(s.Start)) {
				deadline = min(deadline, s.Start[to])
			}
		}
		c := r.p.Curve(op)
		k := slowestWithin(c, deadline-r.start[op])
		if k < 0 {
			k = int32(len(c.Options) - 1) // it meets the latest end
		}
		choice[op] = k
		r.push(op, r.start[op]+c.Options[k].Time)
	}
}

// push moves the starts of op's successors to no earlier than its end.
func (r *Rounder) push(op int32, end unit.Time) {
	g := r.p.Graph
	for _, a := range g.Out(op) {
		if to := g.Arcs[a].To; to >= 0 {
			r.start[to] = max(r.start[to], end)
		}
	}
}

// latestEnds fills late with the latest end of each op where all ops after it
// are fastest and the makespan is t; it is false where t is too short for that.
func (r *Rounder) latestEnds(t unit.Time) (possible bool) {
	g := r.p.Graph
	order := g.Order()
	possible = true
	for i := len(order) - 1; i >= 0; i-- {
		op := order[i]
		end := t
		for _, a := range g.Out(op) {
			if to := g.Arcs[a].To; to >= 0 {
				end = min(end, r.late[to]-r.p.Curve(to).Fastest().Time)
			}
		}
		r.late[op] = end
		possible = possible && end >= r.p.Curve(op).Fastest().Time
	}
	return possible
}

// reclaim slows each op down, last first, as far as its successors' latest
// starts and its own earliest start allow. r.start holds the earliest starts of
// choice.
func (r *Rounder) reclaim(t unit.Time, choice []int32) {
	g := r.p.Graph
	order := g.Order()
	for i := range r.late {
		r.late[i] = t
	}
	for i := len(order) - 1; i >= 0; i-- {
		op := order[i]
		c := r.p.Curve(op)
		if k := slowestWithin(c, r.late[op]-r.start[op]); k >= 0 && k < choice[op] {
			choice[op] = k
		}
		begin := r.late[op] - c.Options[choice[op]].Time
		for _, a := range g.In(op) {
			if from := g.Arcs[a].From; from >= 0 {
				r.late[from] = min(r.late[from], begin)
			}
		}
	}
}

// slowestWithin returns the slowest option of c that takes at most t, −1 where
// none does.
func slowestWithin(c *dag.Curve, t unit.Time) int32 {
	low, high := 0, len(c.Options)
	for low < high {
		if mid := (low + high) / 2; c.Options[mid].Time <= t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if low == len(c.Options) {
		return -1
	}
	return int32(low)
}
