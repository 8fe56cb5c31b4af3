package simulate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/unit"
)

// Summary is what several iterations of a job came to.
type Summary struct {
	// Iterations has the time and energy of each.
	Iterations []IterationCost
	// Last is the last iteration; it belongs to the simulator.
	Last *Iteration
	// Causes are those of each pipeline in the last iteration, nil where they were
	// not asked for.
	Causes []Causes
}

// IterationCost is what an iteration took, all pipelines together.
type IterationCost struct {
	Begin, Time unit.Time
	Energy      unit.Energy128
}

// Summarize runs a number of iterations. With causes it walks a frontier for each
// pipeline whose time differs from those before it.
func (s *Simulator) Summarize(iterations int, causes bool) (*Summary, error) {
	v := &Summary{}
	for range max(iterations, 1) {
		v.Last = s.Next()
		v.Iterations = append(v.Iterations, IterationCost{v.Last.Begin, v.Last.Time, v.Last.Energy()})
	}
	if !causes {
		return v, nil
	}
	type key struct {
		pipeline *Pipeline
		time     unit.Time
	}
	extrinsic := map[key]Causes{}
	done := v.Last.Time - v.Last.Optimizer
	for _, t := range v.Last.Timelines {
		k := key{t.Schedule.Pipeline, t.Time}
		c, ok := extrinsic[k]
		var err error
		if !ok {
			if c, err = t.Causes(done); err != nil {
				return nil, err
			}
			extrinsic[k] = c
		} else {
			c = t.like(c)
		}
		v.Causes = append(v.Causes, c)
	}
	return v, nil
}

// like returns the causes of a timeline whose bounds and fixed work are those of
// another one: of the same pipeline and of the same time.
func (t *Timeline) like(other Causes) Causes {
	sum := t.Sum()
	c := Causes{
		Compute: sum.Compute, Fixed: sum.FixedEnergy, Blocking: sum.Blocking, Total: sum.Energy(),
		Needed: other.Needed, Extrinsic: other.Extrinsic,
	}
	c.Intrinsic = c.Total.Sub(c.Needed).Sub(c.Extrinsic)
	return c
}

// mean returns the mean time and energy of the iterations, for display.
func (s *Summary) mean() (seconds, joules float64) {
	for _, i := range s.Iterations {
		seconds += i.Time.Seconds()
		joules += i.Energy.Joules()
	}
	n := float64(len(s.Iterations))
	return seconds / n, joules / n
}

// WriteText writes a summary for people; the ranks are those of one pipeline.
func (s *Summary) WriteText(w io.Writer, pipeline int) error {
	b := bufio.NewWriter(w)
	seconds, joules := s.mean()
	pipelines, gpus := 0, 0
	for _, t := range s.Last.Timelines {
		pipelines += t.Copies
		gpus += t.Copies * t.Schedule.GPUs()
	}
	first := s.Last.Timelines[0].Schedule
	fmt.Fprintf(b, "%s, %s, %d microbatches: %d pipeline(s) on %d GPUs\n", s.plans(), first.Order.Schedule, first.Order.Size.Microbatches, pipelines, gpus)
	if n := len(s.Iterations); n > 1 {
		fastest, slowest := s.Iterations[0].Time, s.Iterations[0].Time
		for _, i := range s.Iterations {
			fastest, slowest = min(fastest, i.Time), max(slowest, i.Time)
		}
		fmt.Fprintf(b, "%d iterations of %.6g s on average (%.6g … %.6g s), %.6g J each, %.5g W on average; below is the last one\n", n, seconds, fastest.Seconds(), slowest.Seconds(), joules, joules/seconds)
	} else {
		fmt.Fprintf(b, "iteration %.6g s, energy %.9g J, %.5g W on average\n", seconds, joules, joules/seconds)
	}
	s.writeKinds(b)
	t := s.Last.Timelines[pipeline]
	fmt.Fprintf(b, "\npipeline %d: done after %.6g s\n", pipeline, t.Time.Seconds())
	n := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(n, "rank\tbusy\tfixed\tblocked\tfor slower pipelines\tcompute\tfixed\tblocking\tswitches\t\n")
	row := func(name string, u *Usage) {
		fmt.Fprintf(n, "%s\t%.4f s\t%.4f s\t%.4f s\t%.4f s\t%.1f J\t%.1f J\t%.1f J\t%d\t\n", name, u.Busy.Seconds(), u.Fixed.Seconds(), u.Blocked.Seconds(), u.After.Seconds(),
			u.Compute.Joules(), u.FixedEnergy.Joules(), u.Blocking.Joules(), u.Switches)
	}
	for r := range t.Ranks {
		row(strconv.Itoa(r), &t.Ranks[r])
	}
	sum := t.Sum()
	row("all", &sum)
	if err := n.Flush(); err != nil {
		return err
	}
	if s.Causes != nil {
		c := &s.Causes[pipeline]
		share := func(e unit.Energy128) string {
			return fmt.Sprintf("%.1f J (%.2f %%)", e.Joules(), 100*e.Joules()/c.Total.Joules())
		}
		fmt.Fprintf(b, "\nby what GPUs do:  compute %s, fixed %s, blocking %s\n", share(c.Compute), share(c.Fixed), share(c.Blocking))
		fmt.Fprintf(b, "by what it buys:  needed %s, intrinsic bloat %s, extrinsic bloat %s\n", share(c.Needed), share(c.Intrinsic), share(c.Extrinsic))
	}
	return b.Flush()
}

