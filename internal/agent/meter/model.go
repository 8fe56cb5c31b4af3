package meter

import (
	"math"
	"time"
)

// model finds the powers of states from windows: Bayesian linear regression, by normal equations.
type model struct {
	index  map[state]int
	states []state
	xx     [][]float64 // sum of durations times durations, s²
	xy     []float64   // sum of durations times energies, J·s
	yy     float64
	n      int
	time   float64 // s
	energy float64
	unsure float64 // sum of squared uncertainties of windows, s²
	full   bool
}

// power is what a state draws, in W.
type power struct{ mean, deviation float64 }

// part is for how long a window had a state.
type part struct {
	state
	seconds float64
}

// add takes a window. A state beyond mostStates ends the finding: too many unknowns.
func (m *model) add(parts []part, joules float64, length, unsure time.Duration) {
	if m.index == nil {
		m.index = map[state]int{}
	}
	for _, p := range parts {
		if _, ok := m.index[p.state]; ok {
			continue
		}
		if len(m.states) == mostStates {
			m.full = true
			return
		}
		m.index[p.state] = len(m.states)
		m.states = append(m.states, p.state)
		for i := range m.xx {
			m.xx[i] = append(m.xx[i], 0)
		}
		m.xx = append(m.xx, make([]float64, len(m.states)))
		m.xy = append(m.xy, 0)
	}
	for _, p := range parts {
		i := m.index[p.state]
		for _, q := range parts {
			m.xx[i][m.index[q.state]] += p.seconds * q.seconds
		}
		m.xy[i] += p.seconds * joules
	}
	m.yy += joules * joules
	m.n++
	m.time += length.Seconds()
	m.energy += joules
	m.unsure += unsure.Seconds() * unsure.Seconds()
}

// solve returns the powers of all states; none where there is no window, or too many states. O(states³).
func (m *model) solve() map[state]power {
	k := len(m.states)
	if m.n == 0 || m.time <= 0 || m.energy <= 0 || m.full {
		return nil
	}
	mean, window := m.energy/m.time, m.energy/float64(m.n)
	// What a window's energy is off by for its unsure ends, taken as evenly spread, and a ten thousandth.
	variance := mean*mean*m.unsure/float64(m.n)/3 + math.Pow(1e-4*window, 2)
	p, inverse := m.fit(mean, variance)
	// Where the windows fit worse than that explains, all is less sure.
	if free := m.n - k; free > 0 && p != nil {
		if worse := m.residual(p) / float64(free); worse > variance {
			p, inverse = m.fit(mean, worse)
		}
	}
	if p == nil {
		return nil
	}
	out := make(map[state]power, k)
	for i, s := range m.states {
		if p[i] > 0 {
			out[s] = power{p[i], math.Sqrt(inverse[i][i])}
		}
	}
	return out
}

// fit returns the most likely powers and their covariance, if windows are off by a variance, in J², and powers are like
// the mean; nil where numbers are too far apart.
func (m *model) fit(mean, variance float64) (p []float64, inverse [][]float64) {
	a := make([][]float64, len(m.states))
	for i := range a {
		a[i] = make([]float64, len(a))
		for j := range a {
			a[i][j] = m.xx[i][j] / variance
		}
		a[i][i] += 1 / (mean * mean)
	}
	if inverse = invert(a); inverse == nil {
		return nil, nil
	}
	p = make([]float64, len(a))
	for i := range p {
		for j := range p {
			p[i] += inverse[i][j] * (m.xy[j]/variance + 1/mean)
		}
	}
	return p, inverse
}

// residual returns the sum of squares, in J², that powers leave unexplained.
func (m *model) residual(p []float64) float64 {
	r := m.yy
	for i := range p {
		r -= 2 * p[i] * m.xy[i]
		for j := range p {
			r += p[i] * p[j] * m.xx[i][j]
		}
	}
	return r
}

// invert returns the inverse of a symmetric positive definite matrix, or nil if a is none. It uses a up.
func invert(a [][]float64) [][]float64 {
	k := len(a)
	out := make([][]float64, k)
	for i := range out {
		out[i] = make([]float64, k)
		out[i][i] = 1
	}
	for c := range k {
		pivot := c
		for r := c + 1; r < k; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		if a[pivot][c] == 0 || math.IsNaN(a[pivot][c]) {
			return nil
		}
		a[c], a[pivot] = a[pivot], a[c]
		out[c], out[pivot] = out[pivot], out[c]
		f := 1 / a[c][c]
		for j := range k {
			a[c][j] *= f
			out[c][j] *= f
		}
		for r := range k {
			if g := a[r][c]; r != c && g != 0 {
				for j := range k {
					a[r][j] -= g * a[c][j]
					out[r][j] -= g * out[c][j]
				}
			}
		}
	}
	return out
}
