// Package unit holds the integer quantities that every other package computes
// with: time in nanoseconds, power in microwatts, energy in picojoules, ratios in
// parts per thousand million, and 128-bit femtojoules for sums and products.
//
// Integers make results reproducible to the last digit on any machine. Their
// ranges are wide but not endless; the Max constants say how wide, and the
// parsers refuse what lies outside. The package comes before all others that
// compute, and imports none of them. It is not for calendar time or for display beyond plain
// decimals.
package unit

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Time is a duration in nanoseconds.
type Time int64

// Power is a power in microwatts. Prices of time, slopes of cost curves and
// flows are powers too.
type Power int64

// Energy is the energy of one op in picojoules. Sums over ops are [Energy128].
type Energy int64

// One of each unit.
const (
	Nanosecond  Time   = 1
	Microsecond Time   = 1e3
	Millisecond Time   = 1e6
	Second      Time   = 1e9
	Microwatt   Power  = 1
	Watt        Power  = 1e6
	Picojoule   Energy = 1
	Joule       Energy = 1e12
)

// Bounds of one op's measurement and of a GPU group's power. Flows up to MaxFlow
// times the times of all ops, which add up to MaxMakespan at most, stay inside
// [Energy128].
const (
	MaxOpTime   = 3600 * Second
	MaxOpEnergy = 1e6 * Joule
	MaxPower    = 1e9 * Watt
	// MaxFlow bounds the total price of time, the sum of slopes over a cut.
	MaxFlow Power = 1 << 61
	// MaxMakespan bounds an iteration: about 52 days.
	MaxMakespan Time = 1 << 52
)

// Seconds returns t in seconds, for display and measuring only.
func (t Time) Seconds() float64 { return float64(t) / 1e9 }

// Watts returns p in watts, for display and measuring only.
func (p Power) Watts() float64 { return float64(p) / 1e6 }

// Joules returns e in joules, for display and measuring only.
func (e Energy) Joules() float64 { return float64(e) / 1e12 }

// String returns the exact decimal with its unit, as in "2.9s".
func (t Time) String() string { return string(t.AppendDecimal(nil)) + "s" }

// String returns the exact decimal with its unit, as in "83.64W".
func (p Power) String() string { return string(p.AppendDecimal(nil)) + "W" }

// String returns the exact decimal with its unit, as in "23.805472J".
func (e Energy) String() string { return string(e.AppendDecimal(nil)) + "J" }

// MarshalJSON writes seconds as an exact decimal number.
func (t Time) MarshalJSON() ([]byte, error) { return t.AppendDecimal(nil), nil }

// MarshalJSON writes watts as an exact decimal number.
func (p Power) MarshalJSON() ([]byte, error) { return p.AppendDecimal(nil), nil }

// MarshalJSON writes joules as an exact decimal number.
func (e Energy) MarshalJSON() ([]byte, error) { return e.AppendDecimal(nil), nil }

// UnmarshalJSON reads a decimal number of seconds; more than nine decimals are
// an error, so that what is read is what was written.
func (t *Time) UnmarshalJSON(b []byte) error { return unmarshal(t, b, 9) }

// UnmarshalJSON reads a decimal number of watts of at most six decimals.
func (p *Power) UnmarshalJSON(b []byte) error { return unmarshal(p, b, 6) }

// UnmarshalJSON reads a decimal number of joules of at most twelve decimals.
func (e *Energy) UnmarshalJSON(b []byte) error { return unmarshal(e, b, 12) }

// unmarshal sets v to a decimal; on an error it stays as it was.
func unmarshal[T ~int64](v *T, b []byte, digits int) error {
	n, exact, err := ParseDecimal(string(b), digits, Nearest)
	switch {
	case err != nil:
		return err
	case !exact:
		return fmt.Errorf("%s has more than %d decimals", b, digits)
	}
	*v = T(n)
	return nil
}

// Rounding says where a decimal goes that lies between two integers.
type Rounding uint8

// The ways of rounding. Nearest takes halves away from zero.
const (
	Nearest Rounding = iota
	Up               // towards +infinity
	Down             // towards -infinity
)

