package plan

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes the plan as a table with a header line, one op a line, rank by
// rank, each rank's ops in execution order. Times and energies are exact.
func (p *Plan) WriteCSV(w io.Writer) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString("rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s,energy_j\n") // Flush reports
	var line []byte
	for rank, ops := range p.Ranks {
		for i := range ops {
			o := &ops[i]
			line = strconv.AppendInt(line[:0], int64(rank), 10)
			line = append(line, ',')
			line = strconv.AppendInt(line, int64(o.Stage), 10)
			line = append(line, ',')
			line = strconv.AppendInt(line, int64(o.Microbatch), 10)
			line = append(line, ',')
			line = append(line, quoted(o.Instruction)...)
			line = append(line, ',')
			line = strconv.AppendInt(line, int64(o.Knobs.ClockMHz), 10)
			line = append(line, ',')
			line = o.Start.AppendDecimal(line)
			line = append(line, ',')
			line = o.Time.AppendDecimal(line)
			line = append(line, ',')
			line = o.Energy.AppendDecimal(line)
			line = append(line, '\n')
			_, _ = out.Write(line)
		}
	}
	return out.Flush()
}

// quoted returns a field as CSV writes it (RFC 4180): the names of the ops of a
// job that is no pipeline may be any.
func quoted(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
