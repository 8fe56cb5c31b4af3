package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/perseus-energy/perseus/frontierfile"
)

// The picture's measures in pixels.
const (
	svgWidth, svgHeight = 760, 420
	svgLeft, svgRight   = 84, 24
	svgTop, svgBottom   = 56, 60
)

// WriteSVG writes a picture of a frontier: energy over iteration time, the
// baseline with all ops at their top clocks, and what is saved without being
// slower and at the least energy. It has no script and needs no font. The same
// frontier gives the same bytes on any machine.
func WriteSVG(w io.Writer, f *frontierfile.File, title string) error {
	rows, err := Savings(f)
	if err != nil {
		return err
	}
	curve, named := Line(f, 150), marks(f, rows, false)
	low, high := Bounds(curve, named)
	d := &drawing{x: NewAxis(low.X, high.X, 7), y: NewAxis(low.Y, high.Y, 6)}
	d.line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`, svgWidth, svgHeight)
	d.line(`<title>%s</title>`, html.EscapeString(title))
	d.line(`<rect width="%d" height="%d" fill="#fff"/>`, svgWidth, svgHeight)
	d.text(svgLeft, 30, "start", "#111", `font-size="16" font-weight="600"`, title)
	d.axes()
	d.path(curve)
	top, fastest, least := named[0], named[1], named[2]
	d.drop(top.XY, fastest.XY)
	d.dot(top.XY, "#b3261e")
	d.label(top.XY, 12, 4, "#b3261e", top.Label)
	d.dot(fastest.XY, "#00639b")
	d.label(fastest.XY, 12, -6, "#00639b", Percent(rows[0].Plan.Saving.Float())+" saved, no slower")
	d.dot(least.XY, "#1b6d2f")
	d.label(least.XY, 0, -40, "#1b6d2f", Percent(rows[1].Plan.Saving.Float())+" saved at the least energy")
	d.line("</svg>")
	_, err = io.WriteString(w, d.String())
	return err
}

type drawing struct {
	strings.Builder
	x, y Axis
}

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) px(v float64) float64 { return svgLeft + d.x.At(v, svgWidth-svgLeft-svgRight) }
func (d *drawing) py(v float64) float64 {
	return svgHeight - svgBottom - d.y.At(v, svgHeight-svgTop-svgBottom)
}

func (d *drawing) text(x, y float64, anchor, fill, more, text string) {
	d.line(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s>%s</text>`, x, y, anchor, fill, more, html.EscapeString(text))
}

func (d *drawing) axes() {
	bottom := float64(svgHeight - svgBottom)
	for _, t := range d.y.Ticks {
		y := d.py(t)
		d.line(`<path d="M%d %.1fH%d" stroke="#e3e3e3"/>`, svgLeft, y, svgWidth-svgRight)
		d.text(svgLeft-10, y+4, "end", "#444", "", d.y.Format(t))
	}
	for _, t := range d.x.Ticks {
		x := d.px(t)
		d.line(`<path d="M%.1f %.1fv6" stroke="#888"/>`, x, bottom)
		d.text(x, bottom+22, "middle", "#444", "", d.x.Format(t))
	}
	d.line(`<path d="M%d %dV%.1fH%d" fill="none" stroke="#888"/>`, svgLeft, svgTop, bottom, svgWidth-svgRight)
	middle := float64(svgLeft+svgWidth-svgRight) / 2
	d.text(middle, svgHeight-14, "middle", "#444", "", "iteration time, s")
	d.text(svgLeft, svgTop-8, "middle", "#444", "", "energy of an iteration, J")
}

func (d *drawing) path(points []XY) {
	d.WriteString(`<path fill="none" stroke="#00639b" stroke-width="2.5" stroke-linejoin="round" d="`)
	for i, p := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(d, "%s%.1f %.1f", command, d.px(p.X), d.py(p.Y))
	}
	d.line(`"/>`)
}

// drop draws a dashed line from one point down to the height of another.
func (d *drawing) drop(from, to XY) {
	d.line(`<path d="M%.1f %.1fV%.1f" stroke="#b3261e" stroke-dasharray="4 4"/>`, d.px(from.X), d.py(from.Y), d.py(to.Y))
}

func (d *drawing) dot(p XY, fill string) {
	d.line(`<circle cx="%.1f" cy="%.1f" r="5.5" fill="%s"/>`, d.px(p.X), d.py(p.Y), fill)
}

// label writes next to a point, on its other side where it would leave the
// picture.
func (d *drawing) label(p XY, dx, dy float64, fill, text string) {
	const perRune = 7.5
	x, anchor := d.px(p.X), "start"
	switch {
	case dx == 0:
		anchor = "middle"
	case x+dx+perRune*float64(len(text)) > svgWidth-svgRight:
		dx, anchor = -dx, "end"
	}
	d.text(x+dx, d.py(p.Y)+dy, anchor, fill, `font-weight="600" stroke="#fff" stroke-width="4" paint-order="stroke"`, text)
}
