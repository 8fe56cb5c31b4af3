package baseline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes the tables for people, the published figures beside ours.
func (t *Tables) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	k := &t.Workload
	fmt.Fprintf(b, "%s, 1f1b on %d stages, GPUs wait at %v\n", k.Name, k.Profile.Stages(), k.Blocking)
	fmt.Fprintf(b, "\nSaving at unchanged iteration time (intrinsic bloat), in %% against maximum clocks\n")
	n := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(n, "microbatches\tpublished\tits algorithm here, expected\t\treplayed\tslowdown\tperseus, fastest\tfaster by\tabove bound\tperseus, no slower\t\n")
	for _, r := range t.Rows {
		published, verdict := "-", ""
		if r.Published > 0 {
			published, verdict = fmt.Sprintf("%.2f", r.Published), "reproduced"
			if !r.Reproduced() {
				verdict = "not reproduced"
			}
		}
		expected, replayed := "-", "-"
		if r.Expected != 0 {
			expected, replayed = fmt.Sprintf("%.2f", 100*r.Expected), fmt.Sprintf("%.2f", 100*r.Replayed)
		}
		fmt.Fprintf(n, "%d\t%s\t%s\t%s\t%s\t%+.2f\t%.2f\t%.2f\t≤ %.3f\t%.2f\t\n", r.Microbatches, published, expected, verdict, replayed,
			100*r.Slowdown, 100*r.Fastest, 100*r.Speedup, 100*r.Gap, 100*r.Unchanged)
	}
	if err := n.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b, "\nSaving of a pipeline that waits for a straggler, in %% against maximum clocks that wait as well\n")
	n = tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(n, "microbatches")
	for _, f := range Factors() {
		fmt.Fprintf(n, "\tT'/T %v", f)
	}
	fmt.Fprint(n, "\tabove bound\tleast energy at T*/T\tits algorithm here: 1.2, expected\tT*/T\t\n")
	for _, r := range t.Rows {
		fmt.Fprintf(n, "%d", r.Microbatches)
		for _, s := range r.Straggler {
			fmt.Fprintf(n, "\t%.2f", 100*s)
		}
		fmt.Fprintf(n, "\t≤ %.2f\t%.3f\t%.2f\t%.3f\t\n", 100*r.WorstGap, r.LeastEnergy, 100*r.PublishedStraggler, r.PublishedTStar)
	}
	if err := n.Flush(); err != nil {
		return err
	}
	if p := k.Published; p != nil {
		fmt.Fprintf(b, "published, 96 microbatches: %.2f at T'/T 1.2, least energy at T*/T %.2f\n", p.Straggler, p.Slowest)
		fmt.Fprintf(b, explanation, milliseconds(k.Tau), k.Scale)
	}
	fmt.Fprintln(b)
	return b.Flush()
}

// explanation says where the differences come from. docs/compare.md has the
// figures behind it.
const explanation = `
Why they differ: the published figures are what the published algorithm expects by its exponential curves (τ = 1 ms of
the job, %s of this profile, which is 1/%d of a stage), not what its clocks use by the measurements ("replayed"): that is
less where a curve flatters the fast end, more where it does the reverse. With a straggler the published plans go no slower
than their least total energy (T*), although waiting is paid anyway. Perseus here uses the measured options themselves
and every nanosecond, and its figures are replayed ones.
`

// WriteText writes the emulation for people.
func (l *LargeScale) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s, strong scaling, global batch %d; savings in %% against maximum clocks\n", l.Workload.Name, GlobalBatch)
	n := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(n, "GPUs\tpipelines\tmicrobatches\tops\titeration\tmax clocks\tpower\tmax clocks\tsaving\tone pipeline ×%v\t\n", l.Factor)
	for _, r := range l.Rows {
		fmt.Fprintf(n, "%d\t%d\t%d\t%d\t%.2f s\t%.2f s\t%.0f kW\t%.0f kW\t%.2f\t%.2f\t\n", r.GPUs, r.Pipelines, r.Microbatches, r.Ops,
			r.Time, r.MaxTime, r.Power/1e3, r.MaxPower/1e3, 100*r.Saving, 100*r.Straggler)
	}
	if err := n.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(b)
	return b.Flush()
}

