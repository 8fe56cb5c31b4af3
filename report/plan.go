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
		seconds(p.Time), joules(p.Energy), watts(p.AveragePower.Watts()), 100*p.Gap.Float())
	waiting := ""
	if p.WaitTime > p.Time {
		waiting = fmt.Sprintf(" while it waits until %s for the straggler", seconds(p.WaitTime))
	}
	fmt.Fprintf(&b, "%s instead of %s with all ops at their top clocks%s: %s saved, iteration %s instead of %s\n",
		joules(p.WaitEnergy), joules(p.BaselineEnergy), waiting, percent(p.Saving.Float()),
		seconds(p.WaitTime), seconds(p.BaselineTime))
	_, err := io.WriteString(w, b.String())
	return err
}
