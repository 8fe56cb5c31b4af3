package frontierfile

import "strconv"

// appendDecimal appends v / 10^digits without trailing zeros. digits ≤ 18.
func appendDecimal(b []byte, v int64, digits int) []byte {
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
