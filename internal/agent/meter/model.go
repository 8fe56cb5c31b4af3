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

// add takes a window. A window of a state beyond mostStates is left out.
func (m *model) add(x map[state]time.Duration, joules float64, length, unsure time.Duration) {
	if m.index == nil {
		m.index = map[state]int{}
	}
	for s := range x {
		if _, ok := m.index[s]; ok {
			continue
		}
		if len(m.states) == mostStates {
			m.full = true
			return
		}
		m.index[s] = len(m.states)
		m.states = append(m.states, s)
		for i := range m.xx {
			m.xx[i] = append(m.xx[i], 0)
		}
		m.xx = append(m.xx, make([]float64, len(m.states)))
		m.xy = append(m.xy, 0)
	}
	for s, d := range x {
		i := m.index[s]
		for r, e := range x {
			m.xx[i][m.index[r]] += d.Seconds() * e.Seconds()
		}
		m.xy[i] += d.Seconds() * joules
	}
	m.yy += joules * joules
	m.n++
	m.time += length.Seconds()
	m.energy += joules
	m.unsure += unsure.Seconds() * unsure.Seconds()
}

// solve returns the powers of all states. O(states³).
func (m *model) solve() map[state]power {
	k := len(m.states)
	if m.n == 0 || m.time <= 0 || m.energy <= 0 || m.full {
		return nil
	}
	mean := m.energy / m.time
	// What a window's energy is off by for its unsure ends, taken as evenly spread, and a hundredth of a percent.
	variance := mean*mean*m.unsure/float64(m.n)/3 + math.Pow(1e-4*m.energy/float64(m.n), 2)
	for range 2 {
		a := make([][]float64, k)
		b := make([]float64, k)
		for i := range a {
			a[i] = make([]float64, k)
			for j := range a[i] {
				a[i][j] = m.xx[i][j] / variance
			}
			a[i][i] += 1 / (mean * mean)
			b[i] = m.xy[i]/variance + 1/mean
		}
		inverse := invert(a)
		if inverse == nil {
			return nil
		}
		p := make([]float64, k)
		for i := range p {
			for j := range b {
				p[i] += inverse[i][j] * b[j]
			}
		}
		// Where the windows fit worse than their ends explain, all is less sure.
		residual := m.yy
		for i := range p {
			residual -= 2 * p[i] * m.xy[i]
			for j := range p {
				residual += p[i] * p[j] * m.xx[i][j]
			}
		}
		if free := m.n - k; free > 0 && residual/float64(free) > 1.5*variance {
			variance = residual / float64(free)
			continue
		}
		out := make(map[state]power, k)
		for i, s := range m.states {
			if p[i] > 0 {
				out[s] = power{p[i], math.Sqrt(inverse[i][i])}
			}
		}
		return out
	}
	return m.last(mean, variance)
}

// last solves once more with a variance that is final.
func (m *model) last(mean, variance float64) map[state]power {
	k := len(m.states)
	a := make([][]float64, k)
	for i := range a {
		a[i] = make([]float64, k)
		for j := range a[i] {
			a[i][j] = m.xx[i][j] / variance
		}
		a[i][i] += 1 / (mean * mean)
	}
	inverse := invert(a)
	if inverse == nil {
		return nil
	}
	out := make(map[state]power, k)
	for i, s := range m.states {
		p := 0.0
		for j := range inverse[i] {
			p += inverse[i][j] * (m.xy[j]/variance + 1/mean)
		}
		if p > 0 {
			out[s] = power{p, math.Sqrt(inverse[i][i])}
		}
	}
	return out
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
