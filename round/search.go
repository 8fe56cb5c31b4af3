package round

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
)

// The search's parameters, found by experiment: docs/rounding.md.
const (
	// workers search side by side; more would change the result.
	workers = 2
	// bestTimes is how much more Best may spend than Normal.
	bestTimes = 15
	// startShare is the part of the budget that goes to whole schedules.
	startShare            = 0.4
	startWidth, wideStart = 30, 90
	improveWidth          = 20
	breadth               = 10
	// longest is the number of ops of a whole schedule searched in one piece.
	longest = 4096
)

// stages says how many of a worker's schedules are improved in each part of the
// time after the start: the best of the part before. In the last one all workers
// take the best of all.
var stages = [...]int{3, 1, 1}

// startAlphas are the weights tried for whole schedules: how far a schedule may
// leave the relaxed optimum for less loss now depends on the profile.
var startAlphas = [...]float64{0.1, 0.2, 0.3, 0.15, 0.5, 0.05, 1}

// search improves choice, a schedule that keeps the time of s. It first makes
// whole schedules by beam search forward and backward in time, with several
// weights and then with noise on the losses; then it frees small sets of ops of
// the best one, over and over, and searches again for those (large neighbourhood
// search, Shaw 1998). What it does depends on no clock and no scheduling.
// It stops at the budget, in candidates a worker, or where nothing can be better.
// alone has the workers run one after the other.
func search(p *dag.Problem, s *frontier.Solution, budget int64, alone bool, choice []int32) {
	models := [2]*model{newModel(p, s, false), newModel(p, s, true)}
	var team [workers]*worker
	for k := range team {
		team[k] = newWorker(uint64(k), p, models, choice)
	}
	each := func(f func(*worker)) {
		if alone {
			for _, w := range team {
				f(w)
			}
			return
		}
		var all sync.WaitGroup
		for _, w := range team {
			all.Go(func() { f(w) })
		}
		all.Wait()
	}
	spend := int64(float64(budget) * startShare)
	each(func(w *worker) { w.start(choice, spend) })
	for i, size := range stages {
		if i == len(stages)-1 {
			best := leader(team[:]).pool[0]
			for _, w := range team {
				w.pool[0] = entry{best.gap, slices.Clone(best.choice)}
			}
		}
		until := spend + (budget-spend)*int64(i+1)/int64(len(stages))
		each(func(w *worker) { w.refine(size, until) })
	}
	copy(choice, leader(team[:]).pool[0].choice)
}

// budgetOf returns how many candidates a worker may make; one takes about 0.1 µs.
func budgetOf(ops int, e Effort) int64 {
	n := int64(ops)
	budget := min(75_000*n, 10_000_000+16_000*n, 200_000_000)
	if e == Best {
		budget *= bestTimes
	}
	return budget
}

// leader returns the first of the workers with the least gap.
func leader(team []*worker) *worker {
	return slices.MinFunc(team, func(a, b *worker) int { return cmp.Compare(a.pool[0].gap, b.pool[0].gap) })
}

// worker searches by itself, with random numbers of its own.
type worker struct {
	number uint64
	p      *dag.Problem
	random *rand.Rand
	// beams and schedules are forward and backward; the schedules share a choice.
	beams     [2]*beam
	schedules [2]*schedule
	choice    []int32
	// pool holds the schedules found at the start, later the best of them, the
	// best first. It is never empty.
	pool []entry
	// best is the best choice in reach of the one being improved and gap its gap.
	best  []int32
	gap   float64
	fixed []bool
	saved []int32
	// scale is a typical loss of an op's third best option, in joules.
	scale float64
}

func newWorker(number uint64, p *dag.Problem, models [2]*model, choice []int32) *worker {
	w := &worker{
		number: number, p: p, random: rand.New(rand.NewPCG(number, 1)),
		choice: slices.Clone(choice), best: slices.Clone(choice),
		fixed: make([]bool, len(choice)), scale: models[0].scale(),
	}
	for i, m := range models {
		w.beams[i] = newBeam(m)
		w.beams[i].random = 2*number + uint64(i) + 1
		w.schedules[i] = newSchedule(m, w.choice)
	}
	w.gap = w.schedules[0].gap()
	w.pool = []entry{{w.gap, slices.Clone(choice)}}
	return w
}

type entry struct {
	gap    float64
	choice []int32
}

// scale returns the mean over the ops of the third least loss, or of the second
// where there are two.
func (m *model) scale() float64 {
	var sum float64
	for op := range int32(len(m.nodes)) {
		if opts := m.options(op); len(opts) > 1 {
			sum += lossLimit(opts, 3)
		}
	}
	return sum / float64(len(m.nodes))
}

func (w *worker) spent() int64 { return w.beams[0].work + w.beams[1].work }

