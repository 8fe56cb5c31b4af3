package baseline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/plan"
)

// WriteText writes a comparison for people.
func (c *Comparison) WriteText(w io.Writer) error {
	b, h := bufio.NewWriter(w), &c.Frontier.Header
	fmt.Fprintf(b, "%s, %d ranks, %d microbatches; savings and slowdowns are against all ops at their top clocks: %.3f s, %.6g J\n",
		h.Schedule, h.Ranks, h.Microbatches, c.Max.Time.Seconds(), c.Max.Energy.Joules())
	if c.Pipelines > 1 {
		fmt.Fprintf(b, "energies are of the whole job: %d pipelines, %d GPUs\n", c.Pipelines, c.Pipelines*c.Pipeline.GPUs())
	}
	if !c.Pipeline.Complete {
		fmt.Fprintln(b, "from the frontier alone, which has only the useful clocks: with --profile, baselines use every measured one")
	}
	fmt.Fprintln(b)
	n := float64(c.Pipelines)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "method\t\ttime\tenergy\tsaving\tslowdown\tperseus at that time\tsaving\tabove bound\t\n")
	for _, l := range c.Own {
		fmt.Fprintf(t, "%s\t%s\t%.3f s\t%.1f J\t%.2f %%\t%+.2f %%\t\t\t%s\t\n", l.Method, l.Setting,
			l.Cost.Time.Seconds(), n*l.Cost.Energy.Joules(), 100*l.Saving, 100*l.Slowdown, aboveBound(l.Ours))
	}
	for _, l := range c.Lines {
		if l.Schedule == nil {
			fmt.Fprintf(t, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t\n", l.Method, l.Setting)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%.3f s\t%.1f J\t%.2f %%\t%+.2f %%\t%.1f J\t%.2f %%\t%s\t\n", l.Method, l.Setting,
			l.Cost.Time.Seconds(), n*l.Cost.Energy.Joules(), 100*l.Saving, 100*l.Slowdown,
			n*l.Ours.Energy.Joules(), 100*l.OursSaving, aboveBound(l.Ours))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c.writeNotes(b)
	c.writeNoise(b)
	return b.Flush()
}

func aboveBound(p *Plan) string {
	if p.Optimal() {
		return "none: optimal"
	}
	return fmt.Sprintf("≤ %.4f %%", 100*p.Gap())
}

func (c *Comparison) writeNotes(w io.Writer) {
	fmt.Fprintln(w, "\n\"above bound\": no schedule of the same time uses less energy than this plan by more than that; \"optimal\": none uses less at all.")
	for _, l := range c.Lines {
		if l.Note != "" {
			fmt.Fprintf(w, "%s: %s.\n", l.Method, l.Note)
		}
		if l.Worse {
			fmt.Fprintf(w, "FAULT: %s, %s, uses less energy than perseus at the same time, %.9f J less. Please report it.\n", l.Method, l.Setting, l.Ours.Energy.Joules()-l.Cost.Energy.Joules())
		}
		if l.Known > 0 {
			fmt.Fprintf(w, "%s: it expects to save %.2f %% by its fitted curves; published were %.2f %%: %s.\n", l.Method, 100*l.PlannedSaving, l.Known, verdict(l.PlannedSaving, l.Known))
			fmt.Fprintf(w, "%s: replayed on the measurements its clocks save %.2f %% at a slowdown of %.2f %%: as such %s.\n", l.Method, 100*l.Saving, 100*l.Slowdown, verdict(l.Saving, l.Known))
		}
	}
}

func verdict(saving, known float64) string {
	if math.Abs(100*saving-known) <= reproduced {
		return "reproduced"
	}
	return fmt.Sprintf("not reproduced, %+.2f points off", 100*saving-known)
}

func (c *Comparison) writeNoise(w io.Writer) {
	if len(c.Noise) == 0 {
		return
	}
	fmt.Fprintln(w, "\nunder noise, against maximum clocks under the same noise:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "plan\tmargin\tplanned\tmean time\tslowdown\tsaving\t\n")
	for _, n := range c.Noise {
		fmt.Fprintf(t, "%s\t%s\t%.3f s\t%.3f s\t%+.3f %%\t%.2f %%\t\n", n.Name, n.Margin.Percent(), n.Planned.Seconds(), n.Mean.Seconds(), 100*n.Slowdown, 100*n.Saving)
	}
	_ = t.Flush() // the writer below reports
}

// jsonLine is a line of a comparison in JSON. docs/compare.md describes the
// fields.
type jsonLine struct {
	Method        Method   `json:"method"`
	Setting       string   `json:"setting"`
	Time          *float64 `json:"time_s,omitempty"`
	Energy        *float64 `json:"energy_j,omitempty"`
	Saving        *float64 `json:"saving_percent,omitempty"`
	Slowdown      *float64 `json:"slowdown_percent,omitempty"`
	OursTime      *float64 `json:"perseus_time_s,omitempty"`
	OursEnergy    *float64 `json:"perseus_energy_j,omitempty"`
	OursSaving    *float64 `json:"perseus_saving_percent,omitempty"`
	Bound         *float64 `json:"perseus_bound_j,omitempty"`
	Gap           *float64 `json:"perseus_gap,omitempty"`
	Effort        string   `json:"perseus_effort,omitempty"`
	Optimal       bool     `json:"perseus_proven_optimal,omitempty"`
	Worse         bool     `json:"perseus_is_worse,omitempty"`
	PlannedSaving *float64 `json:"expected_saving_percent,omitempty"`
	Known         *float64 `json:"published_saving_percent,omitempty"`
	Reproduced    *bool    `json:"reproduced,omitempty"`
	AsReplayed    *bool    `json:"reproduced_as_replayed,omitempty"`
	Note          string   `json:"note,omitempty"`
}

// WriteJSON writes a comparison for programs.
func (c *Comparison) WriteJSON(w io.Writer) error {
	type noisy struct {
		Name     string     `json:"plan"`
		Margin   plan.Ratio `json:"margin"`
		Planned  float64    `json:"planned_time_s"`
		Mean     float64    `json:"mean_time_s"`
		Slowdown float64    `json:"slowdown_percent"`
		Saving   float64    `json:"saving_percent"`
	}
	out := struct {
		Schedule     string     `json:"schedule"`
		Ranks        int        `json:"ranks"`
		Microbatches int        `json:"microbatches"`
		Pipelines    int        `json:"pipelines"`
		GPUs         int        `json:"gpus"`
		Complete     bool       `json:"all_clocks"`
		MaxTime      float64    `json:"max_clock_time_s"`
		MaxEnergy    float64    `json:"max_clock_energy_j"`
		Lines        []jsonLine `json:"lines"`
		Noise        []noisy    `json:"noise,omitempty"`
	}{
		c.Frontier.Header.Schedule, c.Pipeline.Ranks(), c.Frontier.Header.Microbatches, c.Pipelines, c.Pipelines * c.Pipeline.GPUs(), c.Pipeline.Complete,
		c.Max.Time.Seconds(), float64(c.Pipelines) * c.Max.Energy.Joules(), nil, nil,
	}
	for _, l := range append(append([]Line(nil), c.Own...), c.Lines...) {
		out.Lines = append(out.Lines, l.json(float64(c.Pipelines)))
	}
	for _, n := range c.Noise {
		out.Noise = append(out.Noise, noisy{n.Name, n.Margin, n.Planned.Seconds(), n.Mean.Seconds(), 100 * n.Slowdown, 100 * n.Saving})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func (l *Line) json(pipelines float64) jsonLine {
	p := func(v float64) *float64 { return &v }
	j := jsonLine{Method: l.Method, Setting: l.Setting, Note: l.Note, Worse: l.Worse}
	if l.Schedule == nil {
		return j
	}
	j.Time, j.Energy = p(l.Cost.Time.Seconds()), p(pipelines*l.Cost.Energy.Joules())
	j.Saving, j.Slowdown = p(100*l.Saving), p(100*l.Slowdown)
	if o := l.Ours; o != nil {
		j.OursTime, j.OursEnergy, j.OursSaving = p(o.Time.Seconds()), p(pipelines*o.Energy.Joules()), p(100*l.OursSaving)
		j.Bound, j.Gap, j.Optimal = p(pipelines*o.Bound.Joules()), p(o.Gap()), o.Optimal()
		j.Effort = o.Effort.String()
	}
	if l.Planned > 0 {
		j.PlannedSaving = p(100 * l.PlannedSaving)
	}
	if l.Known > 0 {
		expected, replayed := l.Reproduced(), math.Abs(100*l.Saving-l.Known) <= reproduced
		j.Known, j.Reproduced, j.AsReplayed = p(l.Known), &expected, &replayed
	}
	return j
}
