package pipeline

import (
	"fmt"
	"strings"
	"testing"
)

// greedy schedules as the zero-bubble authors' scheduler does (sail-sg/
// zero-bubble-pipeline-parallelism, scheduler/zb.py at 39f2c186, the variant that
// it prefers, with equal times of F, I and W and no time to send): round by round
// each rank runs one forward, where the next rank wants it, and one input
// gradient, and fills its waiting time with weights' gradients.
type greedy struct {
	ranks, microbatches int
	f, i, w             []int // done by each rank
	memory              []int // forwards without their W
	end, idle           []int
	fEnd, iEnd          [][]int
	order               [][]string
}

func (g *greedy) run(j int, kind Kind) {
	free, m := g.end[j], 0
	start := free
	switch kind {
	case Forward:
		m = g.f[j]
		if j > 0 {
			start = max(start, g.fEnd[j-1][m])
		}
	case InputGrad:
		m = g.i[j]
		if j+1 < g.ranks {
			start = max(start, g.iEnd[j+1][m])
		}
	case WeightGrad:
		m = g.w[j]
	}
	if g.f[j] > 0 {
		g.idle[j] += start - free
	}
	g.end[j] = start + 1
	switch kind {
	case Forward:
		g.fEnd[j][m] = start + 1
		g.f[j]++
		g.memory[j]++
	case InputGrad:
		g.iEnd[j][m] = start + 1
		g.i[j]++
	case WeightGrad:
		g.w[j]++
		g.memory[j]--
	}
	g.order[j] = append(g.order[j], Part{kind, int32(j), int32(m)}.String())
}

// fill runs weights' gradients on rank j while there is time before until.
func (g *greedy) fill(j, until int) {
	for g.w[j] < g.i[j] && g.end[j] < until {
		g.run(j, WeightGrad)
	}
}

// warm runs the first microbatch and the forwards before its backward.
func (g *greedy) warm() {
	more := make([]int, g.ranks)
	for j := range g.ranks {
		g.run(j, Forward)
	}
	last := g.end[g.ranks-1] + 1
	for j := g.ranks - 2; j >= 0; j-- {
		cost := g.end[j]
		for g.f[j]+more[j] < g.microbatches && g.memory[j]+more[j] < g.ranks && cost+1 <= last {
			more[j]++
			cost++
		}
		last = max(cost, last) + 1
	}
	for j := 1; j < g.ranks; j++ {
		for more[j] > 0 && more[j] >= more[j-1] && g.f[j]+more[j] < g.microbatches {
			more[j]--
		}
	}
	for j, n := range more {
		for range n {
			g.run(j, Forward)
		}
	}
	for j := g.ranks - 1; j >= 0; j-- {
		g.run(j, InputGrad)
	}
}

// forwards says which ranks run a forward in this round.
func (g *greedy) forwards() []bool {
	runs := make([]bool, g.ranks)
	most := 0
	for _, n := range g.idle {
		most = max(most, n)
	}
	for j := range g.ranks {
		if g.f[j] == g.microbatches {
			continue
		}
		runs[j] = true
		if j+1 < g.ranks && g.f[j] >= g.f[j+1]+2 {
			next := g.end[j+1] + 2 // when the next rank could take one more
			weights := 0
			if g.memory[j] == g.ranks {
				weights = 1
			}
			runs[j] = g.end[j] < next && (g.end[j]+1+weights <= next || next-g.end[j] > most-g.idle[j])
		}
	}
	for j := g.ranks - 2; j >= 0; j-- {
		runs[j] = runs[j] && runs[j+1]
	}
	return runs
}

func greedyOrder(ranks, microbatches int) []string {
	g := &greedy{ranks: ranks, microbatches: microbatches, order: make([][]string, ranks)}
	for _, s := range []*[]int{&g.f, &g.i, &g.w, &g.memory, &g.end, &g.idle} {
		*s = make([]int, ranks)
	}
	for range ranks {
		g.fEnd, g.iEnd = append(g.fEnd, make([]int, microbatches)), append(g.iEnd, make([]int, microbatches))
	}
	g.warm()
	for m := 1; m < microbatches; m++ {
		for j, runs := range g.forwards() {
			if !runs {
				continue
			}
			for g.memory[j] == ranks {
				g.run(j, WeightGrad)
			}
			if j > 0 {
				g.fill(j, g.fEnd[j-1][g.f[j]])
			}
			g.run(j, Forward)
		}
		for j := ranks - 1; j >= 0; j-- {
			if j+1 < ranks {
				g.fill(j, g.iEnd[j+1][m])
			}
			if j == 0 && g.f[j] == microbatches {
				g.fill(j, 1<<30)
			}
			g.run(j, InputGrad)
		}
	}
	lines := make([]string, ranks)
	for j := range ranks {
		g.fill(j, 1<<30)
		lines[j] = strings.Join(g.order[j], " ")
	}
	return lines
}

func TestZeroBubbleH1IsTheAuthorsSchedule(t *testing.T) {
	for p := 1; p <= 12; p++ {
		for m := 1; m <= 3*p+2; m++ {
			want := fmt.Sprint(greedyOrder(p, m))
			var lines []string
			for _, actions := range build(t, "zb-h1", Size{Ranks: p, Microbatches: m}).ToActions() {
				lines = append(lines, strings.Join(actions, " "))
			}
			if got := fmt.Sprint(lines); got != want {
				t.Fatalf("%d ranks, %d microbatches:\n got %s\nwant %s", p, m, got, want)
			}
		}
	}
}
