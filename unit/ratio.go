package unit

import "strings"

// Ratio is an exact number without a unit, in parts per thousand million: a factor
// or a share. 0.001 is 1,000,000.
type Ratio int64

// One is the ratio 1.
const One Ratio = 1_000_000_000

// ParseRatio returns a ratio from "1.2", "120%" or "0.5 %", rounded to the nearest
// part.
func ParseRatio(s string) (Ratio, error) {
	number, digits := strings.TrimSpace(s), 9
	if p, ok := strings.CutSuffix(number, "%"); ok {
		number, digits = strings.TrimSpace(p), 7
	}
	v, _, err := ParseDecimal(number, digits, Nearest)
	return Ratio(v), err
}

// Float returns r as a number, for display and measuring only.
func (r Ratio) Float() float64 { return float64(r) / 1e9 }

// String returns the exact decimal, as in "1.2".
func (r Ratio) String() string { return string(r.AppendDecimal(nil)) }

// Percent returns the exact percentage, as in "0.5%".
func (r Ratio) Percent() string { return string(AppendDecimal(nil, int64(r), 7)) + "%" }

// MarshalJSON writes an exact decimal number.
func (r Ratio) MarshalJSON() ([]byte, error) { return r.AppendDecimal(nil), nil }

// UnmarshalJSON reads a decimal of at most nine decimals.
func (r *Ratio) UnmarshalJSON(b []byte) error { return unmarshal(r, b, 9) }

// Scale returns v times r, rounded. ok is false where the result does not fit.
func Scale[T Time | Power | Energy](v T, r Ratio, rounding Rounding) (scaled T, ok bool) {
	n, ok := Product(Power(r), Time(v)).DivInt(int64(One), rounding)
	return T(n), ok
}
