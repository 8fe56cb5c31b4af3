package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/perseus-energy/perseus/plan"
)

// WritePlan writes a plan's costs and savings for people, in two lines, and
// before them its note, if it has one.
func WritePlan(w io.Writer, p *plan.Plan) error {
	var b strings.Builder
	switch {
	case !p.Feasible:
		fmt.Fprintf(&b, "NOT FEASIBLE: %s\n", p.Note)
	case p.Note != "":
		fmt.Fprintf(&b, "note: %s\n", p.Note)
	}
	fmt.Fprintf(&b, "iteration %s, energy %s, average power %s; at most %.3f %% above the proven bound\n",
		Seconds(p.Time), Joules(p.Energy), Watts(p.AveragePower.Watts()), 100*p.Gap.Float())
	waiting := ""
	if p.WaitTime > p.Time {
		waiting = fmt.Sprintf(" while it waits until %s for the straggler", Seconds(p.WaitTime))
	}
	fmt.Fprintf(&b, "%s instead of %s with all ops at their top clocks%s: %s saved, iteration %s instead of %s\n",
		Joules(p.WaitEnergy), Joules(p.BaselineEnergy), waiting, Percent(p.Saving.Float()),
		Seconds(p.WaitTime), Seconds(p.BaselineTime))
	_, err := io.WriteString(w, b.String())
	return err
}
