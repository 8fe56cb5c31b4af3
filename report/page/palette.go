package page

import (
	"fmt"
	"image/color"
	"strings"
)

// tone names a colour of the pictures and the page by what it is for.
type tone string

// The tones. Those of text are told apart from their ground by a contrast of 4.5
// at least, as WCAG 2.2 (1.4.3) asks; a test computes it.
const (
	none    tone = ""
	paper   tone = "paper"   // behind everything
	panel   tone = "panel"   // behind figures and tables
	ink     tone = "ink"     // text
	soft    tone = "soft"    // text of axes and notes
	rule    tone = "rule"    // grid lines and borders
	curved  tone = "curve"   // the frontier
	before  tone = "before"  // all ops at their top clocks
	fastest tone = "fastest" // no slower
	least   tone = "least"   // least energy
	zeus    tone = "zeus"    // baselines: one clock for all
	stages  tone = "stages"  // a clock for each stage
	other   tone = "other"   // other baselines
	lane    tone = "lane"    // a rank that waits
)

// shade is a tone in light and in dark surroundings, as #rrggbb.
type shade struct {
	tone        tone
	light, dark string
}

func shades() []shade {
	return []shade{
		{paper, "#f6f7f9", "#0f1318"},
		{panel, "#ffffff", "#171d24"},
		{ink, "#16202b", "#e8edf2"},
		{soft, "#51606f", "#a3b1bf"},
		{rule, "#dde3e9", "#2e3842"},
		{curved, "#0b63a5", "#6cb6f5"},
		{before, "#b3261e", "#ff8f86"},
		{fastest, "#0b63a5", "#6cb6f5"},
		{least, "#1b6d2f", "#74d08a"},
		{zeus, "#8a5a00", "#e6b450"},
		{stages, "#6c3fb0", "#c3a3f5"},
		{other, "#00696b", "#5fd0cc"},
		{lane, "#eef0f3", "#242d36"},
	}
}

// ramp has the colours of power, from the least to the most: ever darker, so that
// they can be told apart without telling hues apart, and the same in light and
// dark surroundings.
func ramp() []string {
	stops := [][3]int{{0xb5, 0xd6, 0xf0}, {0x9a, 0xd0, 0xcb}, {0xf2, 0xc5, 0x62}, {0xe8, 0x7c, 0x46}, {0x9b, 0x1c, 0x4a}}
	const steps = 16
	var all []string
	for i := range steps {
		at, of := i*(len(stops)-1), steps-1
		k := min(at/of, len(stops)-2)
		part := at - k*of
		var c [3]int
		for j := range c {
			c[j] = (stops[k][j]*(of-part) + stops[k+1][j]*part) / of
		}
		all = append(all, fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]))
	}
	return all
}

// onRamp returns the colour of text on a colour of the ramp.
func onRamp(bin int) string {
	if c := ramp()[bin]; contrast(c, "#16202b") >= contrast(c, "#ffffff") {
		return "#16202b"
	}
	return "#ffffff"
}

// hex returns what a tone stands for; colours themselves stand for themselves.
func (t tone) hex(dark bool) string {
	for _, s := range shades() {
		switch {
		case s.tone != t:
		case dark:
			return s.dark
		default:
			return s.light
		}
	}
	return string(t)
}

// rgb returns the colour that "#rrggbb" stands for.
func rgb(hex string) (c color.RGBA) {
	_, _ = fmt.Sscanf(hex, "#%02x%02x%02x", &c.R, &c.G, &c.B) // all are of the tables above
	c.A = 255
	return c
}

// styles returns the style sheet that gives the classes of pictures their colours:
// f-TONE fills and s-TONE strokes. In dark surroundings they are others, on paper
// they are the light ones.
func styles() string {
	var b strings.Builder
	write := func(dark bool) {
		for _, s := range shades() {
			c := s.tone.hex(dark)
			fmt.Fprintf(&b, ".f-%s{fill:%s}.s-%s{stroke:%s}", s.tone, c, s.tone, c)
		}
	}
	write(false)
	b.WriteString("@media screen and (prefers-color-scheme:dark){")
	write(true)
	b.WriteString("}\n")
	return b.String()
}

// variables returns the style sheet that gives the page its colours by name.
func variables() string {
	var b strings.Builder
	write := func(dark bool) {
		b.WriteString(":root{")
		for _, s := range shades() {
			fmt.Fprintf(&b, "--%s:%s;", s.tone, s.tone.hex(dark))
		}
		b.WriteString("}")
	}
	write(false)
	b.WriteString("\n@media screen and (prefers-color-scheme:dark){")
	write(true)
	b.WriteString("}\n")
	return b.String()
}
