package page

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Picture is a drawing that can be written as SVG and as PNG. Lengths are pixels
// at its own size.
type Picture struct {
	// Name is short, for file names; Title and Text say what is to be seen.
	Name, Title, Text string
	Width, Height     int

	shapes []shape
}

// spot is a place in a picture, in pixels, or in a chart, in seconds and joules.
type spot struct{ X, Y float64 }

// shape is something to draw.
type shape interface {
	svg(b *strings.Builder)
	raster(c *sheet)
}

type (
	rectangle struct {
		x, y, w, h, radius float64
		fill               tone
	}
	// polyline is open; dash is empty or as in "4 4".
	polyline struct {
		points []spot
		stroke tone
		width  float64
		dash   string
	}
	// symbol is a mark at a point: a filled disc, or a cross or diamond.
	symbol struct {
		at   spot
		kind rune // '●', '×' or '◆'
		size float64
		fill tone
	}
	label struct {
		at     spot
		anchor string // start, middle or end
		text   string
		size   float64
		bold   bool
		fill   tone
		halo   tone // around the letters, so that lines do not run into them
	}
	// bars are rectangles of whole numbers on a grid of their own that is spread
	// over an area of the picture.
	bars struct {
		x, y, w, h  float64
		cols, rows  int
		fills       []tone
		rectangles  [][]bar // by fill
		separatedBy tone
	}
	bar struct{ x, y, w, h int }
	// class is for pages that draw what is in it again.
	class struct {
		name   string
		shapes []shape
	}
)

func (p *Picture) add(s ...shape) { p.shapes = append(p.shapes, s...) }

// fragment returns the picture as an SVG element for an HTML page, which has the
// style sheet.
func (p *Picture) fragment(id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg id="%s" class="picture" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		id, p.Width, p.Height, id, id, id, html.EscapeString(p.Title), id, html.EscapeString(p.Text))
	for _, s := range p.shapes {
		s.svg(&b)
	}
	b.WriteString("</svg>")
	return b.String()
}

// WriteSVG writes the picture as a file of its own, in light or dark as what
// shows it. It has no script and needs no font.
func (p *Picture) WriteSVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif"><title>%s</title><desc>%s</desc><style>%s</style>`,
		p.Width, p.Height, p.Width, p.Height, html.EscapeString(p.Title), html.EscapeString(p.Text), styles())
	rectangle{0, 0, float64(p.Width), float64(p.Height), 0, panel}.svg(&b)
	for _, s := range p.shapes {
		s.svg(&b)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// paint returns the attributes of a fill or stroke: the class for style sheets
// and the light colour for programs that know none.
func paint(attribute string, t tone) string {
	switch {
	case t == none:
		return fmt.Sprintf(` %s="none"`, attribute)
	case strings.HasPrefix(string(t), "#"):
		return fmt.Sprintf(` %s="%s"`, attribute, t)
	}
	return fmt.Sprintf(` %s="%s" class="%c-%s"`, attribute, t.hex(false), attribute[0], t)
}

func (s rectangle) svg(b *strings.Builder) {
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"%s/>`, s.x, s.y, s.w, s.h, s.radius, paint("fill", s.fill))
}

func (s polyline) svg(b *strings.Builder) {
	b.WriteString(`<path fill="none" stroke-linejoin="round" d="`)
	for i, p := range s.points {
		fmt.Fprintf(b, "%c%.1f %.1f", "ML"[min(i, 1)], p.X, p.Y)
	}
	fmt.Fprintf(b, `" stroke-width="%.1f"%s`, s.width, paint("stroke", s.stroke))
	if s.dash != "" {
		fmt.Fprintf(b, ` stroke-dasharray="%s"`, s.dash)
	}
	b.WriteString("/>")
}

func (s symbol) svg(b *strings.Builder) {
	x, y, r := s.at.X, s.at.Y, s.size
	switch s.kind {
	case '×':
		fmt.Fprintf(b, `<path d="M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f" stroke-width="3" stroke-linecap="round"%s/>`,
			x-r, y-r, x+r, y+r, x-r, y+r, x+r, y-r, paint("stroke", s.fill))
	case '◆':
		fmt.Fprintf(b, `<path d="M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fz"%s/>`, x-r, y, x, y-r, x+r, y, x, y+r, paint("fill", s.fill))
	default:
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f"%s/>`, x, y, r, paint("fill", s.fill))
	}
}

func (s label) svg(b *strings.Builder) {
	text := func(more string) {
		weight := ""
		if s.bold {
			weight = ` font-weight="600"`
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="%.0f" text-anchor="%s"%s%s>%s</text>`,
			s.at.X, s.at.Y, s.size, s.anchor, weight, more, html.EscapeString(s.text))
	}
	if s.halo != none { // a text of its own: one element has one class for a colour
		fmt.Fprintf(b, `<g aria-hidden="true" stroke-width="4" stroke-linejoin="round"%s>`, paint("stroke", s.halo))
		text(` fill="none"`)
		b.WriteString("</g>")
	}
	text(paint("fill", s.fill))
}

func (s bars) svg(b *strings.Builder) {
	fmt.Fprintf(b, `<svg class="pane" x="%.1f" y="%.1f" width="%.1f" height="%.1f" viewBox="0 0 %d %d" preserveAspectRatio="none">`,
		s.x, s.y, s.w, s.h, s.cols, s.rows)
	for i, of := range s.rectangles {
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(b, `<path%s`, paint("fill", s.fills[i]))
		if s.separatedBy != none {
			fmt.Fprintf(b, `%s stroke-width=".6" vector-effect="non-scaling-stroke"`, paint("stroke", s.separatedBy))
		}
		b.WriteString(` d="`)
		for _, r := range of {
			fmt.Fprintf(b, "M%d %dh%dv%dh-%dz", r.x, r.y, r.w, r.h, r.w)
		}
		b.WriteString(`"/>`)
	}
	b.WriteString("</svg>")
}

func (s class) svg(b *strings.Builder) {
	fmt.Fprintf(b, `<g class="%s">`, s.name)
	for _, inner := range s.shapes {
		inner.svg(b)
	}
	b.WriteString("</g>")
}
