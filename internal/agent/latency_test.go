package agent

import (
	"testing"
	"time"
)

// TestLatencies: one switch that was seen late does not count among many, and counts among few.
func TestLatencies(t *testing.T) {
	l := newLatencies(80 * time.Millisecond)
	check := func(mhz int, earliest, latest, longest time.Duration) {
		t.Helper()
		e, u := l.of("gpu", mhz)
		if m := l.longest("gpu"); e != earliest || u != latest || m != longest {
			t.Errorf("%d MHz: %v to %v, of all %v; want %v to %v, %v", mhz, e, u, m, earliest, latest, longest)
		}
	}
	check(900, 0, 80*time.Millisecond, 0)
	for _, d := range []time.Duration{6, 5, 90} {
		l.add("gpu", 900, d*time.Millisecond)
	}
	check(900, 5*time.Millisecond, 90*time.Millisecond, 90*time.Millisecond)
	check(600, 0, 90*time.Millisecond, 90*time.Millisecond)
	l.add("gpu", 900, 7*time.Millisecond)
	check(900, 5*time.Millisecond, 7*time.Millisecond, 7*time.Millisecond)
	l.add("gpu", 600, 9*time.Millisecond)
	check(600, 9*time.Millisecond, 9*time.Millisecond, 9*time.Millisecond)
}
