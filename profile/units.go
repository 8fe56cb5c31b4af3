package profile

import (
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Units are the units of a file's columns: time in s, ms, us or ns, energy in
// J, kJ, mJ or uJ, frequency in MHz, Hz, kHz or GHz. An empty one means s, J or
// MHz, and that values which are odd for it are an error; one that is given is
// believed as long as it is physically possible.
type Units struct {
	Time, Energy, Frequency string
}

// scale is a unit's name and its value as a power of ten of the integer unit
// that its column is held in: ns, pJ or MHz.
type scale struct {
	name   string
	digits int
}

// scales returns the units of f, the one that an empty unit means first, the
// others in the order in which they are suggested.
func (f field) scales() []scale {
	switch f {
	case fieldTime:
		return []scale{{"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}}
	case fieldEnergy:
		return []scale{{"J", 12}, {"mJ", 9}, {"uJ", 6}, {"kJ", 15}}
	case fieldFrequency:
		return []scale{{"MHz", 0}, {"kHz", -3}, {"Hz", -6}, {"GHz", 3}}
	}
	return nil
}

// scale returns the scale of f called unit.
func (f field) scale(unit string) (scale, error) {
	names := make([]string, 0, 4)
	for i, s := range f.scales() {
		if s.name == unit || unit == "" && i == 0 {
			return s, nil
		}
		names = append(names, s.name)
	}
	return scale{}, fmt.Errorf("units: %s=%s is unknown; write one of %s", f, excerpt.Of(unit, maxValue), list(names))
}

// ParseUnits returns the units in a list such as
// "time=ms,energy=mJ,frequency=Hz", in any order; what is not named stays empty.
// It fails on an unknown or repeated name and on an unknown unit.
func ParseUnits(s string) (Units, error) {
	var u Units
	if strings.TrimSpace(s) == "" {
		return u, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		var given *string
		switch name {
		case fieldTime.String():
			given = &u.Time
		case fieldEnergy.String():
			given = &u.Energy
		case fieldFrequency.String():
			given = &u.Frequency
		}
		switch {
		case !found || value == "" || given == nil:
			return Units{}, fmt.Errorf("units: %q is not understood; write time=…, energy=… or frequency=…, as in time=ms,energy=mJ,frequency=Hz", excerpt.Of(part, maxValue))
		case *given != "":
			return Units{}, fmt.Errorf("units: %s is given twice", name)
		}
		*given = value
	}
	if _, err := u.scales(); err != nil {
		return Units{}, err
	}
	return u, nil
}

// String returns the units in the form that [ParseUnits] reads, all three named.
func (u Units) String() string {
	name := func(f field, unit string) string {
		if unit == "" {
			unit = f.scales()[0].name
		}
		return f.String() + "=" + unit
	}
	return name(fieldTime, u.Time) + "," + name(fieldEnergy, u.Energy) + "," + name(fieldFrequency, u.Frequency)
}

// columnScales are the scales of the three columns that have one.
type columnScales struct{ time, energy, frequency scale }

func (u Units) scales() (c columnScales, err error) {
	if c.time, err = fieldTime.scale(u.Time); err != nil {
		return c, err
	}
	if c.energy, err = fieldEnergy.scale(u.Energy); err != nil {
		return c, err
	}
	c.frequency, err = fieldFrequency.scale(u.Frequency)
	return c, err
}
