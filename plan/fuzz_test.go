package plan

import (
	"errors"
	"io"
	"testing"

	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// FuzzRequest asks one frontier for anything, as text like on the command line:
// the answer is an *Error, or a plan that can be written in each form.
func FuzzRequest(f *testing.F) {
	n := quick(f, exampleFrontier(f))
	for goal := range uint8(LeastEnergy) + 2 {
		f.Add(goal, "0.8s", "1.1", "900W", "0.5%", uint8(1))
		f.Add(goal, "1e-9", "1000", "1e-6", "100%", uint8(0))
		f.Add(goal, "4503599.6s", "1e9%", "1GW", "0", uint8(0))
	}
	f.Fuzz(func(t *testing.T, goal uint8, time, factor, power, margin string, effort uint8) {
		r := Request{Goal: Goal(goal), Effort: round.Effort(effort % 2)} // best takes long
		var errs [4]error
		r.Time, errs[0] = unit.ParseTime(time)
		r.Factor, errs[1] = ParseRatio(factor)
		r.Power, errs[2] = unit.ParsePower(power)
		r.Margin, errs[3] = ParseRatio(margin)
		if errors.Join(errs[:]...) != nil {
			return
		}
		p, err := n.Make(r)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) && r.Goal <= LeastEnergy {
				t.Fatalf("%+v: %v", r, err)
			}
			return
		}
		for _, write := range []func(io.Writer) error{p.WriteCSV, p.WriteJSON, p.WriteZeus} {
			if err := write(io.Discard); err != nil {
				t.Error(err)
			}
		}
		if p.Time < n.file.Header.TMin || p.Energy < p.Bound || p.Gap < 0 || !p.Feasible && p.Note == "" {
			t.Errorf("%+v: %v, energy %v, bound %v, gap %v, feasible %v, %q", r, p.Time, p.Energy, p.Bound, p.Gap, p.Feasible, p.Note)
		}
	})
}
