package watch

import "fmt"

// Guardrail tells when iterations take longer than the schedule in force says.
type Guardrail struct {
	Planned float64 `json:"planned_s"` // planned iteration time, seconds
	Percent float64 `json:"percent"`   // how much longer is allowed
	Window  int     `json:"window"`    // iterations the mean is taken of
	Spans   []Span  `json:"spans"`     // the last Window iterations, oldest first
	Ignored int64   `json:"ignored"`   // reports that were no measurement
}

// Span is a number of iterations and their mean time in seconds.
type Span struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean_s"`
}

// Verdict is what a [Guardrail] says after a report.
type Verdict struct {
	Tripped    bool
	Mean       float64 // mean time of the iterations looked at, seconds
	Iterations int     // how many those are; fewer than the window never trip
	Reason     string  // one sentence for people; empty unless tripped
}

// NewGuardrail returns a guardrail for a planned iteration time in seconds. A percent or window that is not above zero
// gets its default: 1 percent, 20 iterations. It never trips while planned is not above zero.
func NewGuardrail(planned, percent float64, window int) *Guardrail {
	if window <= 0 {
		window = 20
	}
	return &Guardrail{Planned: planned, Percent: positiveOr(percent, 1), Window: window}
}

// Reset forgets all iterations, for a new version of the schedule with its planned iteration time in seconds. The
// caller leaves out reports of other versions.
func (g *Guardrail) Reset(planned float64) {
	g.Planned, g.Spans = planned, nil
}

// Observe takes a report on n iterations with a mean time in seconds and says how things stand. It trips when the mean
// of the last Window iterations is above the planned time and Percent more, and again with each report until Reset or
// until they are faster. Of a report only partly within the window that part counts with the report's mean. A report
// without iterations or with a time that is not a positive finite number is counted in Ignored.
func (g *Guardrail) Observe(n int, mean float64) Verdict {
	if n <= 0 || positiveOr(mean, 0) == 0 {
		g.Ignored++
		return g.verdict()
	}
	n = min(n, g.Window)
	g.Spans = append(g.Spans, Span{N: n, Mean: mean})
	total := 0
	for i := len(g.Spans) - 1; i >= 0; i-- {
		s := &g.Spans[i]
		s.N = min(s.N, g.Window-total)
		total += s.N
		if total == g.Window {
			g.Spans = append([]Span(nil), g.Spans[i:]...)
			break
		}
	}
	return g.verdict()
}

// verdict judges the iterations kept.
func (g *Guardrail) verdict() Verdict {
	var v Verdict
	sum := 0.0
	for _, s := range g.Spans {
		v.Iterations += s.N
		sum += float64(s.N) * s.Mean
	}
	if v.Iterations == 0 {
		return v
	}
	v.Mean = sum / float64(v.Iterations)
	if v.Iterations < g.Window || !(g.Planned > 0) || v.Mean <= g.Planned*(1+g.Percent/100) {
		return v
	}
	v.Tripped = true
	v.Reason = fmt.Sprintf("the last %d iterations took %.4g s on average, %.1f %% above the planned %.4g s (allowed: %g %%)",
		v.Iterations, v.Mean, 100*(v.Mean/g.Planned-1), g.Planned, g.Percent)
	return v
}
