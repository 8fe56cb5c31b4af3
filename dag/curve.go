package dag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/unit"
)

// Knobs are the settings of a GPU that tell an op's options apart. They are
// comparable; later ones (a power limit, a share of SMs) become further fields.
type Knobs struct {
	ClockMHz int32 `json:"clock_mhz"`
}

// Compare orders knobs by clock.
func (k Knobs) Compare(l Knobs) int { return cmp.Compare(k.ClockMHz, l.ClockMHz) }

// Option is one way of running an op.
type Option struct {
	Knobs Knobs
	// Time is how long the op takes and Energy what its GPUs use meanwhile.
	Time   unit.Time
	Energy unit.Energy
	// Effective is Energy less what the op's GPUs would have drawn waiting for
	// the same time. NewCurve computes it.
	Effective unit.Energy
}

// Curve holds the options of one kind of op that can be useful.
type Curve struct {
	// Options is the Pareto front of (Time, Effective), slowest first: times
	// fall and effective energies rise strictly.
	Options []Option
	// Hull lists the options on the lower convex hull of the front, slowest
	// first, as indexes of Options.
	Hull []int32
	// Slope[k] is the price of time at which Hull[k] and Hull[k+1] cost the
	// same, rounded to a microwatt: positive and rising strictly.
	Slope []unit.Power
	// Top is the option with the highest knobs, on the front or not: the
	// baseline of savings.
	Top Option
}

// MaxSlope bounds the price of time on a curve; two options a nanosecond apart
// may differ by no more than a joule.
const MaxSlope unit.Power = 1 << 50

// Effective returns energy less blocking·time, to the nearest picojoule: the
// effective energy e' of an op on GPUs that draw the power blocking as they wait.
// It is below −4 MJ, and so refused by NewCurve, where it does not fit.
func Effective(energy unit.Energy, blocking unit.Power, time unit.Time) unit.Energy {
	idle, ok := unit.Product(blocking, time).Picojoules(unit.Nearest)
	if !ok {
		idle = 8 * unit.MaxOpEnergy
	}
	return energy - idle
}

// NewCurve returns the curve of an op that can run by any of the measured
// options, on GPUs that together draw the power blocking while they wait.
// Options that are equal in time and effective energy are one; the lowest knobs
// win. The input is neither kept nor changed. It fails without options, or where
// one is outside the bounds of package unit or a slope exceeds MaxSlope.
// O(n log n).
func NewCurve(measured []Option, blocking unit.Power) (Curve, error) {
	if len(measured) == 0 {
		return Curve{}, errors.New("an op has no option")
	}
	if blocking < 0 || blocking > unit.MaxPower {
		return Curve{}, fmt.Errorf("blocking power %v is outside 0 … %v", blocking, unit.MaxPower)
	}
	all := slices.Clone(measured)
	for i, o := range all {
		if o.Time < 0 || o.Time > unit.MaxOpTime {
			return Curve{}, fmt.Errorf("an op's time %v is outside 0 … %v", o.Time, unit.MaxOpTime)
		}
		if o.Energy < -unit.MaxOpEnergy || o.Energy > unit.MaxOpEnergy {
			return Curve{}, fmt.Errorf("an op's energy %v is outside ±%v", o.Energy, unit.MaxOpEnergy)
		}
		all[i].Effective = Effective(o.Energy, blocking, o.Time)
		if e := all[i].Effective; e < -4*unit.MaxOpEnergy || e > 4*unit.MaxOpEnergy {
			return Curve{}, fmt.Errorf("an op's effective energy %v is outside ±%v", e, 4*unit.MaxOpEnergy)
		}
	}
	top := slices.MaxFunc(all, func(a, b Option) int { return a.Knobs.Compare(b.Knobs) })
	slices.SortFunc(all, func(a, b Option) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Effective, b.Effective), a.Knobs.Compare(b.Knobs))
	})
	front := all[:1]
	for _, o := range all[1:] {
		if o.Effective < front[len(front)-1].Effective {
			front = append(front, o)
		}
	}
	slices.Reverse(front)
	c := Curve{Options: slices.Clip(front), Top: top}
	for i := range front {
		for len(c.Hull) >= 2 && !convex(front[c.Hull[len(c.Hull)-2]], front[c.Hull[len(c.Hull)-1]], front[i]) {
			c.Hull = c.Hull[:len(c.Hull)-1]
		}
		c.Hull = append(c.Hull, int32(i))
	}
	return c, c.slopes()
}

// convex says whether b, between a and c in time, lies below the line a–c.
func convex(a, b, c Option) bool {
	left := unit.Product(unit.Power(b.Effective-a.Effective), b.Time-c.Time)
	right := unit.Product(unit.Power(c.Effective-b.Effective), a.Time-b.Time)
	return left.Cmp(right) < 0
}

// slopes fills Slope; where two rounded slopes are equal the vertex between
// them goes.
func (c *Curve) slopes() error {
	hull := c.Hull[:1]
	for _, v := range c.Hull[1:] {
		slope, err := c.slopeBetween(hull[len(hull)-1], v)
		if err != nil {
			return err
		}
		for len(c.Slope) > 0 && slope <= c.Slope[len(c.Slope)-1] {
			hull, c.Slope = hull[:len(hull)-1], c.Slope[:len(c.Slope)-1]
			if slope, err = c.slopeBetween(hull[len(hull)-1], v); err != nil {
				return err
			}
		}
		hull, c.Slope = append(hull, v), append(c.Slope, slope)
	}
	c.Hull = hull
	return nil
}

func (c *Curve) slopeBetween(slow, fast int32) (unit.Power, error) {
	a, b := c.Options[slow], c.Options[fast]
	v, ok := (b.Effective - a.Effective).Widen().DivInt(int64(a.Time-b.Time), unit.Nearest)
	if !ok || unit.Power(v) > MaxSlope {
		return 0, fmt.Errorf("two options with times %v and %v and effective energies %v and %v are too steep: over %v",
			a.Time, b.Time, a.Effective, b.Effective, MaxSlope)
	}
	return max(1, unit.Power(v)), nil
}

// Slowest returns the option with the least effective energy.
func (c *Curve) Slowest() Option { return c.Options[0] }

// Fastest returns the option with the least time.
func (c *Curve) Fastest() Option { return c.Options[len(c.Options)-1] }

// Vertex returns the k-th option of the hull, slowest first.
func (c *Curve) Vertex(k int) Option { return c.Options[c.Hull[k]] }
