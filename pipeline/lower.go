package pipeline

import (
	"fmt"
	"slices"
)

// Lower returns each rank's actions with the communication that PyTorch's
// runtime adds to a compute-only schedule: UNSHARD and RESHARD so that the next
// three stages, at most, are whole; REDUCE_GRAD after a stage's last B or W; SEND
// after the action that makes a value and RECV on the other rank at that moment,
// where neighbouring stages are on different ranks. RESHARDs that come together
// are by ascending stage. It fails where Check does and where a stage is on
// several ranks. O(ops·ranks) at worst.
func (o *Order) Lower() ([][]Action, error) {
	x, err := o.checked()
	if err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	home := make([]int32, o.Stages)
	for s := range home {
		row := x.home[s*o.Size.Microbatches : (s+1)*o.Size.Microbatches]
		home[s] = row[0]
		for m, rank := range row {
			if rank != row[0] {
				return nil, fmt.Errorf("stage %d is on rank %d for microbatch 0 and on rank %d for microbatch %d: PyTorch has a stage on one rank only",
					s, row[0], rank, m)
			}
		}
	}
	ranks := make([][]Action, len(o.Ranks))
	for r, actions := range o.Ranks {
		ranks[r] = reduceGrads(unshard(actions, o.Stages), o.Size.Microbatches)
	}
	return sendReceive(ranks, home, o.Size.Microbatches), nil
}

// unshard adds UNSHARD and RESHARD to a rank's actions.
func unshard(actions []Action, stages int) []Action {
	const most = 3 // stages whole at once
	local := map[int32]bool{}
	for _, a := range actions {
		parts, n := a.Parts()
		for _, p := range parts[:n] {
			local[p.Stage] = true
		}
	}
	out := make([]Action, 0, len(actions)+8)
	var whole, next []int32
	for i := range actions {
		next = next[:0]
		for _, a := range actions[i:] {
			if len(next) >= min(most, len(local)) {
				break
			}
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				if !slices.Contains(next, p.Stage) {
					next = append(next, p.Stage)
				}
			}
		}
		whole = slices.DeleteFunc(whole, func(s int32) bool {
			gone := !slices.Contains(next, s)
			if gone {
				out = append(out, Action{Kind: Reshard, Stage: s})
			}
			return gone
		})
		for _, s := range next {
			if !slices.Contains(whole, s) {
				whole = append(whole, s)
				out = append(out, Action{Kind: Unshard, Stage: s})
			}
		}
		slices.Sort(whole)
		out = append(out, actions[i])
	}
	for _, s := range whole {
		out = append(out, Action{Kind: Reshard, Stage: s})
	}
	return out
}

// reduceGrads adds REDUCE_GRAD after the last backward of each stage of a rank.
func reduceGrads(actions []Action, microbatches int) []Action {
	done := map[int32]int{}
	out := make([]Action, 0, len(actions)+8)
	for _, a := range actions {
		out = append(out, a)
		parts, n := a.Parts()
		for _, p := range parts[:n] {
			if p.Kind.fullBackward() || p.Kind == WeightGrad {
				if done[p.Stage]++; done[p.Stage] == microbatches {
					out = append(out, Action{Kind: ReduceGrad, Stage: p.Stage})
				}
			}
		}
	}
	return out
}

// sendReceive adds SEND and RECV. In sweeps over the ranks each runs its next
// action if it can; so receives come in an order in which they never hang.
func sendReceive(ranks [][]Action, home []int32, microbatches int) [][]Action {
	stages := int32(len(home))
	const forwardHere, backwardHere = 1, 2 // the value that a stage needs is on its rank
	here := make([]uint8, len(home)*microbatches)
	cell := func(s, m int32) int { return int(s)*microbatches + int(m) }
	out := make([][]Action, len(ranks))
	ready := func(p Part) bool {
		switch {
		case p.Kind == Forward:
			return p.Stage == 0 || here[cell(p.Stage, p.Microbatch)]&forwardHere != 0
		case p.Kind.fullBackward() || p.Kind == InputGrad:
			return p.Stage == stages-1 || here[cell(p.Stage, p.Microbatch)]&backwardHere != 0
		}
		return true
	}
	done := func(p Part) {
		to, send, receive, bit := p.Stage+1, SendForward, RecvForward, uint8(forwardHere)
		if p.Kind != Forward {
			to, send, receive, bit = p.Stage-1, SendBackward, RecvBackward, backwardHere
		}
		if p.Kind != Forward && p.Kind != InputGrad && !p.Kind.fullBackward() || to < 0 || to >= stages {
			return
		}
		here[cell(to, p.Microbatch)] |= bit
		if from := home[p.Stage]; from != home[to] {
			out[from] = append(out[from], Action{Kind: send, Stage: p.Stage, Microbatch: p.Microbatch})
			out[home[to]] = append(out[home[to]], Action{Kind: receive, Stage: to, Microbatch: p.Microbatch})
		}
	}
	at := make([]int, len(ranks))
	for progress := true; progress; {
		progress = false
		for r, actions := range ranks {
			if at[r] == len(actions) {
				continue
			}
			a := actions[at[r]]
			parts, n := a.Parts()
			if !ready(parts[0]) || n == 2 && !ready(parts[1]) {
				continue
			}
			out[r] = append(out[r], a)
			for _, p := range parts[:n] {
				done(p)
			}
			at[r]++
			progress = true
		}
	}
	return out
}