// WriteJSON writes tables and emulations for programs; either may be empty.
func WriteJSON(w io.Writer, tables []*Tables, scale []*LargeScale) error {
	type row struct {
		Microbatches int       `json:"microbatches"`
		Fastest      float64   `json:"saving_percent"`
		Speedup      float64   `json:"faster_percent"`
		Gap          float64   `json:"gap"`
		Unchanged    float64   `json:"saving_no_slower_percent"`
		Expected     float64   `json:"published_algorithm_expected_percent"`
		Replayed     float64   `json:"published_algorithm_replayed_percent"`
		Slowdown     float64   `json:"published_algorithm_slowdown_percent"`
		Published    float64   `json:"published_percent,omitempty"`
		Reproduced   *bool     `json:"reproduced,omitempty"`
		Straggler    []float64 `json:"straggler_saving_percent"`
		Expected12   float64   `json:"published_algorithm_straggler_1_2_expected_percent,omitempty"`
		TStar        float64   `json:"published_algorithm_tstar_over_tmin,omitempty"`
		LeastEnergy  float64   `json:"least_energy_over_least_time"`
		Slowest      float64   `json:"slowest_over_least_time"`
	}
	type workload struct {
		Name      string  `json:"workload"`
		Rows      []row   `json:"rows"`
		Straggler float64 `json:"published_straggler_1_2_saving_percent,omitempty"`
		TStar     float64 `json:"published_tstar_over_tmin,omitempty"`
	}
	type scaleRow struct {
		GPUs         int     `json:"gpus"`
		Pipelines    int     `json:"pipelines"`
		Microbatches int     `json:"microbatches"`
		Time         float64 `json:"time_s"`
		MaxTime      float64 `json:"max_clock_time_s"`
		Power        float64 `json:"power_w"`
		MaxPower     float64 `json:"max_clock_power_w"`
		Saving       float64 `json:"saving_percent"`
		Straggler    float64 `json:"straggler_saving_percent"`
	}
	type emulation struct {
		Name   string     `json:"workload"`
		Factor float64    `json:"straggler"`
		Rows   []scaleRow `json:"rows"`
	}
	out := struct {
		Factors   []float64   `json:"straggler_factors,omitempty"`
		Workloads []workload  `json:"tables,omitempty"`
		Scale     []emulation `json:"large_scale,omitempty"`
	}{}
	for _, t := range tables {
		k := workload{Name: t.Workload.Name}
		if p := t.Workload.Published; p != nil {
			k.Straggler, k.TStar = p.Straggler, p.Slowest
		}
		for _, r := range t.Rows {
			v := row{
				r.Microbatches, 100 * r.Fastest, 100 * r.Speedup, r.Gap, 100 * r.Unchanged,
				100 * r.Expected, 100 * r.Replayed, 100 * r.Slowdown, r.Published, nil, nil,
				100 * r.PublishedStraggler, r.PublishedTStar, r.LeastEnergy, r.Slowest,
			}
			if r.Published > 0 {
				reproduced := r.Reproduced()
				v.Reproduced = &reproduced
			}
			for _, s := range r.Straggler {
				v.Straggler = append(v.Straggler, 100*s)
			}
			k.Rows = append(k.Rows, v)
		}
		out.Workloads = append(out.Workloads, k)
	}
	if len(tables) > 0 {
		for _, f := range Factors() {
			out.Factors = append(out.Factors, float64(f)/1e9)
		}
	}
	for _, l := range scale {
		e := emulation{Name: l.Workload.Name, Factor: float64(l.Factor) / 1e9}
		for _, r := range l.Rows {
			e.Rows = append(e.Rows, scaleRow{r.GPUs, r.Pipelines, r.Microbatches, r.Time, r.MaxTime, r.Power, r.MaxPower, 100 * r.Saving, 100 * r.Straggler})
		}
		out.Scale = append(out.Scale, e)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
