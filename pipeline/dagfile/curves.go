package dagfile

import (
	"errors"
	"fmt"
	"math"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// curves returns the different curves and each op's.
func (raw *fileJSON) curves(f *File) ([]dag.Curve, []int32, error) {
	named := names{"curve", map[string]int32{}}
	options := make([][]dag.Option, len(raw.Curves))
	for i, c := range raw.Curves {
		if err := named.add(c.Name, i); err != nil {
			return nil, nil, err
		}
		var err error
		if options[i], err = parseOptions(c.Options); err != nil {
			return nil, nil, fmt.Errorf("curve %s: %w", quote(c.Name), err)
		}
	}
	var curves []dag.Curve
	curveOf := make([]int32, len(raw.Ops))
	type key struct {
		curve    int32
		blocking unit.Power
	}
	made := map[key]int32{}
	for i := range raw.Ops {
		o := &raw.Ops[i]
		k := key{curve: -1}
		if r := f.Ops[i].Resource; r >= 0 {
			k.blocking = f.Resources[r].BlockingPower
		}
		own, err := o.options(&named, &k.curve)
		if err != nil {
			return nil, nil, fmt.Errorf("op %s: %w", quote(o.Name), err)
		}
		if k.curve >= 0 {
			if at, ok := made[k]; ok {
				curveOf[i] = at
				continue
			}
			made[k] = int32(len(curves))
			own = options[k.curve]
		}
		c, err := dag.NewCurve(own, k.blocking)
		if err != nil {
			return nil, nil, fmt.Errorf("op %s: %w", quote(o.Name), err)
		}
		curveOf[i] = int32(len(curves))
		curves = append(curves, c)
	}
	return curves, curveOf, nil
}

// options returns an op's own options, or sets curve to the curve that it names.
func (o *opJSON) options(named *names, curve *int32) ([]dag.Option, error) {
	given := 0
	for _, has := range []bool{o.Curve != nil, o.Options != nil, o.Time != nil} {
		if has {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("exactly one of curve, options and time_s is needed")
	case o.Energy != nil && o.Time == nil:
		return nil, errors.New("energy_j goes with time_s")
	case o.Curve != nil:
		at, err := named.find(*o.Curve)
		*curve = at
		return nil, err
	case o.Options != nil:
		return parseOptions(o.Options)
	}
	if o.Energy == nil {
		zero := decimal("0")
		o.Energy = &zero
	}
	return parseOptions([]optionJSON{{Time: o.Time, Energy: o.Energy}})
}

// parseOptions returns the options of one curve.
func parseOptions(raw []optionJSON) ([]dag.Option, error) {
	if len(raw) == 0 {
		return nil, errors.New("there must be an option")
	}
	clocks := make(map[int32]int, len(raw))
	out := make([]dag.Option, len(raw))
	for i, o := range raw {
		fail := func(err error) ([]dag.Option, error) { return nil, fmt.Errorf("option %d: %w", i+1, err) }
		if o.Clock != nil || len(raw) > 1 {
			clock, err := number(o.Clock, "clock_mhz", 0, unit.Nearest)
			if err != nil {
				return fail(err)
			}
			if clock < 0 || clock > math.MaxInt32 {
				return fail(fmt.Errorf("clock_mhz is outside 0 … %d", math.MaxInt32))
			}
			if _, exact, _ := unit.ParseDecimal(string(*o.Clock), 0, unit.Nearest); !exact {
				return fail(fmt.Errorf("clock_mhz %s is not whole", *o.Clock))
			}
			out[i].Knobs.ClockMHz = int32(clock)
		}
		if before, ok := clocks[out[i].Knobs.ClockMHz]; ok {
			return fail(fmt.Errorf("clock_mhz %d is that of option %d", out[i].Knobs.ClockMHz, before+1))
		}
		clocks[out[i].Knobs.ClockMHz] = i
		time, err := number(o.Time, "time_s", 9, unit.Up)
		if err != nil {
			return fail(err)
		}
		energy, err := number(o.Energy, "energy_j", 12, unit.Nearest)
		if err != nil {
			return fail(err)
		}
		out[i].Time, out[i].Energy = unit.Time(time), unit.Energy(energy)
	}
	return out, nil
}

// number returns a JSON number times 10^digits.
func number(n *decimal, field string, digits int, r unit.Rounding) (int64, error) {
	if n == nil {
		return 0, fmt.Errorf("%s is missing", field)
	}
	v, _, err := unit.ParseDecimal(string(*n), digits, r)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return v, nil
}
