package unit

import "strconv"

// AppendDecimal appends v / 10^digits as an exact decimal, without trailing zeros
// and without a unit. digits is 0 to 18.
func AppendDecimal(b []byte, v int64, digits int) []byte {
	u := uint64(v)
	if v < 0 {
		b, u = append(b, '-'), -u
	}
	one := uint64(1)
	for range digits {
		one *= 10
	}
	b = strconv.AppendUint(b, u/one, 10)
	fraction := u % one
	if fraction == 0 {
		return b
	}
	b = append(b, '.')
	for fraction > 0 {
		one /= 10
		b = append(b, '0'+byte(fraction/one))
		fraction %= one
	}
	return b
}

// AppendDecimal appends seconds, as JSON and CSV have them.
func (t Time) AppendDecimal(b []byte) []byte { return AppendDecimal(b, int64(t), 9) }

// AppendDecimal appends watts, as JSON and CSV have them.
func (p Power) AppendDecimal(b []byte) []byte { return AppendDecimal(b, int64(p), 6) }

// AppendDecimal appends joules, as JSON and CSV have them.
func (e Energy) AppendDecimal(b []byte) []byte { return AppendDecimal(b, int64(e), 12) }

// AppendDecimal appends the number, as JSON and CSV have it.
func (r Ratio) AppendDecimal(b []byte) []byte { return AppendDecimal(b, int64(r), 9) }
