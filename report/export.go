package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Title returns a short name for a frontier.
func Title(f *frontierfile.File) string {
	h := &f.Header
	if h.Graph != nil {
		return fmt.Sprintf("graph, %s, %s", Count(h.Ranks, "resource"), Count(h.Ops, "op"))
	}
	return fmt.Sprintf("%s, %s, %s", h.Schedule, Count(h.Ranks, "rank"), Count(h.Microbatches, "microbatch"))
}

// WriteCSV writes the costs of all points as a table with a header line, fastest
// first, in the exact decimals of the file.
func WriteCSV(w io.Writer, f *frontierfile.File) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "time_s,relaxed_time_s,energy_j,effective_energy_j,bound_j,gap,price_w")
	var line []byte
	for i := range f.Points {
		p := &f.Points[i]
		line = line[:0]
		for _, v := range [...]interface{ AppendDecimal([]byte) []byte }{p.Time, p.RelaxedTime, p.Energy, p.Effective, p.Bound, p.Gap, p.Price} {
			line = append(v.AppendDecimal(line), ',')
		}
		line[len(line)-1] = '\n'
		_, _ = b.Write(line) // Flush reports
	}
	return b.Flush()
}

type summaryJSON struct {
	Schedule      string    `json:"schedule"`
	Ranks         int       `json:"ranks"`
	GPUsPerRank   int       `json:"gpus_per_rank"`
	Stages        int       `json:"stages"`
	Microbatches  int       `json:"microbatches"`
	ProfileSHA256 string    `json:"profile_sha256"`
	Points        int       `json:"points"`
	TMin          unit.Time `json:"t_min_s"`
	TMax          unit.Time `json:"t_max_s"`
	// LeastEnergyTime is that of the relaxed problem; the schedule's is in Savings.
	LeastEnergyTime unit.Time               `json:"least_energy_time_s"`
	MaxClockTime    unit.Time               `json:"max_clock_time_s"`
	MaxClockEnergy  frontierfile.Nanojoules `json:"max_clock_energy_j"`
	Savings         []savingJSON            `json:"savings"`
}

type savingJSON struct {
	Situation      string                  `json:"situation"`
	Straggler      *plan.Ratio             `json:"straggler,omitempty"`
	Time           unit.Time               `json:"time_s"`
	WaitTime       unit.Time               `json:"wait_time_s"`
	WaitEnergy     frontierfile.Nanojoules `json:"wait_energy_j"`
	BaselineTime   unit.Time               `json:"baseline_time_s"`
	BaselineEnergy frontierfile.Nanojoules `json:"baseline_energy_j"`
	Saving         frontierfile.Ratio      `json:"saving"`
	Gap            frontierfile.Ratio      `json:"gap"`
	Interval       *intervalJSON           `json:"saving_interval,omitempty"`
}

type intervalJSON struct {
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Level     float64 `json:"level"`
	Resamples int     `json:"resamples"`
}

// WriteJSON writes the landmarks and savings of a frontier, with the intervals
// if they are known.
func WriteJSON(w io.Writer, f *frontierfile.File, intervals []Interval) error {
	rows, err := Savings(f)
	if err != nil {
		return err
	}
	h := &f.Header
	s := summaryJSON{
		Schedule: h.Schedule, Ranks: h.Ranks, GPUsPerRank: h.GPUsPerRank, Stages: h.Stages,
		Microbatches: h.Microbatches, ProfileSHA256: h.Profile.SHA256, Points: len(f.Points),
		TMin: h.TMin, TMax: h.TMax, LeastEnergyTime: h.LeastEnergyTime,
		MaxClockTime: h.MaxClockTime, MaxClockEnergy: h.MaxClockEnergy,
	}
	for i, r := range rows {
		p := r.Plan
		row := savingJSON{
			Situation: r.Situation, Time: p.Time, WaitTime: p.WaitTime, WaitEnergy: p.WaitEnergy,
			BaselineTime: p.BaselineTime, BaselineEnergy: p.BaselineEnergy, Saving: p.Saving, Gap: p.Gap,
		}
		if r.Straggler > 0 {
			row.Straggler = &r.Straggler
		}
		if i < len(intervals) {
			row.Interval = (*intervalJSON)(&intervals[i])
		}
		s.Savings = append(s.Savings, row)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// WriteSummary writes what a frontier came from and is worth, in a few lines;
// profiled are the lines of the profile's report. O(points).
func WriteSummary(w io.Writer, f *frontierfile.File, profiled []string) error {
	h := &f.Header
	fastest := &f.Points[0]
	least := slices.MinFunc(f.Points, func(a, b frontierfile.Point) int { return cmp.Compare(a.Energy, b.Energy) })
	var b strings.Builder
	for _, line := range profiled {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "%s: %s from %s to %s\n", Title(f), Count(len(f.Points), "point"), Seconds(h.TMin), Seconds(h.TMax))
	fmt.Fprintf(&b, "top clocks    %s  %s\n", Seconds(h.MaxClockTime), Joules(h.MaxClockEnergy))
	fmt.Fprintf(&b, "fastest       %s  %s  %s saved\n", Seconds(fastest.Time), Joules(fastest.Energy), Percent(share(fastest.Energy, h.MaxClockEnergy)))
	fmt.Fprintf(&b, "least energy  %s  %s  %s saved\n", Seconds(least.Time), Joules(least.Energy), Percent(share(least.Energy, h.MaxClockEnergy)))
	_, err := io.WriteString(w, b.String())
	return err
}
