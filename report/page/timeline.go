package page

import (
	"fmt"
	"math"
	"strconv"

	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// The measures of a timeline's picture.
const (
	timelineWidth = 1160
	timelineLeft  = 74
	timelineRight = 16
	timelineTop   = 10
	timelineAxis  = 46
	// columns is how finely ops are placed.
	columns = 100_000
	// lanes and laneBar are how high a rank and its ops are, in rows.
	laneRows, laneBar = 10, 8
)

// scale is what the colours of a report's timelines stand for.
type scale struct {
	low, high float64 // watts of one GPU
	span      unit.Time
}

// bin returns the colour for a power, by its place on the ramp.
func (s scale) bin(watts float64) int {
	n := len(ramp())
	if s.high <= s.low {
		return n / 2
	}
	return min(max(int(math.Floor(float64((watts-s.low)/(s.high-s.low))*float64(n))), 0), n-1)
}

// column returns where a time lies.
func (s scale) column(t unit.Time) int {
	if s.span == 0 {
		return 0
	}
	return int(math.Round(float64(t) / float64(s.span) * columns))
}

// newScale returns the scale that all timelines have in common.
func newScale(timelines []*simulate.Timeline, span unit.Time) scale {
	s := scale{math.Inf(1), math.Inf(-1), span}
	for _, t := range timelines {
		for rank := range t.Schedule.Ranks() {
			for span := range t.Spans(rank, 0) {
				if span.Op >= 0 && span.Duration > 0 {
					w := opOf(t, rank, span).watts
					s.low, s.high = min(s.low, w), max(s.high, w)
				}
			}
		}
	}
	if s.low > s.high {
		s.low, s.high = 0, 0
	}
	return s
}

// laneHeight returns how high a rank is drawn.
func laneHeight(ranks int) int { return min(max(420/max(ranks, 1), 5), 30) }

// timelinePicture draws a timeline: a lane for each rank, ops coloured by what a
// GPU draws in them, and the time on which the iteration ends.
func timelinePicture(name, title string, t *simulate.Timeline, done unit.Time, s scale) *Picture {
	ranks := t.Schedule.Ranks()
	height := laneHeight(ranks)
	plotW, plotH := float64(timelineWidth-timelineLeft-timelineRight), float64(ranks*height)
	p := &Picture{
		Name: name, Title: title, Width: timelineWidth, Height: timelineTop + ranks*height + timelineAxis,
		Text: fmt.Sprintf("%s of %s over %s. Each bar is an op of a rank, darker where a GPU draws more; gaps are waiting.",
			report.Count(t.Schedule.Problem.Graph.Ops, "op"), report.Count(ranks, "rank"), report.Seconds(done)),
	}
	b := bars{
		x: timelineLeft, y: timelineTop, w: plotW, h: plotH, cols: columns, rows: ranks * laneRows, separatedBy: panel,
		rectangles: make([][]bar, len(ramp())),
	}
	for _, c := range ramp() {
		b.fills = append(b.fills, tone(c))
	}
	waiting := bars{x: b.x, y: b.y, w: b.w, h: b.h, cols: b.cols, rows: b.rows, fills: []tone{lane}, rectangles: make([][]bar, 1)}
	labels := class{name: "labels"}
	for rank := range ranks {
		y := rank*laneRows + 1
		if end := s.column(done); end > 0 {
			waiting.rectangles[0] = append(waiting.rectangles[0], bar{0, y, end, laneBar})
		}
		if every := 1 + 10/height; rank%every == 0 {
			middle := timelineTop + float64((float64(rank)+0.5)*float64(height))
			p.add(label{spot{timelineLeft - 10, middle + 4}, "end", "rank " + strconv.Itoa(rank), 12, false, soft, none})
		}
		for span := range t.Spans(rank, 0) {
			if span.Op < 0 {
				continue
			}
			o := opOf(t, rank, span)
			x := s.column(span.Start)
			w := s.column(span.Start+span.Duration) - x
			if w == 0 {
				continue
			}
			bin := s.bin(o.watts)
			b.rectangles[bin] = append(b.rectangles[bin], bar{x, y, w, laneBar})
			text := strconv.Itoa(o.microbatch)
			if width := float64(w) * plotW / columns; height >= 16 && width >= float64(9*len(text)+4) {
				at := spot{timelineLeft + (float64(x)+float64(w)/2)*plotW/columns, timelineTop + float64((float64(rank)+0.5)*float64(height)) + 4}
				labels.shapes = append(labels.shapes, label{at, "middle", text, 11, false, tone(onRamp(bin)), none})
			}
		}
	}
	axisOf := class{name: "axis"}
	bottom := timelineTop + plotH
	for _, tick := range timeTicks(s.span) {
		x := timelineLeft + float64(tick.at*plotW)
		axisOf.shapes = append(axisOf.shapes, polyline{[]spot{{x, bottom}, {x, bottom + 6}}, soft, 1, ""},
			label{spot{x, bottom + 21}, "middle", tick.text, 12, false, soft, none})
	}
	p.add(waiting, b, labels, axisOf,
		label{spot{timelineLeft + plotW/2, bottom + 39}, "middle", "time in the iteration, s", 12, false, soft, none})
	return p
}

type tick struct {
	at   float64
	text string
}

// timeTicks returns about ten round times from 0 to the end.
func timeTicks(span unit.Time) []tick {
	if span <= 0 {
		return nil
	}
	end := span.Seconds()
	step := report.RoundStep(end / 10)
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var all []tick
	for i := 0.0; float64(i*step) <= end && i < 100; i++ {
		v := float64(i * step)
		all = append(all, tick{v / end, strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return all
}

// script is what the page's script knows of a timeline.
type script struct {
	ID      string   `json:"id"`
	Columns int      `json:"columns"`
	SpanNS  int64    `json:"span_ns"`
	Names   []string `json:"names"`
	// Ranks has for each rank its ops, one after the other, as eight numbers: first
	// column, width, colour, name, stage, microbatch, clock in MHz, tenths of watts.
	Ranks [][]int  `json:"ranks"`
	Ramp  []string `json:"ramp"`
	On    []string `json:"on"`
}

// maxScriptOps bounds what a page knows of single ops, so that it stays small.
const maxScriptOps = 60_000

func timelineScript(id string, t *simulate.Timeline, s scale) script {
	d := script{ID: id, Columns: columns, SpanNS: int64(s.span), Names: []string{}, Ranks: [][]int{}, Ramp: ramp()}
	for bin := range d.Ramp {
		d.On = append(d.On, onRamp(bin))
	}
	if t.Schedule.Problem.Graph.Ops > maxScriptOps {
		return d
	}
	names := map[string]int{}
	for rank := range t.Schedule.Ranks() {
		ops := []int{}
		for span := range t.Spans(rank, 0) {
			if span.Op < 0 {
				continue
			}
			o := opOf(t, rank, span)
			k, ok := names[o.name]
			if !ok {
				k = len(d.Names)
				names[o.name], d.Names = k, append(d.Names, o.name)
			}
			x := s.column(span.Start)
			ops = append(ops, x, s.column(span.Start+span.Duration)-x, s.bin(o.watts), k, o.stage, o.microbatch, int(o.clock), int(math.Round(10*o.watts)))
		}
		d.Ranks = append(d.Ranks, ops)
	}
	return d
}
