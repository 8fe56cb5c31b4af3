package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

//go:embed web
var web embed.FS

// WriteHTML writes the report as one HTML page that needs nothing else: no
// network, no font, no library. It reads with and without its script, in light and
// dark, by keyboard and by screen reader, and on paper. The same contents give the
// same bytes.
func (c *Contents) WriteHTML(w io.Writer) error {
	page, err := template.New("report.html").Funcs(template.FuncMap{"mul": func(a, b int) int { return a * b }}).ParseFS(web, "web/report.html")
	if err != nil {
		return err
	}
	style, err := web.ReadFile("web/report.css")
	if err != nil {
		return err
	}
	code, err := web.ReadFile("web/report.js")
	if err != nil {
		return err
	}
	v := c.view()
	// Both are of this package; what users bring goes through the template.
	v.Style = template.CSS(variables() + styles() + string(style)) //nolint:gosec // no user data
	v.Script = template.JS(code)                                   //nolint:gosec // no user data
	return page.Execute(w, v)
}

// view is what the template shows.
type view struct {
	Title, Job, Terms, Lead, Note string
	Style                         template.CSS
	Script                        template.JS
	Cards                         []card
	Frontier                      template.HTML
	Reached                       []Reached
	Complete                      bool
	Timelines                     []timelineView
	Legend                        legendView
	Ranks                         []rankView
	Causes                        []causeView
	Clocks                        []ClockRow
	Stragglers                    []stragglerView
	Costs                         []CostRow
	Prices                        pricesView
	Read, Dropped                 []string
	Kept                          []keptView
	HasProfile                    bool
	SHA256                        string
}

type (
	card         struct{ Name, Value, Note string }
	timelineView struct {
		ID, Title, Text string
		Picture         template.HTML
		Data            script
	}
	legendView struct {
		Low, High, Waiting string
		Colors             []string
	}
	rankView  struct{ Rank, Busy, Waiting, Energy, BusyAfter, WaitingAfter, EnergyAfter string }
	causeView struct {
		Name, Text, Before, After string
	}
	stragglerView struct{ Factor, Time, Before, After, Saved string }
	pricesView    struct {
		Money, Carbon, Overhead string
		Any                     bool
		SameTime                bool
		Slower                  string
	}
	keptView struct {
		Stage                      int
		Instruction                string
		Measured, Useful, Left     int
		Lowest, Highest, LeastUsed string
	}
)

func (c *Contents) view() *view {
	h, p := &c.file.Header, c.Plan
	pictures := c.Pictures()
	v := &view{
		Title: c.Title, Terms: h.Terms.Summary(), Lead: c.lead(), Note: p.Note, Reached: c.reached(), Complete: c.pipeline.Complete,
		Frontier: template.HTML(pictures[0].fragment("frontier")), //nolint:gosec // texts in pictures are escaped there
		Clocks:   c.clocks(), Costs: costs(p, c.pipeline.GPUs(), c.prices), SHA256: h.Profile.SHA256, HasProfile: c.profile != nil,
	}
	v.Job = fmt.Sprintf("%s on %s, %s in an iteration", report.Title(c.file), report.Count(c.pipeline.GPUs(), "GPU"), report.Count(h.Ops, "op"))
	v.Cards = []card{
		{"Energy saved", report.Percent(p.Saving.Float()), report.Joules(p.BaselineEnergy) + " → " + report.Joules(p.WaitEnergy) + " an iteration"},
		{"Iteration time", report.Seconds(p.WaitTime), signed(ratio(p.WaitTime, p.BaselineTime)-1) + " against " + report.Seconds(p.BaselineTime)},
		{"Average power", report.Watts(power(p.WaitEnergy.Joules(), p.WaitTime)), "instead of " + report.Watts(power(p.BaselineEnergy.Joules(), p.BaselineTime))},
		{"Proven to be within", strconv.FormatFloat(100*p.Gap.Float(), 'f', 3, 64) + " %", "of the least energy that is possible in this time"},
	}
	for i, t := range []*simulate.Timeline{c.Before, c.After} {
		id := []string{"before", "after"}[i]
		v.Timelines = append(v.Timelines, timelineView{
			ID: id, Title: pictures[1+i].Title, Text: pictures[1+i].Text,
			Picture: template.HTML(pictures[1+i].fragment("timeline-" + id)), //nolint:gosec // as above
			Data:    timelineScript(id, t, c.scale),
		})
	}
	v.Legend = legendView{
		Low: watts3(c.scale.low), High: watts3(c.scale.high), Colors: ramp(),
	}
	v.Ranks, v.Causes = c.ranks(), c.causesView()
	for _, s := range c.Savings[2:] {
		v.Stragglers = append(v.Stragglers, stragglerView{
			"×" + s.Straggler.String(), report.Seconds(s.Plan.WaitTime), report.Joules(s.Plan.BaselineEnergy), report.Joules(s.Plan.WaitEnergy), report.Percent(s.Plan.Saving.Float()),
		})
	}
	v.Prices = pricesView{
		Overhead: c.prices.Overhead.String(), Any: c.prices.Money != nil || c.prices.Carbon != nil,
		SameTime: p.WaitTime <= p.BaselineTime, Slower: report.Percent(ratio(p.WaitTime, p.BaselineTime) - 1),
	}
	if c.prices.Money != nil {
		v.Prices.Money = plainRate(*c.prices.Money) + " " + c.prices.Currency
	}
	if c.prices.Carbon != nil {
		v.Prices.Carbon = plainRate(*c.prices.Carbon) + " g"
	}
	c.profiled(v)
	return v
}

