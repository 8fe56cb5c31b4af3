package campaign

import "testing"

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{1000, 2, 1}, 2}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

func TestLowest(t *testing.T) {
	e := []float64{9, 5, 4, 5, 5, 6, 7, 8, 9}
	if n, ok := Lowest(e, 3); n != 8 || !ok {
		t.Errorf("Lowest = %d, %v, want 8, true", n, ok)
	}
	if n, ok := Lowest(e, 5); n != 9 || ok {
		t.Errorf("Lowest = %d, %v, want 9, false", n, ok)
	}
}

func TestInterval(t *testing.T) {
	// The ranks of the sign test's table: n=5 none, n=6 the range, n=9 2 and 8, n=16 4 and 13.
	for _, c := range []struct {
		n      int
		lo, hi float64
		ok     bool
	}{{5, 1, 5, false}, {6, 1, 6, true}, {9, 2, 8, true}, {16, 4, 13, true}} {
		var v []float64
		for i := c.n; i > 0; i-- {
			v = append(v, float64(i))
		}
		if lo, hi, ok := Interval(v); lo != c.lo || hi != c.hi || ok != c.ok {
			t.Errorf("Interval of 1..%d = %v, %v, %v", c.n, lo, hi, ok)
		}
	}
}
