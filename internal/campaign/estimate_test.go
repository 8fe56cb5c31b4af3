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
