package page

import (
	"cmp"
	"slices"

	"github.com/perseus-energy/perseus/baseline"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

// The measures of the frontier's picture.
const (
	frontierWidth, frontierHeight = 1160, 470
	frontierLeft, frontierRight   = 84, 24
	frontierTop, frontierBottom   = 40, 56
)

// chart places points in the frontier's picture.
type chart struct {
	*Picture
	x, y report.Axis
}

func (c *chart) at(p spot) spot {
	return spot{
		frontierLeft + c.x.At(p.X, frontierWidth-frontierLeft-frontierRight),
		frontierHeight - frontierBottom - c.y.At(p.Y, frontierHeight-frontierTop-frontierBottom),
	}
}

// frontierPicture draws the frontier with its landmarks and with what baselines
// reach.
func frontierPicture(f *frontierfile.File, c *Contents) *Picture {
	curve := report.Line(f, 240)
	named := landmarkPoints(f, c)
	families := [][]baseline.Result{slices.Clone(c.global), slices.Clone(c.perStage)}
	var marked []report.Mark
	for _, n := range named {
		marked = append(marked, report.Mark{XY: report.XY(n.at)})
	}
	for _, r := range c.others {
		if r.Schedule != nil {
			marked = append(marked, report.Mark{XY: report.XY(costPoint(r))})
		}
	}
	low, high := report.Bounds(curve, marked)
	// Families are cut where they leave the frontier's neighbourhood.
	high.X += float64((high.X - low.X) * 0.12)
	high.Y += float64((high.Y - low.Y) * 0.05)
	low.Y -= float64((high.Y - low.Y) * 0.08) // room for a name below the lowest point
	p := &Picture{
		Name: "frontier", Title: "Energy of an iteration over its time", Width: frontierWidth, Height: frontierHeight,
		Text: "The frontier falls from the fastest plan to the one of least energy and rises slowly after it. The table beside it has the numbers.",
	}
	d := &chart{p, report.NewAxis(low.X, high.X, 8), report.NewAxis(low.Y, high.Y, 6)}
	d.axes()
	for i, family := range families {
		// Where a slower clock is dearer too, the line leaves it out.
		slices.SortStableFunc(family, func(a, b baseline.Result) int { return cmp.Compare(a.Cost.Time, b.Cost.Time) })
		var points []spot
		for k, r := range family {
			v := costPoint(r)
			if v.X > d.x.High || v.Y > d.y.High || v.X < d.x.Low || v.Y < d.y.Low {
				continue
			}
			p.add(symbol{d.at(v), '●', 2, [2]tone{zeus, stages}[i]})
			if !slices.ContainsFunc(family[:k], func(o baseline.Result) bool { return o.Cost.Energy.Cmp(r.Cost.Energy) <= 0 }) {
				points = append(points, d.at(v))
			}
		}
		if len(points) > 1 {
			p.add(polyline{points, [2]tone{zeus, stages}[i], 1.5, "4 4"})
		}
	}
	var way []spot
	for _, v := range curve {
		way = append(way, d.at(spot(v)))
	}
	if len(way) > 1 {
		p.add(polyline{way, curved, 3, ""})
	}
	for _, r := range c.others {
		if r.Schedule != nil {
			p.add(symbol{d.at(costPoint(r)), '◆', 6, other})
		}
	}
	for _, n := range named {
		p.add(symbol{d.at(n.at), n.kind, 6, n.tone})
		d.name(n)
	}
	d.legend(c)
	return p
}

func costPoint(r baseline.Result) spot {
	return spot{r.Cost.Time.Seconds(), r.Cost.Energy.Joules()}
}

func (c *chart) axes() {
	left, right, bottom := float64(frontierLeft), float64(frontierWidth-frontierRight), float64(frontierHeight-frontierBottom)
	for _, t := range c.y.Ticks {
		y := c.at(spot{c.x.Low, t}).Y
		c.add(polyline{[]spot{{left, y}, {right, y}}, rule, 1, ""},
			label{spot{left - 10, y + 4}, "end", grouped(c.y.Format(t)), 12, false, soft, none})
	}
	for _, t := range c.x.Ticks {
		x := c.at(spot{t, c.y.Low}).X
		c.add(polyline{[]spot{{x, bottom}, {x, bottom + 6}}, soft, 1, ""},
			label{spot{x, bottom + 21}, "middle", c.x.Format(t), 12, false, soft, none})
	}
	c.add(polyline{[]spot{{left, bottom}, {right, bottom}}, soft, 1, ""},
		label{spot{(left + right) / 2, bottom + 42}, "middle", "iteration time, s", 12, false, soft, none},
		label{spot{12, 22}, "start", "energy of an iteration, J", 12, false, soft, none})
}

// landmark is a point of the picture that has a name.
type landmark struct {
	at   spot
	name string
	kind rune
	tone tone
	// below puts the name below the point.
	below bool
}

func landmarkPoints(f *frontierfile.File, c *Contents) []landmark {
	h, last := &f.Header, &f.Points[len(f.Points)-1]
	point := func(t unit.Time, e frontierfile.Nanojoules) spot { return spot{t.Seconds(), e.Joules()} }
	first, cheap := c.Savings[0].Plan, c.Savings[1].Plan
	all := []landmark{
		{point(h.MaxClockTime, h.MaxClockEnergy), "all at top clocks", '×', before, false},
		{point(first.Time, first.Energy), "fastest: " + report.Percent(first.Saving.Float()) + " saved", '●', fastest, false},
		{point(cheap.Time, cheap.Energy), "least energy: " + report.Percent(cheap.Saving.Float()) + " saved", '●', least, true},
		{point(last.Time, last.Energy), "slowest useful", '●', soft, false},
	}
	if p := c.Plan; p.Time != first.Time && p.Time != cheap.Time {
		all = append(all, landmark{point(p.Time, p.Energy), "this report's plan", '◆', ink, false})
	}
	return all
}

// name writes a landmark's name where it does not leave the picture.
func (c *chart) name(n landmark) {
	at, anchor := c.at(n.at), "start"
	at.X += 12
	switch {
	case n.below:
		at.X, at.Y, anchor = at.X-12, at.Y+24, "middle"
	case at.X+8*float64(len(n.name)) > frontierWidth-frontierRight:
		at.X, anchor = at.X-24, "end"
		at.Y -= 12
	default:
		at.Y -= 4
	}
	c.add(label{at, anchor, n.name, 13, true, n.tone, panel})
}

func (c *chart) legend(contents *Contents) {
	x, y := float64(frontierWidth-frontierRight-10), float64(frontierTop-18)
	entry := func(text string, t tone, kind rune, line bool) {
		width := 7 * float64(len([]rune(text)))
		x -= width
		c.add(label{spot{x, y + 4}, "start", text, 12, false, soft, none})
		if line {
			c.add(polyline{[]spot{{x - 30, y}, {x - 8, y}}, t, 2, map[bool]string{true: "4 4"}[kind == '-']})
		} else {
			c.add(symbol{spot{x - 14, y}, kind, 5, t})
		}
		x -= 50
	}
	for _, r := range contents.others {
		if r.Schedule != nil {
			entry("other methods", other, '◆', false)
			break
		}
	}
	if len(contents.perStage) > 0 {
		entry("a clock for each stage", stages, '-', true)
	}
	if len(contents.global) > 0 {
		entry("one clock for all", zeus, '-', true)
	}
	entry("frontier", curved, '=', true)
}
