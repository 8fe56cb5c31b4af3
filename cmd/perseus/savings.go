package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

type schedulesSavingsCommand struct {
	Profile       []string    `short:"p" file:"" sep:"none" xor:"profile" placeholder:"P.csv" help:"The measurements, of an even number of stages."`
	Example       bool        `xor:"profile" help:"Use a synthetic profile of 8 stages."`
	Microbatches  int         `short:"m" default:"16" placeholder:"16" help:"Microbatches of an iteration."`
	BlockingPower *unit.Power `placeholder:"W" help:"What one GPU draws while it waits, in watts; 84 with --example."`
	deriveFlag
	profileFlags
	Format string `enum:"text,markdown" default:"text" help:"text or markdown."`
}

// Help is the text of perseus schedules savings --help.
func (schedulesSavingsCommand) Help() string {
	return `Compares all schedules for the same model on the same GPUs: half as many ranks as the profile has stages; a rank runs two neighbouring stages as one, or as two chunks where the schedule has them. What the profile lacks is derived: halves of a backward, a recomputation as a forward, an overlapped pair as its two parts. Savings are against all ops at their top clocks in the same schedule.

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
	if c.Microbatches < 1 {
		return input(fmt.Errorf("--microbatches %d: at least 1 is needed", c.Microbatches))
	}
	rows, err := jobs.Savings(w.ctx, p, c.Microbatches, blocking, rules)
	if err != nil {
		return input(err)
	}
	if len(rows) == 0 {
		return input(fmt.Errorf("no schedule has %d ranks and %d microbatches", p.Stages()/2, c.Microbatches))
	}
	cells := [][]string{{"schedule", "stages a rank", "iteration", "energy", "idle", "saved, as fast", "saved, least energy", "at", "saved, straggler ×1.2"}}
	for _, r := range rows {
		h := r.Header
		cells = append(cells, []string{
			r.Schedule, fmt.Sprint(r.Chunks), fmt.Sprintf("%.3f s", h.MaxClockTime.Seconds()), fmt.Sprintf("%.0f J", h.MaxClockEnergy.Joules()),
			fmt.Sprintf("%.1f %%", 100*r.Idle), fmt.Sprintf("%.1f %%", 100*r.Fastest.Plan.Saving.Float()),
			fmt.Sprintf("%.1f %%", 100*r.LeastEnergy.Plan.Saving.Float()), fmt.Sprintf("%.3f s", r.LeastEnergy.Plan.Time.Seconds()),
			fmt.Sprintf("%.1f %%", 100*r.Straggler.Plan.Saving.Float()),
		})
	}
	if c.Format == "markdown" {
		for i, row := range cells {
			for _, cell := range row {
				fmt.Fprintf(w.stdout, "| %s ", cell)
			}
			fmt.Fprintln(w.stdout, "|")
			if i == 0 {
				fmt.Fprintln(w.stdout, "|---|---|---|---|---|---|---|---|---|")
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range cells {
		for _, cell := range row {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