// plans returns the names of what runs, those of the first pipelines first.
func (s *Summary) plans() string {
	var names []string
	for _, t := range s.Last.Timelines {
		if !slices.Contains(names, t.Schedule.Name) {
			names = append(names, t.Schedule.Name)
		}
	}
	return strings.Join(names, " and ")
}

// maxKinds bounds the lines about pipelines.
const maxKinds = 16

// writeKinds writes a line for each few neighbouring pipelines that do the same,
// where not all do.
func (s *Summary) writeKinds(b *bufio.Writer) {
	all := s.Last.Timelines
	same := func(i, k int) bool {
		return all[i].Schedule == all[k].Schedule && all[i].Time == all[k].Time && all[i].Sum() == all[k].Sum()
	}
	var starts []int
	for i := range all {
		if i == 0 || !same(i-1, i) {
			starts = append(starts, i)
		}
	}
	if len(starts) == 1 {
		return
	}
	fmt.Fprintln(b)
	for k, from := range starts {
		if k == maxKinds {
			fmt.Fprintf(b, "pipelines %d–%d: not listed\n", from, len(all)-1)
			break
		}
		to, name := len(all), fmt.Sprintf("pipeline %d", from)
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		each := ""
		if to > from+1 {
			name, each = fmt.Sprintf("pipelines %d–%d", from, to-1), " each"
		}
		t := all[from]
		sum := t.Sum()
		fmt.Fprintf(b, "%s: %s, done after %.6g s, %.6g J%s\n", name, t.Schedule.Name, t.Time.Seconds(), sum.Energy().Joules(), each)
	}
}

// jsonRank and the others below are the JSON form of a summary. docs/simulate.md
// describes the fields.
type jsonRank struct {
	Busy     float64 `json:"busy_s"`
	Fixed    float64 `json:"fixed_s"`
	Blocked  float64 `json:"blocked_s"`
	After    float64 `json:"blocked_for_slower_pipelines_s"`
	Compute  float64 `json:"compute_j"`
	FixedJ   float64 `json:"fixed_j"`
	Blocking float64 `json:"blocking_j"`
	Switches int     `json:"clock_switches"`
}

type jsonPipeline struct {
	Pipelines int        `json:"pipelines"`
	Plan      string     `json:"plan"`
	Time      unit.Time  `json:"time_s"`
	Energy    float64    `json:"energy_j"`
	Needed    *float64   `json:"needed_j,omitempty"`
	Intrinsic *float64   `json:"intrinsic_bloat_j,omitempty"`
	Extrinsic *float64   `json:"extrinsic_bloat_j,omitempty"`
	Sum       jsonRank   `json:"sum"`
	Ranks     []jsonRank `json:"ranks"`
}

func rankJSON(u *Usage) jsonRank {
	return jsonRank{
		u.Busy.Seconds(), u.Fixed.Seconds(), u.Blocked.Seconds(), u.After.Seconds(),
		u.Compute.Joules(), u.FixedEnergy.Joules(), u.Blocking.Joules(), u.Switches,
	}
}

// WriteJSON writes a summary for programs.
func (s *Summary) WriteJSON(w io.Writer) error {
	type iteration struct {
		Begin  unit.Time `json:"begin_s"`
		Time   unit.Time `json:"time_s"`
		Energy float64   `json:"energy_j"`
	}
	seconds, joules := s.mean()
	out := struct {
		Time       float64        `json:"time_s"`
		Energy     float64        `json:"energy_j"`
		Power      float64        `json:"average_power_w"`
		Iterations []iteration    `json:"iterations"`
		Pipelines  []jsonPipeline `json:"pipelines"`
	}{Time: seconds, Energy: joules, Power: joules / seconds}
	for _, i := range s.Iterations {
		out.Iterations = append(out.Iterations, iteration{i.Begin, i.Time, i.Energy.Joules()})
	}
	for k, t := range s.Last.Timelines {
		sum := t.Sum()
		p := jsonPipeline{Pipelines: t.Copies, Plan: t.Schedule.Name, Time: t.Time, Energy: sum.Energy().Joules(), Sum: rankJSON(&sum)}
		for r := range t.Ranks {
			p.Ranks = append(p.Ranks, rankJSON(&t.Ranks[r]))
		}
		if s.Causes != nil {
			c := &s.Causes[k]
			v := [3]float64{c.Needed.Joules(), c.Intrinsic.Joules(), c.Extrinsic.Joules()}
			p.Needed, p.Intrinsic, p.Extrinsic = &v[0], &v[1], &v[2]
		}
		out.Pipelines = append(out.Pipelines, p)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// WriteCSV writes the timelines of an iteration, an op a line, with a header line.
// Times count from the iteration's beginning; all numbers are exact.
func (n *Iteration) WriteCSV(w io.Writer) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString("pipeline,rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s,energy_j\n") // Flush reports
	var line []byte
	for d, t := range n.Timelines {
		op := int32(0)
		for rank, a := range t.Schedule.Order.All() { // ops that occupy no GPU come after these
			line = line[:0]
			for _, v := range [4]int64{int64(d), int64(rank), int64(a.Stage), int64(a.Microbatch)} {
				line = append(strconv.AppendInt(line, v, 10), ',')
			}
			line = append(line, t.Schedule.OpName(op)...)
			line = append(line, ',')
			line = strconv.AppendInt(line, int64(t.Schedule.Option[op].Knobs.ClockMHz), 10)
			for _, v := range [3]json.Marshaler{t.Start[op], t.Duration[op], t.Energy[op]} {
				text, _ := v.MarshalJSON() // units never fail
				line = append(append(line, ','), text...)
			}
			line = append(line, '\n')
			_, _ = out.Write(line)
			op++
		}
	}
	return out.Flush()
}
