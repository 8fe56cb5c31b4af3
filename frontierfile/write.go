package frontierfile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

// WriteTo writes f as JSON: a line for each field of the header, each line of the
// option table and each point. The same file gives the same bytes.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	b := bufio.NewWriterSize(w, 1<<16)
	o := &output{w: b}
	o.header(&f.Header)
	o.raw("\"points\":[")
	for i := range f.Points {
		if i > 0 {
			o.raw(",")
		}
		o.point(&f.Points[i], f.encoded[i])
	}
	o.raw("\n]}\n")
	if o.err == nil {
		o.err = b.Flush()
	}
	return o.n, o.err
}

// output writes JSON and counts its bytes; the first error stays.
type output struct {
	w   *bufio.Writer
	n   int64
	err error
	buf []byte
}

func (o *output) write(b []byte) {
	if o.err == nil {
		n, err := o.w.Write(b)
		o.n, o.err = o.n+int64(n), err
	}
}

func (o *output) raw(s string) { o.write([]byte(s)) }

// value writes a field of the header on a line of its own.
func (o *output) value(name string, v any) {
	b, err := json.Marshal(v)
	if o.err == nil {
		o.err = err
	}
	o.raw(fmt.Sprintf("%q:%s,\n", name, b))
}

func (o *output) header(h *Header) {
	o.raw("{")
	o.value("format", Format)
	o.value("schedule", h.Schedule)
	o.value("ranks", h.Ranks)
	o.value("chunks", h.Chunks)
	o.value("microbatches", h.Microbatches)
	if h.Group != 0 {
		o.value("group_size", h.Group)
	}
	o.value("stages", h.Stages)
	o.value("gpus_per_rank", h.GPUsPerRank)
	o.value("ops", h.Ops)
	o.value("arcs", h.Arcs)
	o.value("blocking_power_w", append([]unit.Power{}, h.BlockingPower...)) // never null
	o.value("profile", struct {
		SHA256        string `json:"sha256"`
		TimeUnit      string `json:"time_unit"`
		EnergyUnit    string `json:"energy_unit"`
		FrequencyUnit string `json:"frequency_unit"`
		SkippedRows   int    `json:"skipped_rows"`
	}(h.Profile))
	o.terms(&h.Terms)
	o.value("t_min_s", h.TMin)
	o.value("t_max_s", h.TMax)
	o.value("least_energy_time_s", h.LeastEnergyTime)
	o.value("max_clock_time_s", h.MaxClockTime)
	o.value("max_clock_energy_j", h.MaxClockEnergy)
	if h.LineGap != 0 {
		o.value("line_gap", h.LineGap)
	}
	if h.Quantum != 0 {
		o.value("quantum_w", h.Quantum)
	}
	if h.Order != nil {
		o.value("order", h.Order)
	}
	o.raw("\"options\":[")
	for i := range h.Curves {
		if i > 0 {
			o.raw(",")
		}
		o.curve(&h.Curves[i])
	}
	o.raw("\n],\n")
}

func (o *output) curve(c *Curve) {
	b := fmt.Appendf(o.buf[:0], "\n{\"stage\":%d,\"instruction\":%s,\"blocking_power_w\":", c.Stage, quote(c.Instruction))
	b = c.BlockingPower.AppendDecimal(b)
	if c.Instruction == overlap {
		b = fmt.Appendf(b, ",\"second_stage\":%d", c.SecondStage)
	}
	if c.CapMHz != 0 {
		b = fmt.Appendf(b, ",\"cap_mhz\":%d", c.CapMHz)
	}
	if f := c.Factors.Time; f != 0 && f != One {
		b = fmt.Appendf(b, ",\"time_factor\":%v", f)
	}
	if f := c.Factors.Energy; f != 0 && f != One {
		b = fmt.Appendf(b, ",\"energy_factor\":%v", f)
	}
	b = append(b, `,"options":[`...)
	for i, option := range c.Options {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOption(append(b, '\n'), option)
	}
	b = appendOption(append(b, `],"top":`...), c.Top)
	o.buf = append(b, '}')
	o.write(o.buf)
}

func appendOption(b []byte, option dag.Option) []byte {
	b = fmt.Appendf(b, `{"knobs":{"clock_mhz":%d},"time_s":`, option.Knobs.ClockMHz)
	b = option.Time.AppendDecimal(b)
	b = append(b, `,"energy_j":`...)
	b = option.Energy.AppendDecimal(b)
	return append(b, '}')
}

func (o *output) point(p *Point, e encoded) {
	b := append(o.buf[:0], "\n{\"time_s\":"...)
	b = p.Time.AppendDecimal(b)
	b = append(b, `,"relaxed_time_s":`...)
	b = p.RelaxedTime.AppendDecimal(b)
	b = append(b, `,"energy_j":`...)
	b = p.Energy.AppendDecimal(b)
	b = append(b, `,"effective_energy_j":`...)
	b = p.Effective.AppendDecimal(b)
	b = append(b, `,"bound_j":`...)
	b = p.Bound.AppendDecimal(b)
	b = append(b, `,"gap":`...)
	b = p.Gap.AppendDecimal(b)
	b = append(b, `,"price_w":`...)
	b = p.Price.AppendDecimal(b)
	b = append(b, `,"knobs":`...)
	o.write(b)
	o.write(e.knobs)
	o.raw(`,"flow":`)
	o.write(e.flow)
	o.raw("}")
	o.buf = b
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return b
}
