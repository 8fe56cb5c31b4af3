package control

import (
	"io"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
)

// Body is a schedule for all ranks of a job.
type Body struct {
	// Groups are pipelines that do the same; the first is for all that no other names.
	Groups []Group `json:"groups"`
}

// Group is what some pipelines do.
type Group struct {
	Pipelines []int `json:"pipelines,omitempty"`
	// Ranks is by pipeline rank, which stands in the field Rank.
	Ranks []api.RankSchedule `json:"ranks"`
}

// Rank returns what a rank at a place is to do, with its pipeline rank in the field Rank.
func (b *Body) Rank(dp, pp int) *api.RankSchedule {
	return &b.Groups[b.GroupOf(dp)].Ranks[pp]
}

// GroupOf returns the index of the group of a pipeline.
func (b *Body) GroupOf(dp int) int {
	for i := len(b.Groups) - 1; i > 0; i-- {
		if slices.Contains(b.Groups[i].Pipelines, dp) {
			return i
		}
	}
	return 0
}

func stringReader(s string) io.Reader { return strings.NewReader(s) }

func maximum(pp int) *Body {
	ranks := make([]api.RankSchedule, pp)
	for i := range ranks {
		ranks[i] = api.RankSchedule{Rank: i, Mode: api.MaxClock}
	}
	return &Body{Groups: []Group{{Ranks: ranks}}}
}

// trial returns the schedule of a step of a campaign: a clock for each stage and instruction. A rank of one stage gets
// a clock for each instruction, one of several a clock for each op.
func trial(o *pipeline.Order, clock func(replica, stage int, instruction string) int, replicas int) *Body {
	b := &Body{}
	for r := range replicas {
		g := Group{Ranks: make([]api.RankSchedule, len(o.Ranks))}
		if r > 0 {
			g.Pipelines = []int{r}
		}
		for p, actions := range o.Ranks {
			g.Ranks[p] = trialRank(p, actions, func(stage int, name string) int { return clock(r, stage, name) })
		}
		b.Groups = append(b.Groups, g)
	}
	return b
}

func trialRank(rank int, actions []pipeline.Action, clock func(stage int, instruction string) int) api.RankSchedule {
	s := api.RankSchedule{Rank: rank, Mode: api.Uniform, Uniform: map[string]int{}}
	stage := -1
	for _, a := range actions {
		name, st := a.Kind.Instruction(), int(a.Stage)
		if a.Kind.Fixed() {
			continue
		}
		if stage >= 0 && st != stage {
			s.Mode = api.Planned
		}
		stage = st
		s.Uniform[name] = clock(st, name)
		s.Stage, s.Microbatch = append(s.Stage, st), append(s.Microbatch, int(a.Microbatch))
		s.FrequencyMHz = append(s.FrequencyMHz, clock(st, name))
		s.Instructions, s.Instruction = indexed(s.Instructions, s.Instruction, name)
	}
	if s.Mode == api.Uniform {
		s.Stage, s.Microbatch, s.FrequencyMHz, s.Instructions, s.Instruction = nil, nil, nil, nil, nil
	} else {
		s.Uniform = nil
	}
	return s
}

func indexed(names []string, at []int, name string) ([]string, []int) {
	i := slices.Index(names, name)
	if i < 0 {
		i = len(names)
		names = append(names, name)
	}
	return names, append(at, i)
}

// ranksOf returns what each rank of a pipeline does by a plan.
func ranksOf(p *plan.Plan) []api.RankSchedule {
	ranks := make([]api.RankSchedule, len(p.Ranks))
	for r, ops := range p.Ranks {
		s := api.RankSchedule{Rank: r, Mode: api.Planned, IterationNs: nanoseconds(p.WaitTime.Seconds()), HoldNs: nanoseconds(p.Request.Hold.Seconds())}
		n := len(ops)
		s.Stage, s.Microbatch, s.FrequencyMHz = make([]int, 0, n), make([]int, 0, n), make([]int, 0, n)
		s.StartNs, s.TimeNs, s.Instruction = make([]int64, 0, n), make([]int64, 0, n), make([]int, 0, n)
		for _, op := range ops {
			s.Stage, s.Microbatch = append(s.Stage, int(op.Stage)), append(s.Microbatch, int(op.Microbatch))
			s.FrequencyMHz = append(s.FrequencyMHz, int(op.Knobs.ClockMHz))
			s.StartNs = append(s.StartNs, nanoseconds(op.Start.Seconds()))
			s.TimeNs = append(s.TimeNs, nanoseconds(op.Time.Seconds()))
			s.Instructions, s.Instruction = indexed(s.Instructions, s.Instruction, op.Instruction)
		}
		ranks[r] = s
	}
	return ranks
}

func nanoseconds(s float64) int64 { return int64(s*1e9 + 0.5) }
