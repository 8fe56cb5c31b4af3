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
	if err := Plot(b, line(f, 4*o.Width), m, PlotOptions{Width: min(o.Width, 110), Height: 20, Color: o.Color, ASCII: o.ASCII}); err != nil {
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
		fmt.Fprintf(w, "a graph of %s on %s\n", count(h.Ops, "op"), count(h.Ranks, "resource"))
	} else {
		fmt.Fprintf(w, "%s: %s on %s of %s, %s, %d ops\n", h.Schedule, count(h.Stages, "stage"),
			count(h.Ranks, "rank"), count(h.GPUsPerRank, "GPU"), count(h.Microbatches, "microbatch"), h.Ops)
	}
	if s := h.Terms.Summary(); s != "" {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintf(w, "blocking power %s · profile %.12s… · %s, each with a proof\n\n", each, h.Profile.SHA256, count(len(f.Points), "point"))
}

func writeSavings(w io.Writer, f *frontierfile.File, rows []Saving, intervals []Interval) {
	h := &f.Header
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\titeration\tenergy\tsaved\t%s\tclocks for\t\n", heading(intervals))
	fmt.Fprintf(t, "all at top clocks\t%s\t%s\t\t\t\t\n", seconds(h.MaxClockTime), joules(h.MaxClockEnergy))
	for i, r := range rows {
		p := r.Plan
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Situation, seconds(p.WaitTime), joules(p.WaitEnergy),
			percent(p.Saving.Float()), intervalOf(intervals, i), seconds(p.Time))
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
	return fmt.Sprintf("%s … %s", percent(intervals[i].Low), percent(intervals[i].High))
}

// remark puts the savings into a sentence or two.
func remark(h *frontierfile.Header, rows []Saving) string {
	const little = 0.005
	fastest, least := rows[0].Plan, rows[1].Plan
	slower := factor(least.Time, h) - 1
	s := fmt.Sprintf("%s saved without being any slower; %s at the least energy, %s slower.",
		percent(fastest.Saving.Float()), percent(least.Saving.Float()), percent(slower))
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
		fmt.Fprintf(t, "%s\t×%.3f\t%s\t%s\t%s\t%s\t%.3f %%\t\n", seconds(p.Time), factor(p.Time, h), joules(p.Energy),
			percent(share(p.Energy, h.MaxClockEnergy)), watts(p.Energy.Joules()/p.Time.Seconds()),
			watts(p.Price.Watts()), 100*p.Gap.Float())
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

func seconds(t unit.Time) string { return significant(t.Seconds()) + " s" }

func joules(e frontierfile.Nanojoules) string { return significant(e.Joules()) + " J" }

func watts(p float64) string { return significant(p) + " W" }

// percent returns a fraction as a percentage of two decimals.
func percent(v float64) string {
	s := strconv.FormatFloat(100*v, 'f', 2, 64)
	if s == "-0.00" {
		s = "0.00"
	}
	return s + " %"
}

// significant returns v with about six significant digits, without an exponent.
func significant(v float64) string {
	digits := 0
	if v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
		digits = 5 - int(math.Floor(math.Log10(math.Abs(v))))
	}
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 9), 64)
}

// count returns "1 rank" or "2 ranks".
func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		what += "e"
	}
	return strconv.Itoa(n) + " " + what + "s"
}
