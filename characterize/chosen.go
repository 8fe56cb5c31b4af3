package characterize

import (
	"context"
	"fmt"
	"math/big"
	"sort"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontier"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// minPoints is the fewest points that a chosen frontier can have: t_min, the
// time of the least energy and t_max.
const minPoints = 3

// chosen returns a walk to some of the exact frontier's breakpoints: as few as
// keep the lines between them within opt.Epsilon, or opt.Points, spread so that
// the largest distance of a line is small. t_min, t_max and the time of the
// least energy are always among them; all says that they are all there are. It
// walks the frontier once to choose, the walk that it returns does so again.
func chosen(ctx context.Context, p *dag.Problem, l frontierfile.Landmarks, opt Options) (walk walker, all bool, err error) {
	if opt.Points != 0 && opt.Points < minPoints {
		return nil, false, fmt.Errorf("%d points; at least %d are needed: the fastest, the one of least energy and the slowest", opt.Points, minPoints)
	}
	if opt.Epsilon < 0 {
		return nil, false, fmt.Errorf("a distance of %v is negative", opt.Epsilon)
	}
	c := chooser{blocking: p.BlockingPower}
	start := make([]unit.Time, p.Graph.Ops)
	slowest := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Slowest() })
	c.times, c.certificates = []unit.Time{l.TMax}, []certificate{{base: slowest.Effective}}
	cost := slowest.Effective
	for s := range frontier.Solve(p) {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		cost = cost.Add(unit.Product(s.Price, s.Slow-s.Fast))
		c.times = append(c.times, s.Fast)
		c.certificates = append(c.certificates, certificate{cost.Add(unit.Product(s.Price, s.Fast)), s.Price})
	}
	wanted := map[unit.Time]bool{}
	for _, i := range c.choose(opt) {
		wanted[c.times[i]] = true
	}
	return func(take func(unit.Time, func(*frontier.Solution)) bool) {
		for s := range frontier.Solve(p) {
			if ctx.Err() != nil || wanted[s.Fast] && !take(s.Fast, s.Solution) {
				return
			}
		}
	}, len(wanted) == len(c.times), nil
}

// chooser chooses among breakpoints, slowest first.
type chooser struct {
	times        []unit.Time
	certificates []certificate
	blocking     unit.Power
}

// choose returns the chosen breakpoints' indexes, the slowest and the fastest
// among them.
func (c *chooser) choose(opt Options) []int {
	if opt.Epsilon > 0 {
		if within := c.within(opt.Epsilon); opt.Points == 0 || len(within) <= opt.Points {
			return within
		}
	}
	// Beyond 100 % no line lies above a bound that is not negative.
	const most = 1_000_000_000
	least := sort.Search(most, func(e int) bool { return len(c.within(frontierfile.Ratio(e))) <= opt.Points })
	return c.within(frontierfile.Ratio(least))
}

// within goes from each point as far as the line stays within epsilon.
func (c *chooser) within(epsilon frontierfile.Ratio) []int {
	last := len(c.times) - 1
	// The least energy is at the fastest breakpoint whose price is not above
	// what waiting costs; prices rise.
	must := sort.Search(len(c.times), func(i int) bool { return c.certificates[i].price > c.blocking }) - 1
	chosen := []int{0}
	for at := 0; at < last; {
		end := last
		if at < must {
			end = must
		}
		// Neighbours always do: there is nothing between them.
		steps := sort.Search(end-at-1, func(k int) bool {
			return c.distance(at+k+2, at) > epsilon
		})
		at += steps + 1
		chosen = append(chosen, at)
	}
	return chosen
}

func (c *chooser) distance(fast, slow int) frontierfile.Ratio {
	return lineDistance(c.times[fast], c.times[slow], c.certificates[fast], c.certificates[slow], c.blocking)
}

// lineGap returns the largest distance of the lines between neighbouring points,
// at least the least ratio there is: 0 stands for a whole frontier.
func lineGap(relaxed []unit.Time, certificates []certificate, blocking unit.Power) frontierfile.Ratio {
	most := frontierfile.Ratio(1)
	for i := range len(relaxed) - 1 {
		most = max(most, lineDistance(relaxed[i], relaxed[i+1], certificates[i], certificates[i+1], blocking))
	}
	return most
}

// lineDistance returns how far the straight line between the total energies that
// the certificates prove at two points' own times lies above what both of them
// prove in between, at most, as a fraction of the latter, rounded up to a part
// per thousand million.
//
// With u and v, how far the line lies above the slow and above the fast point's
// certificate at the other's time, both certificates are equally far below it
// at the time T that divides the way from fast to slow as u to v, and there by
// u·v/(u+v).
func lineDistance(fast, slow unit.Time, f, s certificate, blocking unit.Power) frontierfile.Ratio {
	u := wide(f.at(fast).Sub(s.at(fast)))
	v := wide(s.at(slow).Sub(f.at(slow)))
	if u.Sign() <= 0 || v.Sign() <= 0 {
		return 0
	}
	sum := new(big.Int).Add(u, v)
	// The energy proven at T, times u+v: base·(u+v) + (blocking − price)·(T·(u+v)).
	t := new(big.Int).Mul(big.NewInt(int64(slow-fast)), u)
	t.Add(t, new(big.Int).Mul(big.NewInt(int64(fast)), sum))
	t.Mul(t, big.NewInt(int64(blocking-f.price)))
	proven := new(big.Int).Mul(wide(f.base), sum)
	proven.Add(proven, t)
	const parts = 1_000_000_000
	if proven.Sign() <= 0 {
		return parts
	}
	above := new(big.Int).Mul(u, v)
	above.Mul(above, big.NewInt(parts))
	above.Add(above, proven).Sub(above, big.NewInt(1)).Div(above, proven)
	if !above.IsInt64() {
		return parts
	}
	return frontierfile.Ratio(min(above.Int64(), parts))
}

// wide returns e in femtojoules.
func wide(e unit.Energy128) *big.Int {
	const high = 1 << 62
	q, _ := e.DivInt(high, unit.Down)
	r, _ := e.Sub(unit.Product(high, unit.Time(q))).DivInt(1, unit.Down)
	v := new(big.Int).Mul(big.NewInt(q), big.NewInt(high))
	return v.Add(v, big.NewInt(r))
}
