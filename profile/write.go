package profile

import (
	"bufio"
	"io"
	"strconv"
)

// WriteCSV writes all rows that p was made from, repeats too, in the form that
// [Read] reads and in units of s, J and MHz: with rank columns where a stage has
// several GPUs, without them where it has one. Reading it gives the same options
// and repeats, to the last digit. Replicas come out as repeats, and ranks are
// numbered anew. It fails only as w does.
func (p *Profile) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	header := shortHeader + "\n"
	if p.GPUsPerStage > 1 {
		header = "rank,dp_rank,pp_rank,tp_rank," + header
	}
	b.WriteString(header)
	var line []byte
	for _, r := range p.rows {
		line = line[:0]
		if p.GPUsPerStage > 1 {
			for _, n := range [...]int{int(r.stage)*p.GPUsPerStage + int(r.member), 0, int(r.stage), int(r.member)} {
				line = append(strconv.AppendInt(line, int64(n), 10), ',')
			}
		}
		line = append(strconv.AppendInt(line, int64(r.stage), 10), ',')
		line = append(append(line, p.instructions[r.instruction]...), ',')
		line = append(strconv.AppendInt(line, int64(r.clock), 10), ',')
		line = append(r.time.AppendDecimal(line), ',')
		line = append(r.energy.AppendDecimal(line), '\n')
		b.Write(line)
	}
	return b.Flush()
}
