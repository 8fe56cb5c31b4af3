package characterize

import (
	"math/big"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// lineGap returns the largest distance of the lines between neighbouring points,
// fastest first; at least the least ratio there is: 0 stands for a whole frontier.
func lineGap(relaxed []unit.Time, certificates []certificate, blocking unit.Power) frontierfile.Ratio {
	most := frontierfile.Ratio(1)
	for i := range len(relaxed) - 1 {
		most = max(most, lineDistance(relaxed[i], relaxed[i+1], certificates[i], certificates[i+1], blocking))
	}
	return most
}

// lineDistance returns how far the straight line between two points, each as high
// as its relaxed schedule may cost in total, lies above what both certificates
// prove, at most, as a fraction of the latter, rounded up to a part per thousand
// million. All are straight, so it is at one of the ends or where the
// certificates are equally high.
//
// With u and v, how far the fast point's certificate lies above the slow one's at
// its own time, and the slow point's above the fast one's at its own, they are
// equally high at the time that divides the way from fast to slow as u to v, and
// the line between the certificates' own ends is u·v/(u+v) above them there.
func lineDistance(fast, slow unit.Time, f, s certificate, blocking unit.Power) frontierfile.Ratio {
	proved := func(c certificate, t unit.Time) *big.Int {
		return wide(c.at(t).Add(unit.Product(blocking, t)))
	}
	fMissing, sMissing := wide(f.missing), wide(s.missing)
	most := max(shareUp(fMissing, proved(f, fast)), shareUp(sMissing, proved(s, slow)))
	u := wide(f.at(fast).Sub(s.at(fast)))
	v := wide(s.at(slow).Sub(f.at(slow)))
	if u.Sign() <= 0 || v.Sign() <= 0 {
		return most
	}
	// Both times u+v: the line above the certificates at that time, and what
	// they prove there, base + (blocking − price)·time.
	sum := new(big.Int).Add(u, v)
	above := new(big.Int).Mul(u, v)
	above.Add(above, fMissing.Mul(fMissing, v)).Add(above, sMissing.Mul(sMissing, u))
	time := new(big.Int).Mul(big.NewInt(int64(slow-fast)), u)
	time.Add(time, new(big.Int).Mul(big.NewInt(int64(fast)), sum))
	total := time.Mul(time, big.NewInt(int64(blocking-f.price)))
	total.Add(total, sum.Mul(sum, wide(f.base)))
	return max(most, shareUp(above, total))
}

// shareUp returns a/b in parts per thousand million, rounded up: all of them where
// that is more, or b is not positive.
func shareUp(a, b *big.Int) frontierfile.Ratio {
	const parts = 1_000_000_000
	if b.Sign() <= 0 {
		return parts
	}
	v := new(big.Int).Mul(a, big.NewInt(parts))
	v.Add(v, b).Sub(v, big.NewInt(1)).Div(v, b)
	if !v.IsInt64() {
		return parts
	}
	return frontierfile.Ratio(min(v.Int64(), parts))
}

// wide returns e in femtojoules.
func wide(e unit.Energy128) *big.Int {
	const high = 1 << 62
	q, _ := e.DivInt(high, unit.Down)
	r, _ := e.Sub(unit.Product(high, unit.Time(q))).DivInt(1, unit.Down)
	v := new(big.Int).Mul(big.NewInt(q), big.NewInt(high))
	return v.Add(v, big.NewInt(r))
}
