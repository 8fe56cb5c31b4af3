package unit

import (
	"math"
	"math/bits"
)

// Energy128 is a signed 128-bit energy in femtojoules, the product of one
// microwatt and one nanosecond. The zero value is 0 J. Arithmetic wraps at
// 2^127 fJ (1.7e23 J), which no input within the bounds of this package reaches.
type Energy128 struct {
	hi int64
	lo uint64
}

// Product returns p·t, exact.
func Product(p Power, t Time) Energy128 {
	hi, lo := bits.Mul64(uint64(p), uint64(t))
	h := int64(hi)
	if p < 0 {
		h -= int64(t)
	}
	if t < 0 {
		h -= int64(p)
	}
	return Energy128{h, lo}
}

// Widen returns e in 128 bits, exact.
func (e Energy) Widen() Energy128 { return Product(Power(e), 1000) }

// Add returns a + b.
func (a Energy128) Add(b Energy128) Energy128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return Energy128{a.hi + b.hi + int64(carry), lo}
}

// Sub returns a − b.
func (a Energy128) Sub(b Energy128) Energy128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return Energy128{a.hi - b.hi - int64(borrow), lo}
}

// Cmp returns −1, 0 or 1 as a is less than, equal to or greater than b.
func (a Energy128) Cmp(b Energy128) int {
	switch {
	case a.hi != b.hi:
		if a.hi < b.hi {
			return -1
		}
		return 1
	case a.lo < b.lo:
		return -1
	case a.lo > b.lo:
		return 1
	}
	return 0
}

// Sign returns −1, 0 or 1 as a is negative, zero or positive.
func (a Energy128) Sign() int { return a.Cmp(Energy128{}) }

// Neg returns −a.
func (a Energy128) Neg() Energy128 { return Energy128{}.Sub(a) }

// Joules returns a in joules, for display and measuring only.
func (a Energy128) Joules() float64 {
	if a.hi < 0 { // −2^64 plus almost as much would cost all small digits
		return -a.Neg().Joules()
	}
	return (float64(a.hi)*(1<<64) + float64(a.lo)) / 1e15
}

// Picojoules returns a in picojoules, rounded as asked; ok is false where that
// does not fit in 63 bits (9.2 MJ).
func (a Energy128) Picojoules(r Rounding) (e Energy, ok bool) {
	v, ok := a.DivInt(1000, r)
	return Energy(v), ok
}

// Nanojoules returns a in nanojoules, rounded as asked; ok is false where that
// does not fit in 63 bits (9.2 GJ).
func (a Energy128) Nanojoules(r Rounding) (nanojoules int64, ok bool) {
	return a.DivInt(1e6, r)
}

// DivInt returns a/d in femtojoules for d > 0, rounded as asked; ok is false
// where that does not fit in 63 bits. With a power in microwatts as d it is the
// time in nanoseconds that the energy lasts.
func (a Energy128) DivInt(d int64, r Rounding) (v int64, ok bool) {
	negative := a.hi < 0
	if negative {
		a = a.Neg()
	}
	if a.hi < 0 || uint64(a.hi) >= uint64(d) {
		return 0, false
	}
	q, rem := bits.Div64(uint64(a.hi), a.lo, uint64(d))
	if rem != 0 && (r == Nearest && rem >= uint64(d)-rem || r == Up && !negative || r == Down && negative) {
		q++
	}
	if q > math.MaxInt64 {
		return 0, false
	}
	if negative {
		return -int64(q), true
	}
	return int64(q), true
}
