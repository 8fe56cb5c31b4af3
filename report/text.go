package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// TextOptions say how a frontier is shown.
type TextOptions struct {
	// Width is that of the terminal in characters, Color and ASCII are those of
	// [PlotOptions].
	Width        int
	Color, ASCII bool
	// Intervals of the savings, if known, in the order of Savings.
	Intervals []Interval
}

// WriteText writes a frontier for people: what it is of, its landmarks and
// savings, a table of its points, and a plot.
func WriteText(w io.Writer, f *frontierfile.File, o TextOptions) error {
	rows, err := Savings(f)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	writeJob(b, f)
	writeSavings(b, f, rows, o.Intervals)
	writePoints(b, f)
	fmt.Fprintln(b)
	m := marks(f, rows, o.ASCII)
	if err := Plot(b, Line(f, 4*o.Width), m, PlotOptions{Width: min(o.Width, 110), Height: 20, Color: o.Color, ASCII: o.ASCII}); err != nil {
		return err
	}
	legend := []string{}
	for _, k := range m {
		legend = append(legend, string(k.Rune)+" "+k.Label)
	}
	fmt.Fprintf(b, "\n%s\n", strings.Join(legend, "   "))
	return b.Flush()
}

// writeJob says what the frontier is of.
func writeJob(w io.Writer, f *frontierfile.File) {
	h := &f.Header
	each := "nowhere"
	if len(h.BlockingPower) > 0 {
		low, high := slices.Min(h.BlockingPower), slices.Max(h.BlockingPower)
		if each = fmt.Sprintf("%v a rank", low); low != high {
			each = fmt.Sprintf("%v to %v a rank", low, high)
		}
	}
	if h.Graph != nil {
		fmt.Fprintf(w, "a graph of %s on %s\n", Count(h.Ops, "op"), Count(h.Ranks, "resource"))
	} else {
		fmt.Fprintf(w, "%s: %s on %s of %s, %s, %d ops\n", h.Schedule, Count(h.Stages, "stage"),
			Count(h.Ranks, "rank"), Count(h.GPUsPerRank, "GPU"), Count(h.Microbatches, "microbatch"), h.Ops)
	}
	if s := h.Terms.Summary(); s != "" {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintf(w, "blocking power %s · profile %.12s… · %s, each with a proof\n\n", each, h.Profile.SHA256, Count(len(f.Points), "point"))
}

func writeSavings(w io.Writer, f *frontierfile.File, rows []Saving, intervals []Interval) {
	h := &f.Header
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\titeration\tenergy\tsaved\t%s\tclocks for\t\n", heading(intervals))
	fmt.Fprintf(t, "all at top clocks\t%s\t%s\t\t\t\t\n", Seconds(h.MaxClockTime), Joules(h.MaxClockEnergy))
	for i, r := range rows {
		p := r.Plan
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Situation, Seconds(p.WaitTime), Joules(p.WaitEnergy),
			Percent(p.Saving.Float()), intervalOf(intervals, i), Seconds(p.Time))
	}
	_ = t.Flush() // a bufio.Writer keeps its error for its Flush
	fmt.Fprintf(w, "\n%s\n\n", remark(h, rows))
}

func heading(intervals []Interval) string {
	if len(intervals) == 0 {
		return ""
	}
	return fmt.Sprintf("%g %% interval", 100*intervals[0].Level)
}

func intervalOf(intervals []Interval, i int) string {
	if i >= len(intervals) {
		return ""
	}
	return fmt.Sprintf("%s … %s", Percent(intervals[i].Low), Percent(intervals[i].High))
}

// remark puts the savings into a sentence or two.
func remark(h *frontierfile.Header, rows []Saving) string {
	const little = 0.005
	fastest, least := rows[0].Plan, rows[1].Plan
	slower := factor(least.Time, h) - 1
	s := fmt.Sprintf("%s saved without being any slower; %s at the least energy, %s slower.",
		Percent(fastest.Saving.Float()), Percent(least.Saving.Float()), Percent(slower))
	if fastest.Saving.Float() < little {
		s += " Little is saved at unchanged time because the stages are balanced: hardly any op waits."
	}
	if h.LineGap > 0 {
		s += fmt.Sprintf(" Lines between the points are at most %.2g %% above the frontier.", 100*h.LineGap.Float())
	}
	return s
}

// tableRows is how many points the table of a long frontier has.
const tableRows = 12

func writePoints(w io.Writer, f *frontierfile.File) {
	h := &f.Header
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "iteration\tslowdown\tenergy\tsaved\taverage power\tprice of time\tabove the bound\t\n")
	for _, i := range spread(f, tableRows) {
		p := &f.Points[i]
		fmt.Fprintf(t, "%s\t×%.3f\t%s\t%s\t%s\t%s\t%.3f %%\t\n", Seconds(p.Time), factor(p.Time, h), Joules(p.Energy),
			Percent(share(p.Energy, h.MaxClockEnergy)), Watts(p.Energy.Joules()/p.Time.Seconds()),
			Watts(p.Price.Watts()), 100*p.Gap.Float())
	}
	_ = t.Flush()
}

// spread returns n indexes of points at about equal distances in time, the first
// and the last among them.
func spread(f *frontierfile.File, n int) []int {
	if len(f.Points) <= n {
		all := make([]int, len(f.Points))
		for i := range all {
			all[i] = i
		}
		return all
	}
	first, last := f.Points[0].RelaxedTime, f.Points[len(f.Points)-1].RelaxedTime
	var chosen []int
	for k := range n {
		at := first + (last-first)/unit.Time(n-1)*unit.Time(k)
		if k == n-1 {
			at = last
		}
		i, _ := slices.BinarySearchFunc(f.Points, at, func(p frontierfile.Point, t unit.Time) int {
			return cmp.Compare(p.RelaxedTime, t)
		})
		i = min(i, len(f.Points)-1)
		if len(chosen) == 0 || i > chosen[len(chosen)-1] {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// Seconds returns a time for people.
func Seconds(t unit.Time) string { return Significant(t.Seconds()) + " s" }

// Joules returns an energy for people.
func Joules(e frontierfile.Nanojoules) string { return Significant(e.Joules()) + " J" }

// Watts returns a power for people.
func Watts(p float64) string { return Significant(p) + " W" }

// Percent returns a fraction as a percentage of two decimals.
func Percent(v float64) string {
	s := strconv.FormatFloat(100*v, 'f', 2, 64)
	if s == "-0.00" {
		s = "0.00"
	}
	return s + " %"
}

// Significant returns v with about six significant digits, without an exponent.
func Significant(v float64) string {
	digits := 0
	if v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		digits = 5 - int(math.Floor(math.Log10(math.Abs(v))))
	}
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 9), 64)
}

// Count returns "1 rank" or "2 ranks".
func Count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		what += "e"
	}
	return strconv.Itoa(n) + " " + what + "s"
}
