package frontierfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/filekind"
	"github.com/perseus-energy/perseus/internal/unpack"
	"github.com/perseus-energy/perseus/unit"
)

// MaxBytes bounds a file, uncompressed.
const MaxBytes = 1 << 30

// Bounds of the graph: they keep a false size from taking all memory.
const (
	maxOps  = 1 << 24
	maxArcs = 8 * maxOps
)

// Read returns the frontier in r, which may be compressed by gzip; name stands
// for it in errors. It fails with a *VersionError on another format or version,
// with a *SyntaxError on text that is not a frontier file: broken JSON, a field
// that is unknown, missing or there twice; and with a *ValueError on a number
// that no frontier has. What is possible and false is not noticed here. O(bytes).
func Read(r io.Reader, name string) (*File, error) {
	text, err := readAll(r, name)
	if err != nil {
		return nil, err
	}
	return parse(text, name)
}

// readAll returns the uncompressed bytes of r.
func readAll(r io.Reader, name string) ([]byte, error) {
	text, err := unpack.ReadAll(unpack.NewReader(r, MaxBytes))
	var content *unpack.Error
	switch {
	case errors.As(err, &content) && content.TooLong:
		return nil, &SyntaxError{Name: name, Line: 1, Column: 1, Problem: err.Error() + "; a frontier of fewer points is shorter, as perseus frontier --points 1000 makes it"}
	case errors.As(err, &content):
		return nil, &SyntaxError{Name: name, Line: 1, Column: 1, Problem: err.Error()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// parse returns the file with the given text, which it keeps.
func parse(text []byte, name string) (*File, error) {
	p := &parser{name: name, text: text}
	format, points := p.survey()
	if kind := filekind.Of(text); kind != "" && kind != filekind.Frontier && (p.err != nil || format != Format) {
		return nil, &SyntaxError{Name: name, Line: 1, Column: 1, Problem: "this seems to be " + kind + "; expected a frontier, as perseus frontier computes it from a profile"}
	}
	if p.err != nil {
		return nil, p.err
	}
	if format != Format {
		return nil, &VersionError{Name: name, Found: format}
	}
	p.pos = 0
	f := &File{}
	p.header(&f.Header)
	p.end()
	if p.err == nil {
		p.pos = points
		p.path = []step{{field: "points"}}
		p.array(func(int) { p.point(f) })
	}
	if p.err == nil && len(f.Points) == 0 {
		p.fail(points, "there is no point")
	}
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

// survey passes over the whole text and returns its format and where its points
// start. A file of another version need not look like one of this.
func (p *parser) survey() (format string, points int) {
	p.peek()
	start := p.pos
	p.expect('{')
	for i := 0; p.err == nil && !p.take('}'); i++ {
		if i > 0 {
			p.expect(',')
		}
		key := p.string()
		p.expect(':')
		c := p.peek()
		switch {
		case key == "format" && c == '"':
			format = p.string()
		case key == "points":
			points = p.pos
			p.skip()
		default:
			p.skip()
		}
	}
	p.end()
	if p.err == nil && format == "" {
		p.fail(start, "not a frontier file: a text field \"format\" is missing")
	}
	return format, points
}

func (p *parser) header(h *Header) {
	times := func(t *unit.Time) func() { return func() { *t = p.time(unit.MaxMakespan) } }
	count := p.count
	p.object(append(p.terms(&h.Terms),
		fieldReader{name: "format", read: func() { p.string() }},
		fieldReader{name: "schedule", read: func() { h.Schedule = p.string() }},
		fieldReader{name: "ranks", read: count(&h.Ranks, 0, maxOps)},
		fieldReader{name: "chunks", read: count(&h.Chunks, 1, maxOps)},
		fieldReader{name: "microbatches", read: count(&h.Microbatches, 1, maxOps)},
		fieldReader{name: "group_size", read: count(&h.Group, 1, maxOps), optional: true},
		fieldReader{name: "stages", read: count(&h.Stages, 1, maxOps)},
		fieldReader{name: "gpus_per_rank", read: count(&h.GPUsPerRank, 1, maxOps)},
		fieldReader{name: "ops", read: count(&h.Ops, 1, maxOps)},
		fieldReader{name: "arcs", read: count(&h.Arcs, 1, maxArcs)},
		fieldReader{name: "blocking_power_w", read: func() {
			p.array(func(int) { h.BlockingPower = append(h.BlockingPower, p.power(unit.MaxPower)) })
		}},
		fieldReader{name: "profile", read: func() { p.profile(&h.Profile) }},
		fieldReader{name: "t_min_s", read: times(&h.TMin)},
		fieldReader{name: "t_max_s", read: times(&h.TMax)},
		fieldReader{name: "least_energy_time_s", read: times(&h.LeastEnergyTime)},
		fieldReader{name: "max_clock_time_s", read: times(&h.MaxClockTime)},
		fieldReader{name: "max_clock_energy_j", read: func() { h.MaxClockEnergy = p.energy() }},
		fieldReader{name: "line_gap", read: func() {
			if h.LineGap = p.ratio(); h.LineGap == 0 {
				p.failValue(p.pos, "0 means that all points are there: leave it out")
			}
		}, optional: true},
		fieldReader{name: "quantum_w", read: func() {
			if h.Quantum = p.power(unit.MaxPower); h.Quantum == 0 {
				p.failValue(p.pos, "0 means that no slope was rounded: leave it out")
			}
		}, optional: true},
		fieldReader{name: "order", read: func() { p.order(h) }, optional: true},
		fieldReader{name: "options", read: func() { p.array(func(int) { p.curve(h) }) }},
		fieldReader{name: "points", read: p.skip},
	)...)
}

func (p *parser) profile(f *Profile) {
	p.object(
		fieldReader{name: "sha256", read: func() { f.SHA256 = p.string() }},
		fieldReader{name: "time_unit", read: func() { f.TimeUnit = p.string() }},
		fieldReader{name: "energy_unit", read: func() { f.EnergyUnit = p.string() }},
		fieldReader{name: "frequency_unit", read: func() { f.FrequencyUnit = p.string() }},
		fieldReader{name: "skipped_rows", read: func() { f.SkippedRows = int(p.integer(0, math.MaxInt32)) }},
	)
}

func (p *parser) order(h *Header) {
	p.array(func(int) {
		var actions []string
		p.array(func(int) { actions = append(actions, p.string()) })
		h.Order = append(h.Order, actions)
	})
	if len(h.Order) == 0 {
		p.failValue(p.pos, "it is empty: leave it out where the schedule's name says it")
	}
}

func (p *parser) curve(h *Header) {
	var c Curve
	p.object(
		fieldReader{name: "stage", read: func() { c.Stage = int(p.integer(0, maxOps)) }},
		fieldReader{name: "instruction", read: func() { c.Instruction = p.string() }},
		fieldReader{name: "blocking_power_w", read: func() { c.BlockingPower = p.power(unit.MaxPower) }},
		fieldReader{name: "second_stage", read: p.count(&c.SecondStage, 0, maxOps), optional: true},
		fieldReader{name: "cap_mhz", read: func() { c.CapMHz = int32(p.integer(1, math.MaxInt32)) }, optional: true},
		fieldReader{name: "time_factor", read: func() { c.Factors.Time = p.factor() }, optional: true},
		fieldReader{name: "energy_factor", read: func() { c.Factors.Energy = p.factor() }, optional: true},
		fieldReader{name: "options", read: func() {
			p.array(func(int) {
				var o dag.Option
				p.option(&o)
				c.Options = append(c.Options, o)
			})
		}},
		fieldReader{name: "top", read: func() { p.option(&c.Top) }},
	)
	for i := range c.Options {
		c.Options[i].Effective = dag.Effective(c.Options[i].Energy, c.BlockingPower, c.Options[i].Time)
	}
	c.Top.Effective = dag.Effective(c.Top.Energy, c.BlockingPower, c.Top.Time)
	h.Curves = append(h.Curves, c)
}

func (p *parser) option(o *dag.Option) {
	p.object(
		fieldReader{name: "knobs", read: func() {
			p.object(fieldReader{name: "clock_mhz", read: func() { o.Knobs.ClockMHz = int32(p.integer(0, math.MaxInt32)) }})
		}},
		fieldReader{name: "time_s", read: func() { o.Time = p.time(unit.MaxOpTime) }},
		fieldReader{name: "energy_j", read: func() {
			o.Energy = unit.Energy(p.decimal(12, int64(-unit.MaxOpEnergy), int64(unit.MaxOpEnergy)))
		}},
	)
}

func (p *parser) point(f *File) {
	var v Point
	var e encoded
	list := func(b *[]byte) func() {
		return func() {
			p.peek()
			start := p.pos
			p.changes(func(int64, int, bool) bool { return true })
			*b = p.text[start:p.pos:p.pos]
		}
	}
	p.object(
		fieldReader{name: "time_s", read: func() { v.Time = p.time(unit.MaxMakespan) }},
		fieldReader{name: "relaxed_time_s", read: func() { v.RelaxedTime = p.time(unit.MaxMakespan) }},
		fieldReader{name: "energy_j", read: func() { v.Energy = p.energy() }},
		fieldReader{name: "effective_energy_j", read: func() { v.Effective = p.energy() }},
		fieldReader{name: "bound_j", read: func() { v.Bound = p.energy() }},
		fieldReader{name: "gap", read: func() { v.Gap = p.ratio() }},
		fieldReader{name: "price_w", read: func() { v.Price = p.power(unit.MaxFlow) }},
		fieldReader{name: "knobs", read: list(&e.knobs)},
		fieldReader{name: "flow", read: list(&e.flow)},
	)
	f.Points = append(f.Points, v)
	f.encoded = append(f.encoded, e)
}

func (p *parser) time(most unit.Time) unit.Time { return unit.Time(p.decimal(9, 0, int64(most))) }

func (p *parser) power(most unit.Power) unit.Power { return unit.Power(p.decimal(6, 0, int64(most))) }

func (p *parser) energy() Nanojoules {
	return Nanojoules(p.decimal(9, math.MinInt64, math.MaxInt64))
}
func (p *parser) ratio() Ratio { return Ratio(p.decimal(9, math.MinInt64, math.MaxInt64)) }

// changes reads a list of changes as [changes.encode] writes it and calls apply
// for each, until apply returns false; first says that another size begins.
func (p *parser) changes(apply func(by int64, index int, first bool) bool) {
	p.expect('[')
	for n := 0; p.err == nil && !p.take(']'); n++ {
		if n > 0 {
			p.expect(',')
		}
		p.expect('[')
		by := p.listed(math.MinInt64, math.MaxInt64)
		p.expect(',')
		index := p.listed(0, maxArcs)
		for first := true; p.err == nil; first = false {
			if !apply(by, int(index), first) {
				return
			}
			if p.pos < len(p.text) && p.text[p.pos] == ',' {
				p.pos++
			} else if p.take(']') {
				break
			} else {
				p.expect(',')
			}
			index += p.listed(0, maxArcs)
		}
	}
}

// listed reads an integer of a list, quickly where it is a short one.
func (p *parser) listed(least, most int64) int64 {
	var v int64
	i := p.pos
	for i < len(p.text) && i < p.pos+9 && p.text[i] >= '0' && p.text[i] <= '9' {
		v = 10*v + int64(p.text[i]-'0')
		i++
	}
	if i == p.pos || i == p.pos+9 || p.text[p.pos] == '0' && i > p.pos+1 ||
		i < len(p.text) && (p.text[i] != ',' && p.text[i] != ']') || v < least || v > most {
		return p.integer(least, most)
	}
	p.pos = i
	return v
}