// done says whether the best choice costs no more than the relaxed optimum, but
// for rounding, or nothing can be chosen.
func (w *worker) done() bool {
	m := w.schedules[0].m
	return w.gap <= 1e-12*m.price*float64(m.total) || w.scale == 0
}

// keep takes note of the choice if it is the best so far.
func (w *worker) keep() {
	if g := w.schedules[0].gap(); g < w.gap {
		w.gap = g
		copy(w.best, w.choice)
	}
}

// start searches for whole schedules until the work is spent; each begins from
// the choice given.
func (w *worker) start(choice []int32, until int64) {
	for n := 0; w.spent() < until && !w.done(); n++ {
		direction := (n + int(w.number)) % 2
		b, s := w.beams[direction], w.schedules[direction]
		b.alpha = startAlphas[n/2%len(startAlphas)]
		b.width, b.noise = startWidth, 0
		if n/2 >= len(startAlphas) {
			b.noise = float64(w.scale * w.random.Float64())
		} else if w.number%2 == 1 {
			b.width = wideStart
		}
		copy(w.choice, choice)
		for from := 0; from < len(choice); from += longest {
			s.update()
			b.run(s, window{from: from, to: min(from+longest, len(choice))}, false)
			b.work += int64(len(choice) / 8)
		}
		w.keep()
		g := w.schedules[0].gap()
		if !slices.ContainsFunc(w.pool, func(x entry) bool { return x.gap == g }) {
			w.pool = append(w.pool, entry{g, slices.Clone(w.choice)})
		}
		w.prune(2 * stages[0])
	}
}

// prune sorts the pool and leaves its best n schedules.
func (w *worker) prune(n int) {
	slices.SortStableFunc(w.pool, func(a, b entry) int { return cmp.Compare(a.gap, b.gap) })
	w.pool = w.pool[:min(n, len(w.pool))]
}

// refine improves the best size schedules of the pool, each for the same part of
// the work until then.
func (w *worker) refine(size int, until int64) {
	w.prune(size)
	from := w.spent()
	for i := range w.pool {
		x := &w.pool[i]
		w.gap = x.gap
		copy(w.best, x.choice)
		w.improve(from + (until-from)*int64(i+1)/int64(len(w.pool)))
		x.gap = w.gap
		copy(x.choice, w.best)
	}
	w.prune(size)
}

// improve searches neighbourhoods of the best choice until the work is spent.
// The first worker takes only what is better; others search with noise and also
// take what is a little worse than the best.
func (w *worker) improve(until int64) {
	copy(w.choice, w.best)
	for w.spent() < until && !w.done() {
		direction := w.random.IntN(2)
		b, s := w.beams[direction], w.schedules[direction]
		b.work += int64(len(w.choice) / 8)
		s.update()
		near := w.neighbourhood(s.m)
		b.width, b.alpha, b.noise = improveWidth, float64(0.3*w.random.Float64()), 0
		if w.number == 0 {
			b.run(s, near, true)
			w.keep()
			continue
		}
		b.noise = float64(w.scale * (0.5 * w.random.Float64()))
		w.saved = append(w.saved[:0], w.choice...)
		old := s.gap()
		b.run(s, near, false)
		if g := s.gap(); g > old && g > w.gap+w.scale {
			copy(w.choice, w.saved)
		}
		w.keep()
	}
}

// neighbourhood returns a random window of m's order with some of its ops free:
// all, two stretches of them, a random part, or those of a random part of the
// curves (in a pipeline, of some stages).
func (w *worker) neighbourhood(m *model) window {
	r, ops := w.random, len(w.best)
	for i := range w.fixed {
		w.fixed[i] = true
	}
	near := window{from: ops, fixed: w.fixed}
	release := func(i int) {
		if i >= 0 && i < ops {
			w.fixed[m.order[i]] = false
			near.from, near.to = min(near.from, i), max(near.to, i+1)
		}
	}
	switch r.IntN(4) {
	case 0:
		length := 24 + r.IntN(60)
		from := r.IntN(ops) - length/2
		for i := range length {
			release(from + i)
		}
	case 1:
		length := 12 + r.IntN(24)
		from := r.IntN(ops)
		second := from + r.IntN(160)
		for i := range length {
			release(from + i)
			release(second + i)
		}
	case 2:
		length := 96 + r.IntN(96)
		from := r.IntN(ops) - length/2
		share := 0.2 + float64(0.3*r.Float64())
		for i := range length {
			if r.Float64() < share {
				release(from + i)
			}
		}
	case 3:
		length := 64 + r.IntN(128)
		from := r.IntN(ops) - length/2
		share := 0.2 + float64(0.3*r.Float64())
		var chosen [64]bool
		for i := range chosen {
			chosen[i] = r.Float64() < share
		}
		for i := max(from, 0); i < min(from+length, ops); i++ {
			if chosen[w.p.CurveOf[m.order[i]]%64] {
				release(i)
			}
		}
	}
	if near.from > near.to {
		near.from = near.to
	}
	return near
}
