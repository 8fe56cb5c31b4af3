package simulate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteText writes a calibration for people.
func (c *Calibration) WriteText(w io.Writer) error {
	b, e := bufio.NewWriter(w), c.Errors()
	fmt.Fprintf(b, "%s on %s: %s, %d stages, %d microbatches; %d measured plans\n",
		or(c.First.Workload, "workload"), or(c.First.GPU, "GPU"), c.First.Schedule, c.First.Ranks, c.First.Microbatches, len(c.Plans))
	fmt.Fprintf(b, "overhead of an iteration, fitted on plan %d alone: %.3f s\n", c.Plan, c.Overhead.Seconds())
	fmt.Fprintf(b, "error of the predicted iteration times: mean %.3f %%, max %.3f %% (plan %d); without calibration: mean %.3f %%\n",
		100*e.Others, 100*e.Max, e.Worst, 100*e.Uncalibrated)
	switch {
	case c.Overhead < 0:
		fmt.Fprintf(b, "DOES NOT FIT: the measured iteration is shorter than its own ops one after another: other order of ops, or op times of another run\n")
	case !e.Fits():
		fmt.Fprintf(b, "DOES NOT FIT: expected a mean of at most %.1f %% and a maximum of %.1f %%; a constant overhead does not explain this workload\n", 100*FitsMean, 100*FitsMax)
	}
	fmt.Fprintln(b)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "plan\tops alone\tpredicted\tmeasured\terror\t\n")
	for _, p := range c.Plans {
		note := ""
		if p.Plan == c.Plan {
			note = "  calibrated here"
		}
		fmt.Fprintf(t, "%d\t%.3f s\t%.3f s\t%.3f s\t%+.3f %%\t%s\n", p.Plan, p.Replayed.Seconds(), p.Predicted.Seconds(), p.Measured.Seconds(),
			100*(p.Predicted-p.Measured).Seconds()/p.Measured.Seconds(), note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return b.Flush()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// WriteJSON writes a calibration for programs. docs/simulate.md describes the
// fields.
func (c *Calibration) WriteJSON(w io.Writer) error {
	e := c.Errors()
	type plan struct {
		Plan      int     `json:"plan"`
		Predicted float64 `json:"predicted_s"`
		Measured  float64 `json:"measured_s"`
		Replayed  float64 `json:"uncalibrated_s"`
		Energy    float64 `json:"measured_energy_j,omitempty"`
	}
	out := struct {
		Workload     string  `json:"workload,omitempty"`
		GPU          string  `json:"gpu,omitempty"`
		Schedule     string  `json:"schedule"`
		Ranks        int     `json:"ranks"`
		Microbatches int     `json:"microbatches"`
		Calibrated   int     `json:"calibrated_on_plan"`
		Overhead     float64 `json:"overhead_s"`
		Fits         bool    `json:"fits"`
		Mean         float64 `json:"mean_error_percent"`
		Max          float64 `json:"max_error_percent"`
		Others       float64 `json:"mean_error_of_other_plans_percent"`
		Uncalibrated float64 `json:"uncalibrated_mean_error_percent"`
		Plans        []plan  `json:"plans"`
	}{
		c.First.Workload, c.First.GPU, c.First.Schedule, c.First.Ranks, c.First.Microbatches,
		c.Plan, c.Overhead.Seconds(), e.Fits() && c.Overhead >= 0, 100 * e.Mean, 100 * e.Max, 100 * e.Others, 100 * e.Uncalibrated, nil,
	}
	for _, p := range c.Plans {
		out.Plans = append(out.Plans, plan{p.Plan, p.Predicted.Seconds(), p.Measured.Seconds(), p.Replayed.Seconds(), p.Energy.Joules()})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
