package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Cap is a clock ceiling of a pipeline rank.
type Cap struct {
	PP  int `json:"pp"`
	MHz int `json:"mhz"`
}

// Capped is what is known of pipelines under some clock ceilings.
type Capped struct {
	// Frontier is its hash, LeastTimeS its least time; empty while it is being computed, and where there is none.
	Frontier   string  `json:"frontier,omitempty"`
	LeastTimeS float64 `json:"least_time_s,omitempty"`
}

// caps returns the ceilings of each pipeline that some of the stragglers put on it, by pipeline and in order; nil where
// there are none.
func (j *Job) caps(stragglers []Straggler) [][]Cap {
	if !slices.ContainsFunc(stragglers, func(s Straggler) bool { return s.MaxFrequencyMHz > 0 }) {
		return nil
	}
	all := make([][]Cap, j.Spec.DP)
	for _, s := range stragglers {
		if s.MaxFrequencyMHz <= 0 {
			continue
		}
		of := &all[s.DP]
		if i := slices.IndexFunc(*of, func(c Cap) bool { return c.PP == s.PP }); i >= 0 {
			(*of)[i].MHz = min((*of)[i].MHz, s.MaxFrequencyMHz)
			continue
		}
		*of = append(*of, Cap{s.PP, s.MaxFrequencyMHz})
	}
	for _, of := range all {
		slices.SortFunc(of, func(a, b Cap) int { return cmp.Compare(a.PP, b.PP) })
	}
	return all
}

// capsKey names the frontier of the job's profile under ceilings.
func (j *Job) capsKey(caps []Cap) string {
	if len(caps) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(j.Profile)
	for _, c := range caps {
		fmt.Fprintf(&b, "/%d:%d", c.PP, c.MHz)
	}
	return b.String()
}

// askCapped asks for the frontiers under the ceilings in force that were not asked for yet, and forgets those of others.
func (j *Job) askCapped(active []Straggler) {
	known := j.Capped
	j.Capped = nil
	for _, caps := range j.caps(active) {
		key := j.capsKey(caps)
		if key == "" {
			continue
		}
		c, asked := known[key]
		if _, again := j.Capped[key]; !asked && !again {
			j.effects = append(j.effects, Characterize{caps})
		}
		if j.Capped == nil {
			j.Capped = map[string]Capped{}
		}
		j.Capped[key] = c
	}
}

// CappedReady tells that the frontier under ceilings is there, or why there is none: then they are left out of account.
func (j *Job) CappedReady(caps []Cap, hash string, leastTimeS float64, problem string) {
	key := j.capsKey(caps)
	if _, asked := j.Capped[key]; !asked {
		return
	}
	if problem != "" {
		j.note("straggler", "a clock ceiling is left out of account: %s", problem)
		return
	}
	j.Capped[key] = Capped{hash, leastTimeS}
	j.replanIfActive()
}
