package report

import (
	"math"
	"strconv"
)

// XY is a point of a picture: an iteration time in seconds and an energy in
// joules.
type XY struct{ X, Y float64 }

// Mark is a point of a picture that has a name.
type Mark struct {
	XY
	Label string
	// Rune stands for it on a terminal.
	Rune rune
}

// Axis maps values to positions 0 … length.
type Axis struct {
	Low, High float64
	// Ticks are round numbers, which Format writes.
	Ticks  []float64
	Format func(float64) string
}

// NewAxis returns an axis over the values with about n ticks at round numbers.
func NewAxis(low, high float64, n int) Axis {
	if !(high > low) { // also where one is not a number
		pad := math.Abs(low) / 100
		if pad == 0 {
			pad = 1
		}
		low, high = low-pad, low+pad
	}
	margin := (high - low) / 25
	a := Axis{Low: low - margin, High: high + margin}
	// Times and energies are whole nanoseconds and nanojoules: no finer ticks.
	step := max(RoundStep((a.High-a.Low)/float64(max(1, n))), 1e-9)
	first := math.Ceil(a.Low / step)
	for i := 0.0; ; i++ {
		t := float64((first + i) * step)
		if t > a.High || i > 100 {
			break
		}
		a.Ticks = append(a.Ticks, t)
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	a.Format = func(v float64) string {
		if v == 0 {
			v = 0 // not −0
		}
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	return a
}

// RoundStep returns the least of 1, 2, 5 times a power of ten that is at least v.
func RoundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// At returns where v is on an axis of the given length, clipped to it. The
// conversions keep the compiler from fusing operations, which would round
// differently from machine to machine.
func (a Axis) At(v, length float64) float64 {
	share := float64((v - a.Low) / (a.High - a.Low))
	return min(max(float64(share*length), 0), length)
}

// Bounds returns the least and the greatest of all coordinates.
func Bounds(line []XY, marks []Mark) (low, high XY) {
	low = XY{math.Inf(1), math.Inf(1)}
	high = XY{math.Inf(-1), math.Inf(-1)}
	take := func(p XY) {
		low.X, low.Y = min(low.X, p.X), min(low.Y, p.Y)
		high.X, high.Y = max(high.X, p.X), max(high.Y, p.Y)
	}
	for _, p := range line {
		take(p)
	}
	for _, m := range marks {
		take(m.XY)
	}
	return low, high
}
