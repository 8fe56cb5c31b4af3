// Package campaign decides which clocks a live training job tries next in order to profile itself, and makes robust
// estimates of what it reports.
package campaign

import (
	"math"
	"slices"
)

// Median returns the median of v, the mean of the middle two for an even count, NaN for none. It leaves v as it is.
func Median(v []float64) float64 {
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	if n%2 == 1 {
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}

// Lowest returns how many of the effective energies e, over the clocks in descending order, are needed to stop: up to
// and including the rises-th rise in a row. Equal is no rise. ok is false if e has no such run; then it returns len(e).
func Lowest(e []float64, rises int) (n int, ok bool) {
	run := 0
	for i := 1; i < len(e); i++ {
		if e[i] > e[i-1] {
			run++
		} else {
			run = 0
		}
		if run > 0 && run >= rises {
			return i + 1, true
		}
	}
	return len(e), false
}

// Interval returns a distribution-free interval that holds the median with at least 95 %, from the order statistics of
// v. Fewer than six values cannot give one: then it returns the whole range of v (NaN for none) and ok is false.
func Interval(v []float64) (lo, hi float64, ok bool) {
	n := len(v)
	if n == 0 {
		return math.NaN(), math.NaN(), false
	}
	s := slices.Sorted(slices.Values(v))
	k, p, tail := 0, math.Pow(0.5, float64(n)), 0.0
	for tail+p <= 0.025 && k < n/2 {
		tail += p
		p *= float64(n-k) / float64(k+1)
		k++
	}
	if k == 0 {
		return s[0], s[n-1], false
	}
	return s[k-1], s[n-k], true
}
