package plan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/parallel"
)

// ErrNoGPUs is the error of writing a plan by global rank where the frontier was
// computed without being told the parallel groups.
var ErrNoGPUs = errors.New("the frontier does not say which GPUs its ranks are: compute it with the degrees of parallelism")

// GPU is a GPU of the job.
type GPU struct {
	// GlobalRank is its rank in the job, Pipeline the number of its pipeline and Rank
	// its rank there.
	GlobalRank, Pipeline, Rank int
}

// GPUs returns the GPUs that the plan is for, by global rank: those of all
// pipelines, or of the one that the frontier is of. It fails with ErrNoGPUs where
// they are not known, and where the file contradicts itself.
func (p *Plan) GPUs() ([]GPU, error) {
	g, err := layout(p.Parallel)
	if err != nil {
		return nil, err
	}
	if g.PP != len(p.Ranks) {
		return nil, fmt.Errorf("parallel: pp is %d for %d ranks", g.PP, len(p.Ranks))
	}
	var all []GPU
	for r := range g.World {
		rank, pipeline, _ := g.Place(r)
		if only := p.Parallel.Replica; only < 0 || only == pipeline {
			all = append(all, GPU{r, pipeline, rank})
		}
	}
	return all, nil
}

// layout returns the grid that a file describes.
func layout(p *frontierfile.Parallel) (*parallel.Grid, error) {
	if p == nil {
		return nil, ErrNoGPUs
	}
	g, err := parallel.New(parallel.Degrees{TP: p.TP, CP: p.CP, EP: p.EP, ETP: p.ETP, DP: p.DP, PP: p.PP}, p.RankOrder, 0)
	if err != nil {
		return nil, fmt.Errorf("parallel: %w", err)
	}
	return g, nil
}

// WriteGPUCSV writes the plan as a table with a header line, one op of one GPU a
// line, by global rank, each in execution order. GPUs of a group run each op
// together, at the same clock. It fails as GPUs does.
func (p *Plan) WriteGPUCSV(w io.Writer) error {
	gpus, err := p.GPUs()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	_, _ = out.WriteString("global_rank,pipeline,rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s\n") // Flush reports
	var line []byte
	for _, g := range gpus {
		for i := range p.Ranks[g.Rank] {
			o := &p.Ranks[g.Rank][i]
			line = line[:0]
			for _, n := range [...]int{g.GlobalRank, g.Pipeline, g.Rank, int(o.Stage), int(o.Microbatch)} {
				line = append(strconv.AppendInt(line, int64(n), 10), ',')
			}
			line = append(append(line, quoted(o.Instruction)...), ',')
			line = append(strconv.AppendInt(line, int64(o.Knobs.ClockMHz), 10), ',')
			line = append(o.Start.AppendDecimal(line), ',')
			line = append(o.Time.AppendDecimal(line), '\n')
			_, _ = out.Write(line)
		}
	}
	return out.Flush()
}

// WriteGPUZeus writes what WriteZeus does, with a list for each global rank. It
// fails as GPUs does, and where the plan is for one of several pipelines.
func (p *Plan) WriteGPUZeus(w io.Writer) error {
	gpus, err := p.GPUs()
	if err != nil {
		return err
	}
	every := *p
	every.Ranks = nil
	for i, g := range gpus {
		if g.GlobalRank != i {
			return fmt.Errorf("the frontier is of pipeline %d alone; the list needs those of all", p.Parallel.Replica)
		}
		every.Ranks = append(every.Ranks, p.Ranks[g.Rank])
	}
	if p.Parallel.Replica > 0 || p.Parallel.Replica == 0 && len(gpus) != p.Parallel.TP*p.Parallel.CP*p.Parallel.DP*p.Parallel.PP {
		return fmt.Errorf("the frontier is of pipeline %d alone; the list needs those of all", p.Parallel.Replica)
	}
	return every.WriteZeus(w)
}

// globalRanks returns for each pipeline that the plan is for the global ranks of a
// pipeline rank; nil where they are not known.
func (p *Plan) globalRanks(rank int) [][]int {
	g, err := layout(p.Parallel)
	if err != nil || g.PP != len(p.Ranks) {
		return nil
	}
	var all [][]int
	for k := range g.Replicas() {
		if only := p.Parallel.Replica; only < 0 || only == k {
			all = append(all, g.Group(rank, k))
		}
	}
	return all
}