func plainRate(r Rate) string { return strconv.FormatFloat(float64(r)/1e6, 'f', -1, 64) }

func ratio(a, b unit.Time) float64 {
	if b == 0 {
		return 1
	}
	return a.Seconds() / b.Seconds()
}

func power(joules float64, t unit.Time) float64 {
	if t == 0 {
		return 0
	}
	return joules / t.Seconds()
}

func watts3(w float64) string { return strconv.FormatFloat(w, 'f', 0, 64) + " W" }

// lead says the report's main result in a sentence.
func (c *Contents) lead() string {
	p := c.Plan
	slower := ratio(p.WaitTime, p.BaselineTime) - 1
	switch {
	case p.WaitTime > p.Time:
		return fmt.Sprintf("While it waits for a straggler of %s an iteration, the pipeline needs %s less energy with these clocks than with all ops at their top clocks.",
			report.Seconds(p.WaitTime), report.Percent(p.Saving.Float()))
	case slower <= 0.00005:
		return fmt.Sprintf("With these clocks the pipeline trains exactly as fast as with all ops at their top clocks, or faster, and needs %s less energy.", report.Percent(p.Saving.Float()))
	}
	return fmt.Sprintf("With these clocks an iteration takes %s longer than with all ops at their top clocks, and needs %s less energy.", report.Percent(slower), report.Percent(p.Saving.Float()))
}

func (c *Contents) ranks() []rankView {
	var all []rankView
	for r := range c.Before.Ranks {
		b, a := &c.Before.Ranks[r], &c.After.Ranks[r]
		be, ae := b.Energy(), a.Energy()
		all = append(all, rankView{
			strconv.Itoa(r), report.Seconds(b.Busy), report.Seconds(b.Blocked), report.Significant(be.Joules()) + " J",
			report.Seconds(a.Busy), report.Seconds(a.Blocked), report.Significant(ae.Joules()) + " J",
		})
	}
	return all
}

func (c *Contents) causesView() []causeView {
	b, a := c.causes[0], c.causes[1]
	text := func(e unit.Energy128) string { return report.Significant(max(0, e.Joules())) + " J" }
	return []causeView{
		{"computing", "while ops run", text(b.Compute), text(a.Compute)},
		{"waiting", "while GPUs wait for others", text(b.Blocking), text(a.Blocking)},
		{"total", "of an iteration", text(b.Total), text(a.Total)},
		{"intrinsic bloat", "of the total: saved at most without being slower", text(b.Intrinsic), text(a.Intrinsic)},
		{"extrinsic bloat", "of the total: saved at most by being as slow as the straggler", text(b.Extrinsic), text(a.Extrinsic)},
	}
}

// profiled fills in what was read of the profile, and what of it is of no use.
func (c *Contents) profiled(v *view) {
	if c.profile == nil {
		return
	}
	for _, line := range c.profile.Report.Lines() {
		if strings.HasPrefix(line, "skipped: ") {
			v.Dropped = append(v.Dropped, strings.TrimPrefix(line, "skipped: "))
		} else {
			v.Read = append(v.Read, line)
		}
	}
	seen := map[string]bool{}
	for i := range c.pipeline.Options {
		all, useful := c.pipeline.Options[i], c.pipeline.Problem.Curves[i].Options
		k := keptView{Stage: c.pipeline.Stage[i], Instruction: c.pipeline.Instruction[i], Measured: len(all), Useful: len(useful), Left: len(all) - len(useful)}
		key := fmt.Sprintf("%d %s %d %d", k.Stage, k.Instruction, k.Measured, k.Useful)
		if len(all) == 0 || len(useful) == 0 || all[len(all)-1].Knobs.ClockMHz == 0 || seen[key] {
			continue
		}
		seen[key] = true
		k.Lowest, k.Highest = mhzText(all[0].Knobs.ClockMHz), mhzText(all[len(all)-1].Knobs.ClockMHz)
		low, high := useful[0].Knobs.ClockMHz, useful[0].Knobs.ClockMHz
		for _, o := range useful {
			low, high = min(low, o.Knobs.ClockMHz), max(high, o.Knobs.ClockMHz)
		}
		k.LeastUsed = fmt.Sprintf("%d–%d MHz", low, high)
		v.Kept = append(v.Kept, k)
	}
}
