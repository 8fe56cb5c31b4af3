package simulate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Slowdown says that from a time on, ops take Factor times as long as measured,
// until the next one for the same rank. A Rank or Pipeline of All means each.
type Slowdown struct {
	From           unit.Time
	Pipeline, Rank int
	Factor         plan.Ratio
}

// All stands for each pipeline, or each rank.
const All = -1

// maxFactor bounds slowdowns.
const maxFactor = 1000 * plan.One

// ParseSlowdown returns a slowdown from the start written as pipeline=factor or
// pipeline:rank=factor, both from 0, "1=1.2" or "1:3=1.2"; * stands for all.
func ParseSlowdown(s string) (Slowdown, error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return Slowdown{}, fmt.Errorf("slowdown %q: expected pipeline=factor or pipeline:rank=factor, as in 0=1.2", s)
	}
	d := Slowdown{Pipeline: All, Rank: All}
	pipe, rank, pair := strings.Cut(key, ":")
	var err error
	if d.Pipeline, err = index("pipeline", pipe); err != nil {
		return d, fmt.Errorf("slowdown %q: %w", s, err)
	}
	if pair {
		if d.Rank, err = index("rank", rank); err != nil {
			return d, fmt.Errorf("slowdown %q: %w", s, err)
		}
	}
	if d.Factor, err = factor(value); err != nil {
		return d, fmt.Errorf("slowdown %q: %w", s, err)
	}
	return d, nil
}

func index(what, s string) (int, error) {
	s = strings.TrimSpace(s)
	if s == "*" || s == "" {
		return All, nil
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s %q: expected a whole number from 0, or *", what, s)
	}
	return v, nil
}

func factor(s string) (plan.Ratio, error) {
	f, err := plan.ParseRatio(s)
	if err == nil && (f < plan.One || f > maxFactor) {
		err = fmt.Errorf("expected 1 … %v: how many times as long as measured", maxFactor)
	}
	if err != nil {
		return 0, fmt.Errorf("factor %q: %w", s, err)
	}
	return f, nil
}

// rate is how fast a rank works over time: piece by piece, from its time on,
// factor ns for each 10^9 ns of work, done being the work by then.
type rate []ratePiece

type ratePiece struct {
	from   unit.Time
	done   unit.Time
	factor plan.Ratio
}

// newRates returns the rate of each rank of each pipeline, nil where it is 1
// throughout. Slowdowns are in the order of time. It fails on a pipeline or rank
// that there is not, with the slowdown's index.
func newRates(slow []Slowdown, ranks []int) ([][]rate, error) {
	rates := make([][]rate, len(ranks))
	for d, n := range ranks {
		rates[d] = make([]rate, n)
	}
	last := unit.Time(0)
	for i, s := range slow {
		switch {
		case s.Factor < plan.One || s.Factor > maxFactor:
			return nil, &slowError{i, fmt.Sprintf("factor %v: expected 1 … %v", s.Factor, maxFactor)}
		case s.From < 0 || s.From > unit.MaxMakespan:
			return nil, &slowError{i, fmt.Sprintf("time %v: expected 0s … %v", s.From, unit.MaxMakespan)}
		case s.From < last:
			return nil, &slowError{i, fmt.Sprintf("time %v goes back, from %v", s.From, last)}
		case s.Pipeline < All || s.Pipeline >= len(ranks):
			return nil, &slowError{i, fmt.Sprintf("there is no pipeline %d: the job has 0 … %d", s.Pipeline, len(ranks)-1)}
		}
		last = s.From
		for d := range ranks {
			if s.Pipeline != All && s.Pipeline != d {
				continue
			}
			if s.Rank < All || s.Rank >= ranks[d] {
				return nil, &slowError{i, fmt.Sprintf("there is no rank %d: pipeline %d has 0 … %d", s.Rank, d, ranks[d]-1)}
			}
			for r := range rates[d] {
				if s.Rank == All || s.Rank == r {
					rates[d][r] = rates[d][r].then(s.From, s.Factor)
				}
			}
		}
	}
	return rates, nil
}

// slowError is what is wrong with a slowdown of a list.
type slowError struct {
	index   int
	problem string
}

func (e *slowError) Error() string { return fmt.Sprintf("slowdown %d: %s", e.index+1, e.problem) }

// then returns r with another factor from a time on, not before its last.
func (r rate) then(from unit.Time, factor plan.Ratio) rate {
	if len(r) == 0 {
		if from > 0 {
			r = rate{{0, 0, plan.One}}
		} else {
			return rate{{0, 0, factor}}
		}
	}
	if r[len(r)-1].from == from {
		r[len(r)-1].factor = factor
		return r
	}
	return append(r, ratePiece{from, r.work(len(r)-1, from), factor})
}

// work returns the work done by time t, in piece k.
func (r rate) work(k int, t unit.Time) unit.Time {
	p := &r[k]
	if p.factor == plan.One {
		return p.done + t - p.from
	}
	v, _ := unit.Product(unit.Power(plan.One), t-p.from).DivInt(int64(p.factor), unit.Down)
	return p.done + unit.Time(v)
}

// end returns when work that begins at a time is done: the first time by which
// that much more was done than at the beginning, so that what begins later never
// ends earlier. k is the piece of a time not after begin. O(pieces passed).
func (r rate) end(k int, begin, work unit.Time) unit.Time {
	k = r.piece(k, begin)
	target := r.work(k, begin) + work
	for k+1 < len(r) && r[k+1].done < target {
		k++
	}
	p := &r[k]
	v, ok := unit.Product(unit.Power(p.factor), target-p.done).DivInt(int64(plan.One), unit.Up)
	if !ok {
		return unit.MaxMakespan
	}
	return max(begin, p.from+unit.Time(v))
}

// piece returns the piece of time t, searching from piece k.
func (r rate) piece(k int, t unit.Time) int {
	for k+1 < len(r) && r[k+1].from <= t {
		k++
	}
	return k
}
