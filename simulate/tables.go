package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// PowerTable gives what one waiting GPU draws, by its clock. The zero value means
// the pipeline's own blocking power at any clock.
type PowerTable struct {
	clocks []int32
	powers []unit.Power
}

// ParsePowerTable returns the table written as one power, "84" or "84W", or as
// clock=power pairs, "1410=84,1200=71,900=60". Between two clocks power is
// linear; outside it is that of the nearest clock.
func ParsePowerTable(s string) (PowerTable, error) {
	var t PowerTable
	if !strings.Contains(s, "=") {
		p, err := power(s)
		return PowerTable{[]int32{0}, []unit.Power{p}}, err
	}
	err := pairs(s, func(key, value string) error {
		clock, err := clockMHz(key)
		if err != nil {
			return err
		}
		p, err := power(value)
		if err != nil {
			return err
		}
		at, found := slices.BinarySearch(t.clocks, clock)
		if found {
			return fmt.Errorf("%d MHz is there twice", clock)
		}
		t.clocks, t.powers = slices.Insert(t.clocks, at, clock), slices.Insert(t.powers, at, p)
		return nil
	})
	return t, err
}

func power(s string) (unit.Power, error) {
	p, err := unit.ParsePower(s)
	if err == nil && (p < 0 || p > unit.MaxPower) {
		err = fmt.Errorf("it is outside 0W … %v", unit.MaxPower)
	}
	if err != nil {
		return 0, fmt.Errorf("power %q: %w", s, err)
	}
	return p, nil
}

// pairs calls take for each pair of a list key=value,….
func pairs(s string, take func(key, value string) error) error {
	for i, pair := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		err := fmt.Errorf("expected a pair like 1410=84")
		if ok {
			err = take(strings.TrimSpace(key), strings.TrimSpace(value))
		}
		if err != nil {
			return fmt.Errorf("pair %d, %q: %w", i+1, pair, err)
		}
	}
	return nil
}

func clockMHz(s string) (int32, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil || v < 1 || v > 10_000 {
		return 0, fmt.Errorf("clock %q: expected a whole number of MHz, 1 … 10000", s)
	}
	return int32(v), nil
}

// Empty says that the table is the zero value.
func (t PowerTable) Empty() bool { return len(t.clocks) == 0 }

// At returns the power at a clock, rounded down between two entries.
func (t PowerTable) At(clockMHz int32) unit.Power {
	i, found := slices.BinarySearch(t.clocks, clockMHz)
	switch {
	case found:
		return t.powers[i]
	case i == 0:
		return t.powers[0]
	case i == len(t.clocks):
		return t.powers[i-1]
	}
	span, above := t.clocks[i]-t.clocks[i-1], clockMHz-t.clocks[i-1]
	step, _ := unit.Product(t.powers[i]-t.powers[i-1], unit.Time(above)).DivInt(int64(span), unit.Down)
	return t.powers[i-1] + unit.Power(step)
}

// SwitchTable gives how long a GPU takes to change its clock. The zero value
// means no time.
type SwitchTable struct {
	otherwise unit.Time
	entries   []switchEntry // sorted by to, from; from 0 stands for any
}

type switchEntry struct {
	to, from int32
	latency  unit.Time
}

// compare orders entries by target, then by start.
func (a switchEntry) compare(b switchEntry) int {
	return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from))
}

// ParseSwitchTable returns the table written as one time, "15ms", or as pairs
// target=time and from:target=time in MHz, "1410=15ms,1200:900=40ms", in which
// "*" as target stands for all others. A pair goes before a target alone, and
// that before "*".
func ParseSwitchTable(s string) (SwitchTable, error) {
	var t SwitchTable
	if !strings.Contains(s, "=") {
		v, err := latency(s)
		t.otherwise = v
		return t, err
	}
	given := false
	err := pairs(s, func(key, value string) error {
		v, err := latency(value)
		if err != nil {
			return err
		}
		if key == "*" {
			if given {
				return fmt.Errorf("* is there twice")
			}
			t.otherwise, given = v, true
			return nil
		}
		e := switchEntry{latency: v}
		from, to, pair := strings.Cut(key, ":")
		if pair {
			if e.from, err = clockMHz(from); err != nil {
				return err
			}
			key = to
		}
		if e.to, err = clockMHz(key); err != nil {
			return err
		}
		at, found := slices.BinarySearchFunc(t.entries, e, switchEntry.compare)
		if found {
			return fmt.Errorf("it is there twice")
		}
		t.entries = slices.Insert(t.entries, at, e)
		return nil
	})
	return t, err
}

func latency(s string) (unit.Time, error) {
	v, err := unit.ParseTime(s)
	if err == nil && (v < 0 || v > unit.MaxOpTime) {
		err = fmt.Errorf("it is outside 0s … %v", unit.MaxOpTime)
	}
	if err != nil {
		return 0, fmt.Errorf("time %q: %w", s, err)
	}
	return v, nil
}

// Empty says that no switch takes time.
func (t SwitchTable) Empty() bool { return t.otherwise == 0 && len(t.entries) == 0 }

// Latency returns how long the switch between two clocks takes.
func (t SwitchTable) Latency(fromMHz, toMHz int32) unit.Time {
	for _, from := range [2]int32{fromMHz, 0} {
		if i, ok := slices.BinarySearchFunc(t.entries, switchEntry{to: toMHz, from: from}, switchEntry.compare); ok {
			return t.entries[i].latency
		}
	}
	return t.otherwise
}
