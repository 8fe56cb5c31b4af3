package report

import (
	"fmt"
	"io"
	"strings"
)

// PlotOptions say how a terminal plot looks.
type PlotOptions struct {
	// Width and Height are those of the whole picture in characters; less than
	// 40 × 8 is taken as that.
	Width, Height int
	// Color adds ANSI colours.
	Color bool
	// ASCII draws with plain characters in place of braille and box drawing.
	ASCII bool
}

const (
	minPlotWidth  = 40
	minPlotHeight = 8
)

// Plot writes a picture of a line through the given points, from left to right,
// with marks on it and axes around it. It does nothing without points.
func Plot(w io.Writer, line []XY, marks []Mark, o PlotOptions) error {
	if len(line) == 0 && len(marks) == 0 {
		return nil
	}
	low, high := Bounds(line, marks)
	width, height := max(o.Width, minPlotWidth), max(o.Height, minPlotHeight)
	rows := height - 3 // below: the axis, its ticks, the unit
	y := NewAxis(low.Y, high.Y, rows/3)
	gutter := 0
	for _, t := range y.Ticks {
		gutter = max(gutter, len(y.Format(t)))
	}
	columns := width - gutter - 2
	x := NewAxis(low.X, high.X, columns/14)
	c := newCanvas(columns, rows, o)
	for i, p := range line {
		to := c.dot(x, y, p)
		from := to
		if i > 0 {
			from = c.dot(x, y, line[i-1])
		}
		c.line(from, to)
	}
	for _, m := range marks {
		c.mark(x, y, m)
	}
	return c.write(w, x, y, gutter)
}

// canvas is a grid of characters, each of 2 × 4 dots.
type canvas struct {
	PlotOptions
	columns, rows int
	dots          []uint8 // by character: which dots are set, as braille counts them
	runes         []rune  // by character: a mark, or 0
}

func newCanvas(columns, rows int, o PlotOptions) *canvas {
	return &canvas{o, columns, rows, make([]uint8, columns*rows), make([]rune, columns*rows)}
}

type dot struct{ x, y int }

func (c *canvas) dot(x, y Axis, p XY) dot {
	return dot{
		int(x.At(p.X, float64(2*c.columns-1)) + 0.5),
		4*c.rows - 1 - int(y.At(p.Y, float64(4*c.rows-1))+0.5),
	}
}

// line sets the dots between two, by Bresenham's algorithm (1965).
func (c *canvas) line(a, b dot) {
	dx, dy := abs(b.x-a.x), -abs(b.y-a.y)
	sx, sy := sign(b.x-a.x), sign(b.y-a.y)
	for e := dx + dy; ; {
		c.set(a)
		if a == b {
			return
		}
		if 2*e >= dy && a.x != b.x {
			e += dy
			a.x += sx
		} else {
			e += dx
			a.y += sy
		}
	}
}

func (c *canvas) set(d dot) {
	// Unicode numbers the dots of a braille pattern down the left column, then
	// down the right one, and the bottom row last.
	bits := [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
	c.dots[d.y/4*c.columns+d.x/2] |= bits[d.y%4][d.x%2]
}

func (c *canvas) mark(x, y Axis, m Mark) {
	d := c.dot(x, y, m.XY)
	c.runes[d.y/4*c.columns+d.x/2] = m.Rune
}

// cell returns the character at i and its colour, 0 for none.
func (c *canvas) cell(i int) (r rune, color int) {
	const (
		brailleBlank = 0x2800
		yellow, cyan = 33, 36
	)
	switch {
	case c.runes[i] != 0:
		return c.runes[i], yellow
	case c.dots[i] == 0:
		return ' ', 0
	case c.ASCII:
		return '.', cyan
	}
	return brailleBlank + rune(c.dots[i]), cyan
}

// row returns a line of the grid, with colours where they are wanted.
func (c *canvas) row(r int) string {
	var b strings.Builder
	last := 0
	paint := func(color int) {
		if c.Color && color != last {
			fmt.Fprintf(&b, "\x1b[%dm", color)
			last = color
		}
	}
	spaces := 0 // not written where the line ends with them
	for i := range c.columns {
		char, color := c.cell(r*c.columns + i)
		if char == ' ' {
			spaces++
			continue
		}
		b.WriteString(strings.Repeat(" ", spaces))
		spaces = 0
		paint(color)
		b.WriteRune(char)
	}
	paint(0)
	return b.String()
}

func (c *canvas) write(w io.Writer, x, y Axis, gutter int) error {
	tick, bar, corner, floor, notch := "┤", "│", "└", "─", "┬"
	if c.ASCII {
		tick, bar, corner, floor, notch = "+", "|", "+", "-", "+"
	}
	labels := make([]string, c.rows)
	for _, t := range y.Ticks {
		labels[c.dot(x, y, XY{x.Low, t}).y/4] = y.Format(t)
	}
	var b strings.Builder
	for r := range c.rows {
		edge := bar
		if labels[r] != "" {
			edge = tick
		}
		fmt.Fprintf(&b, "%*s %s", gutter, labels[r], edge)
		b.WriteString(c.row(r))
		b.WriteByte('\n')
	}
	base := make([]string, c.columns)
	for i := range base {
		base[i] = floor
	}
	text := []byte(strings.Repeat(" ", c.columns))
	free := 0 // first column of text that no label is in or next to
	for _, t := range x.Ticks {
		label := x.Format(t)
		at := c.dot(x, y, XY{t, y.Low}).x / 2
		from := min(max(at-len(label)/2, 0), c.columns-len(label))
		base[at] = notch
		if from >= free {
			copy(text[from:], label)
			free = from + len(label) + 1
		}
	}
	fmt.Fprintf(&b, "%*s %s%s\n", gutter, "", corner, strings.Join(base, ""))
	fmt.Fprintf(&b, "%*s  %s\n", gutter, "", strings.TrimRight(string(text), " "))
	caption := "up: energy of an iteration, J; right: iteration time, s"
	if len(caption) > c.columns {
		caption = "up: J; right: s"
	}
	indent := max(0, (c.columns-len(caption))/2)
	fmt.Fprintf(&b, "%*s  %*s%s\n", gutter, "", indent, "", caption)
	_, err := io.WriteString(w, b.String())
	return err
}

func abs(n int) int { return max(n, -n) }

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
