package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

type schedulesSavingsCommand struct {
	Profile       []string    `short:"p" file:"" sep:"none" xor:"profile" placeholder:"P.csv" help:"The measurements, of an even number of stages without --ranks."`
	Example       bool        `xor:"profile" help:"Use a synthetic profile of 8 stages."`
	Microbatches  int         `min:"1" short:"m" default:"16" placeholder:"16" help:"Microbatches of an iteration."`
	Ranks         int         `min:"1" placeholder:"N" help:"Pipeline ranks. Without it, half as many as the profile has stages."`
	BlockingPower *unit.Power `placeholder:"W" help:"What one GPU draws while it waits, in watts; 84 with --example."`
	deriveFlag
	profileFlags
	jsonFlag
	Format string `enum:"text,markdown,json" default:"text" help:"text, markdown or json."`
}

// Help is the text of perseus schedules savings --help.
func (schedulesSavingsCommand) Help() string {
	return `Compares all schedules for the same model on the same GPUs: as many ranks as --ranks says, or half as many as the profile has stages; a rank runs its neighbouring stages as one, or as chunks where the schedule has them. What the profile lacks is derived: halves of a backward, a recomputation as a forward, an overlapped pair as its two parts. Savings are against all ops at their top clocks in the same schedule. Schedules without backward are for inference, and not to be compared with the others.

Examples:

    perseus schedules savings --example
    perseus schedules savings -p P.csv --blocking-power 83.64 -m 24 --format markdown`
}

// Run prints the table that package jobs makes.
func (c *schedulesSavingsCommand) Run(w *world) error {
	var p *profile.Profile
	blocking := 84 * unit.Watt
	switch {
	case c.Example:
		p = jobs.ExampleProfile()
	case len(c.Profile) == 0:
		return input(errors.New("--profile is missing: a CSV file of measurements; --example does without"))
	case c.BlockingPower == nil:
		return input(errors.New("--blocking-power is missing: what one GPU draws while it waits, as in --blocking-power 84"))
	default:
		options, err := c.options()
		if err != nil {
			return input(err)
		}
		if p, err = readProfiles(w, c.Profile, options); err != nil {
			return input(err)
		}
		w.say(p, nil)
	}
	rules, err := c.rules()
	if err != nil {
		return input(err)
	}
	if c.BlockingPower != nil {
		blocking = *c.BlockingPower
	}
	// All schedules run each stage's forward and backward of each microbatch.
	if err := w.large(2*p.Stages()*min(c.Microbatches, mostOps), false, false, "take fewer --microbatches"); err != nil {
		return input(err)
	}
	rows, err := jobs.Savings(w.ctx, p, c.Microbatches, blocking, c.Ranks, rules)
	if err != nil {
		return input(err)
	}
	if len(rows) == 0 {
		return input(fmt.Errorf("no schedule has such ranks and %d microbatches", c.Microbatches))
	}
	switch c.or(c.Format) {
	case "json":
		return savingsJSON(w, rows)
	case "markdown":
		for i, row := range savingsTable(rows) {
			for _, cell := range row {
				fmt.Fprintf(w.stdout, "| %s ", cell)
			}
			fmt.Fprintln(w.stdout, "|")
			if i == 0 {
				fmt.Fprintln(w.stdout, strings.Repeat("|---", len(row))+"|")
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range savingsTable(rows) {
		for _, cell := range row {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// savingsTable returns the cells of the table, its heading first.
func savingsTable(rows []jobs.ScheduleSavings) [][]string {
	cells := [][]string{{"schedule", "stages a rank", "iteration", "energy", "idle", "saved, as fast", "saved, least energy", "at", "saved, straggler ×1.2"}}
	saved := func(s report.Saving) string {
		joules := (s.Plan.BaselineEnergy - s.Plan.WaitEnergy).Joules()
		return fmt.Sprintf("%.4g J = %.1f %%", joules, 100*s.Plan.Saving.Float())
	}
	for _, r := range rows {
		h, name := r.Header, r.Schedule
		if r.Inference {
			name += " (inference)"
		}
		cells = append(cells, []string{
			name, fmt.Sprint(r.Chunks), fmt.Sprintf("%.3f s", h.MaxClockTime.Seconds()), fmt.Sprintf("%.0f J", h.MaxClockEnergy.Joules()),
			fmt.Sprintf("%.1f %%", 100*r.Idle), saved(r.Fastest), saved(r.LeastEnergy),
			fmt.Sprintf("%.3f s", r.LeastEnergy.Plan.Time.Seconds()), saved(r.Straggler),
		})
	}
	return cells
}

// savingsJSON writes the table for programs; docs/schedules.md describes the fields.
func savingsJSON(w *world, rows []jobs.ScheduleSavings) error {
	type saving struct {
		Time     unit.Time               `json:"time_s"`
		Energy   frontierfile.Nanojoules `json:"energy_j"`
		Baseline frontierfile.Nanojoules `json:"baseline_energy_j"`
		Saving   frontierfile.Ratio      `json:"saving"`
	}
	type row struct {
		Schedule       string                  `json:"schedule"`
		Inference      bool                    `json:"inference"`
		Ranks          int                     `json:"ranks"`
		Chunks         int                     `json:"chunks"`
		Microbatches   int                     `json:"microbatches"`
		MaxClockTime   unit.Time               `json:"max_clock_time_s"`
		MaxClockEnergy frontierfile.Nanojoules `json:"max_clock_energy_j"`
		Idle           float64                 `json:"idle"`
		Fastest        saving                  `json:"fastest"`
		LeastEnergy    saving                  `json:"least_energy"`
		Straggler      saving                  `json:"straggler_1.2"`
	}
	of := func(s report.Saving) saving {
		return saving{s.Plan.Time, s.Plan.WaitEnergy, s.Plan.BaselineEnergy, s.Plan.Saving}
	}
	var all []row
	for _, r := range rows {
		h := r.Header
		all = append(all, row{
			r.Schedule, r.Inference, h.Ranks, r.Chunks, h.Microbatches, h.MaxClockTime, h.MaxClockEnergy, r.Idle,
			of(r.Fastest), of(r.LeastEnergy), of(r.Straggler),
		})
	}
	e := json.NewEncoder(w.stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"schedules": all})
}
