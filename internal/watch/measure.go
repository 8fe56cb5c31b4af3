package watch

import "math"

// Arm is what an iteration of a [Measurement] runs.
type Arm int

// The arms of a measurement.
const (
	Planned Arm = iota // the schedule as planned
	Maximum            // all at the maximum clock
)

// abba is the order of blocks in a group: a drift that is linear over the group weighs the same on both arms.
var abba = [4]Arm{Planned, Maximum, Maximum, Planned}

// Measurement proves what a plan saves by alternating it with the maximum clock on the running job. It consists of
// Groups groups of four blocks (planned, maximum, maximum, planned) of Block iterations, the first Skip of which do not
// count, as clocks settle then. Its memory is the sums of the blocks.
type Measurement struct {
	Groups int     `json:"groups"`
	Block  int     `json:"block"`
	Skip   int     `json:"skip"`
	Next   int     `json:"next"` // first iteration of the measurement not yet seen
	Blocks []Block `json:"blocks"`
}

// Block is the sum of the iterations of one block that count.
type Block struct {
	N       int     `json:"n"`
	Seconds float64 `json:"seconds"`
	Joules  float64 `json:"joules"`
}

// Interval is an estimate with the limits of its 95 % confidence interval, all in percent.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// NewMeasurement returns a measurement that has seen nothing. Less than 2 groups, or less than 1 iteration a block,
// mean the default: 6 groups, 20 iterations. A skip below zero or not below block means a tenth of the block.
func NewMeasurement(groups, block, skip int) *Measurement {
	if groups < 2 {
		groups = 6
	}
	if block < 1 {
		block = 20
	}
	if skip < 0 || skip >= block {
		skip = block / 10
	}
	return &Measurement{Groups: groups, Block: block, Skip: skip, Blocks: make([]Block, 4*groups)}
}

// Iterations returns how many iterations the measurement takes.
func (m *Measurement) Iterations() int { return len(m.Blocks) * m.Block }

// Arm returns what iteration i of the measurement, counted from 0, runs. Before and after it that is Planned.
func (m *Measurement) Arm(i int) Arm {
	if i < 0 || i >= m.Iterations() {
		return Planned
	}
	return abba[i/m.Block%4]
}

// Done reports whether the last iteration of the measurement has been seen.
func (m *Measurement) Done() bool { return m.Next >= m.Iterations() }

// Observe takes time and energy of iteration i of the measurement, over all ranks. Iterations come in rising order,
// some may be missing. One that was seen or passed over before, one outside the measurement, and values that are not
// positive finite numbers do not count.
func (m *Measurement) Observe(i int, seconds, joules float64) {
	if i < m.Next || i >= m.Iterations() {
		return
	}
	m.Next = i + 1
	if i%m.Block < m.Skip || positiveOr(seconds, 0) == 0 || positiveOr(joules, 0) == 0 {
		return
	}
	b := &m.Blocks[i/m.Block]
	b.N++
	b.Seconds += seconds
	b.Joules += joules
}

// Result returns how much less energy the plan takes than the maximum clock and how much more time, in percent, so far.
// The values come from the mean over the groups of the log ratio of block means, the intervals from Student's t. A
// group in which a block has no iteration that counts is left out; with fewer than two groups ok is false.
func (m *Measurement) Result() (saving, slowdown Interval, ok bool) {
	var energy, time []float64
	for g := 0; g+4 <= len(m.Blocks) && m.Next >= (g+4)*m.Block; g += 4 {
		var e, t float64
		whole := true
		for k, arm := range abba {
			b := m.Blocks[g+k]
			if b.N == 0 {
				whole = false
				break
			}
			sign := 0.5
			if arm == Maximum {
				sign = -0.5
			}
			e += sign * math.Log(b.Joules/float64(b.N))
			t += sign * math.Log(b.Seconds/float64(b.N))
		}
		if whole {
			energy, time = append(energy, e), append(time, t)
		}
	}
	if len(energy) < 2 {
		return Interval{}, Interval{}, false
	}
	e, t := estimate(energy), estimate(time)
	// Less energy is a saving, so the limits change places.
	saving = Interval{Value: -percent(e.Value), Low: -percent(e.High), High: -percent(e.Low)}
	return saving, Interval{Value: percent(t.Value), Low: percent(t.Low), High: percent(t.High)}, true
}

// percent returns the change in percent that a log ratio stands for.
func percent(log float64) float64 { return 100 * math.Expm1(log) }

// estimate returns the mean of at least two values and its 95 % interval.
func estimate(v []float64) Interval {
	n := float64(len(v))
	mean, square := 0.0, 0.0
	for _, x := range v {
		mean += x / n
	}
	for _, x := range v {
		square += (x - mean) * (x - mean)
	}
	half := studentT(0.95, len(v)-1) * math.Sqrt(square/(n-1)/n)
	return Interval{Value: mean, Low: mean - half, High: mean + half}
}

// studentT returns the t within which, on both sides of zero, Student's distribution of dof >= 1 degrees of freedom has
// the share p in (0, 1). It halves an interval until floating point has no more to give, at O(dof) a step.
func studentT(p float64, dof int) float64 {
	low, high := 0.0, math.Pi/2 // the angle atan(t/√dof)
	for {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			return math.Tan(mid) * math.Sqrt(float64(dof))
		}
		if within(mid, dof) < p {
			low = mid
		} else {
			high = mid
		}
	}
}

// within returns the share of Student's distribution within ±t, where tan(angle) = t/√dof: the finite sums for whole
// degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).
func within(angle float64, dof int) float64 {
	sin, cos := math.Sincos(angle)
	sum := 0.0
	if dof%2 == 0 {
		term := 1.0
		for k := 2; k <= dof; k += 2 {
			sum += term
			term *= cos * cos * float64(k-1) / float64(k)
		}
		return sin * sum
	}
	term := cos
	for k := 3; k <= dof; k += 2 {
		sum += term
		term *= cos * cos * float64(k-1) / float64(k)
	}
	return 2 / math.Pi * (angle + sin*sum)
}