// Errors of [ParseDecimal], to be told apart with errors.Is.
var (
	ErrSyntax = errors.New("not a decimal number")
	ErrRange  = errors.New("out of range")
)

const maxDecimalLength = 64

// ParseDecimal returns s times 10^digits as an integer and whether that was
// exact. It reads an optional sign, digits with an optional point and an
// optional exponent (1.5e-3) without going through floating point; s is at most
// 64 bytes. It fails with ErrSyntax (also for nan and inf) or ErrRange.
func ParseDecimal(s string, digits int, r Rounding) (v int64, exact bool, err error) {
	bad := func(err error) (int64, bool, error) {
		return 0, false, fmt.Errorf("%s: %w", excerpt.Quoted(s, maxDecimalLength), err)
	}
	if len(s) > maxDecimalLength {
		return bad(ErrSyntax)
	}
	rest := s
	negative := false
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		negative = rest[0] == '-'
		rest = rest[1:]
	}
	mantissa := rest
	exponent := 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		exponent, err = strconv.Atoi(rest[i+1:])
		if err != nil || strings.ContainsRune(rest[i+1:], '_') {
			return bad(ErrSyntax)
		}
		if exponent > 1000 || exponent < -1000 {
			return bad(ErrRange)
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" {
		return bad(ErrSyntax)
	}
	for _, c := range []byte(all) {
		if c < '0' || c > '9' {
			return bad(ErrSyntax)
		}
	}
	keep := len(whole) + exponent + digits // how many digits of all are integer
	var u uint64
	exact = true
	for i := 0; i < max(keep, len(all)); i++ {
		d := byte('0')
		if i < len(all) {
			d = all[i]
		}
		if i >= keep {
			if d != '0' {
				exact = false
				break
			}
			continue
		}
		hi, lo := bits.Mul64(u, 10)
		lo, carry := bits.Add64(lo, uint64(d-'0'), 0)
		if hi != 0 || carry != 0 || lo > 1<<62 {
			return bad(ErrRange)
		}
		u = lo
	}
	if !exact {
		half := keep >= 0 && keep < len(all) && all[keep] >= '5'
		if r == Nearest && half || r == Up && !negative || r == Down && negative {
			u++
		}
	}
	v = int64(u)
	if negative {
		v = -v
	}
	return v, exact, nil
}

// ParseTime returns a time from "2.9s", "2900ms", "5us", "12ns" or a plain
// number of seconds, rounded up to a nanosecond.
func ParseTime(s string) (Time, error) {
	return parseSuffixed[Time](s, Up, []suffix{{"ns", 0}, {"us", 3}, {"µs", 3}, {"ms", 6}, {"s", 9}, {"", 9}})
}

// ParsePower returns a power from "83.64W", "15kW", "1.2MW", "500mW" or a plain
// number of watts, rounded to the nearest microwatt.
func ParsePower(s string) (Power, error) {
	return parseSuffixed[Power](s, Nearest, []suffix{{"uW", 0}, {"µW", 0}, {"mW", 3}, {"kW", 9}, {"MW", 12}, {"W", 6}, {"", 6}})
}

// ParseEnergy returns an energy from "23.8J", "5mJ", "7kJ" or a plain number of
// joules, rounded to the nearest picojoule.
func ParseEnergy(s string) (Energy, error) {
	return parseSuffixed[Energy](s, Nearest, []suffix{{"uJ", 6}, {"µJ", 6}, {"mJ", 9}, {"kJ", 15}, {"MJ", 18}, {"J", 12}, {"", 12}})
}

type suffix struct {
	name   string
	digits int
}

func parseSuffixed[T ~int64](s string, r Rounding, suffixes []suffix) (T, error) {
	for _, x := range suffixes {
		if number, ok := strings.CutSuffix(s, x.name); ok {
			v, _, err := ParseDecimal(strings.TrimSpace(number), x.digits, r)
			return T(v), err
		}
	}
	return 0, fmt.Errorf("%q: %w", s, ErrSyntax)
}
