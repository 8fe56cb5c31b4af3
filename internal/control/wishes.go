package control

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/watch"
)

// detected is the source of stragglers that the server saw itself.
const detected = "detected"

// Straggler is a slow GPU and where it is.
type Straggler struct {
	api.Straggler
	DP int `json:"dp"`
	PP int `json:"pp"`
	// ObservedS is what the pipelines took in an iteration when the server saw the straggler, in s; 0 if unknown.
	ObservedS float64 `json:"observed_s,omitempty"`
}

// SetStraggler takes word of a slow GPU at a place, replacing what the same source said of it before. A slowdown of 1
// takes it back.
func (j *Job) SetStraggler(s api.Straggler, at Place, rank int) error {
	s.Rank = &rank
	s.Source = cmp.Or(s.Source, "operator")
	if s.Source == detected {
		return refuse(422, "straggler", "source %q is the server's own: leave it out, or name who says so", s.Source)
	}
	switch {
	case s.Slowdown == 0 && s.MaxFrequencyMHz == 0:
		return refuse(422, "straggler", "slowdown or max_frequency_mhz is missing")
	case s.Slowdown != 0 && s.MaxFrequencyMHz != 0:
		return refuse(422, "straggler", "slowdown and max_frequency_mhz exclude each other")
	case s.Slowdown != 0 && !(s.Slowdown >= 1):
		return refuse(422, "straggler", "slowdown %g: a straggler takes at least 1 times the least time", s.Slowdown)
	case s.UntilIteration != 0 && s.UntilIteration <= s.AtIteration:
		return refuse(422, "straggler", "until_iteration %d is not after at_iteration %d", s.UntilIteration, s.AtIteration)
	case j.Ended():
		return refuse(409, "job-state", "job %s is %s", j.ID, j.State)
	}
	if s.MaxFrequencyMHz > 0 && at.PP < len(j.Clocks) && len(j.Clocks[at.PP]) > 0 {
		if lowest := slices.Min(j.Clocks[at.PP]); s.MaxFrequencyMHz < lowest {
			return refuse(422, "straggler", "max_frequency_mhz %d: the lowest clock of rank %d is %d MHz", s.MaxFrequencyMHz, rank, lowest)
		}
	}
	j.setStraggler(Straggler{Straggler: s, DP: at.DP, PP: at.PP})
	j.replanIfActive()
	return nil
}

func (j *Job) replanIfActive() {
	if j.State == api.Running && j.Frontier != "" && j.Measuring == nil && j.activeChanged() {
		j.Due = true
	}
}

func (j *Job) setStraggler(s Straggler) {
	j.Stragglers = slices.DeleteFunc(j.Stragglers, func(t Straggler) bool {
		return *t.Rank == *s.Rank && t.Source == s.Source
	})
	if s.Slowdown == 1 {
		j.note("straggler", "rank %d is none any more (%s)", *s.Rank, s.Source)
		return
	}
	j.Stragglers = append(j.Stragglers, s)
	slices.SortFunc(j.Stragglers, func(a, b Straggler) int {
		return cmp.Or(cmp.Compare(*a.Rank, *b.Rank), cmp.Compare(a.Source, b.Source))
	})
	if s.MaxFrequencyMHz > 0 {
		j.note("straggler", "rank %d runs at %d MHz at most (%s)", *s.Rank, s.MaxFrequencyMHz, s.Source)
	} else {
		j.note("straggler", "rank %d is slower, %.4g times (%s)", *s.Rank, s.Slowdown, s.Source)
	}
}

func (j *Job) detected(c watch.Change, at Place) {
	rank := c.Rank
	before, observed := 1.0, 0.0
	for _, s := range j.Stragglers {
		if *s.Rank == rank && s.Source == detected {
			before, observed = s.Slowdown, s.ObservedS
		}
	}
	// All ranks wait for the slowest, so the iteration tells its time, as long as no other plan made for it is in force.
	// The least of them counts: what else may hold up an iteration makes it longer only.
	switch {
	case c.Slowdown < before:
		observed = 0
	case len(j.Recent) == 3 && len(j.Base) >= enough:
		observed = max(observed, slices.Min(j.Recent)-j.besides())
	}
	j.setStraggler(Straggler{Straggler: api.Straggler{Rank: &rank, Slowdown: c.Slowdown, Source: detected}, DP: at.DP, PP: at.PP, ObservedS: observed})
}

// SetGoal takes an operator's wish.
func (j *Job) SetGoal(g api.Goal) error {
	n := 0
	for _, set := range []bool{g.Slowdown != 0, g.TimeS != 0, g.PowerW != 0, g.LeastEnergy} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return refuse(422, "goal", "slowdown, time_s, power_w and least_energy exclude each other")
	case g.Slowdown != 0 && !(g.Slowdown >= 1 && g.Slowdown <= 10):
		return refuse(422, "goal", "slowdown %g is not in 1 … 10", g.Slowdown)
	case g.TimeS < 0 || g.PowerW < 0:
		return refuse(422, "goal", "time_s and power_w are not negative")
	case j.Ended():
		return refuse(409, "job-state", "job %s is %s", j.ID, j.State)
	}
	if j.Goal == g {
		return nil
	}
	j.Goal = g
	j.note("operator", "goal: %s", goalText(g))
	j.replanIfActive()
	return nil
}

func goalText(g api.Goal) string {
	switch {
	case g.Slowdown != 0:
		return fmt.Sprintf("%g times the least time", g.Slowdown)
	case g.TimeS != 0:
		return fmt.Sprintf("%g s an iteration", g.TimeS)
	case g.PowerW != 0:
		return fmt.Sprintf("%g W a pipeline", g.PowerW)
	case g.LeastEnergy:
		return "least energy"
	}
	return "fastest"
}

// active returns the stragglers that count in the iterations that a schedule published now would hold for.
func (j *Job) active() []Straggler {
	from := j.first()
	var out []Straggler
	for _, s := range j.Stragglers {
		if s.AtIteration <= from && (s.UntilIteration == 0 || s.UntilIteration > from) {
			out = append(out, s)
		}
	}
	return out
}

func (j *Job) answer() string {
	text := fmt.Sprint(j.Frontier, j.Goal, "/", j.hold())
	active := j.active()
	for dp, caps := range j.caps(active) {
		if len(caps) > 0 {
			text += fmt.Sprint("/", dp, j.Capped[j.capsKey(caps)].Frontier)
		}
	}
	for _, s := range active {
		text += fmt.Sprint("/", *s.Rank, s.Slowdown, s.MaxFrequencyMHz, s.ObservedS)
	}
	return text
}

func (j *Job) activeChanged() bool { return j.Active != j.answer() }
