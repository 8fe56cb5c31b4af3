package jobtext

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/unit"
)

// check returns an error where the lists of a schedule do not belong together.
func check(s *api.Schedules) error {
	for i := range s.Ranks {
		if err := checkOps(&s.Ranks[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkOps(r *api.RankSchedule) error {
	ops := len(r.Instruction)
	for name, n := range map[string]int{
		"op_stage": len(r.Stage), "op_microbatch": len(r.Microbatch), "op_frequency_mhz": len(r.FrequencyMHz),
		"op_start_ns": len(r.StartNs), "op_time_ns": len(r.TimeNs),
	} {
		if n != ops && n != 0 {
			return fmt.Errorf("rank %d: the server sent %d instructions and %d values of %s", r.Rank, ops, n, name)
		}
	}
	for _, i := range r.Instruction {
		if i < 0 || i >= len(r.Instructions) {
			return fmt.Errorf("rank %d: the server sent instruction %d of %d", r.Rank, i, len(r.Instructions))
		}
	}
	return nil
}

// op is one op of a schedule in text; what is not known is empty.
type op struct{ stage, microbatch, instruction, frequency, start, time string }

// opsOf returns what a rank is to do, in execution order: its ops, or the clocks of its instructions.
func opsOf(r *api.RankSchedule) []op {
	var all []op
	if r.Mode == api.Uniform {
		for _, name := range slices.Sorted(maps.Keys(r.Uniform)) {
			all = append(all, op{instruction: name, frequency: strconv.Itoa(r.Uniform[name])})
		}
		return all
	}
	if len(r.Instruction) == 0 {
		return []op{{frequency: "0"}}
	}
	number := func(list []int, i int) string {
		if i < len(list) {
			return strconv.Itoa(list[i])
		}
		return ""
	}
	decimal := func(list []int64, i int) string {
		if i < len(list) {
			return string(unit.Time(list[i]).AppendDecimal(nil))
		}
		return ""
	}
	for i, name := range r.Instruction {
		all = append(all, op{
			stage: number(r.Stage, i), microbatch: number(r.Microbatch, i), instruction: r.Instructions[name],
			frequency: number(r.FrequencyMHz, i), start: decimal(r.StartNs, i), time: decimal(r.TimeNs, i),
		})
	}
	return all
}

// WriteSchedulesCSV writes schedules as rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s, an op a line. A
// rank at one clock for each instruction has a line for each of these, one at maximum clock a single one, and both leave
// empty what they do not have. Nothing is written of schedules whose lists do not belong together.
func WriteSchedulesCSV(out io.Writer, s *api.Schedules) error {
	if err := check(s); err != nil {
		return err
	}
	c := csv.NewWriter(out)
	_ = c.Write([]string{"rank", "stage", "microbatch", "instruction", "frequency_mhz", "start_s", "time_s"})
	for i := range s.Ranks {
		rank := strconv.Itoa(s.Ranks[i].Rank)
		for _, o := range opsOf(&s.Ranks[i]) {
			_ = c.Write([]string{rank, o.stage, o.microbatch, o.instruction, o.frequency, o.start, o.time})
		}
	}
	c.Flush()
	return c.Error()
}

// WriteSchedules writes schedules for people: a table a rank, or a line where it has no plan. Nothing is written of
// schedules whose lists do not belong together.
func WriteSchedules(out io.Writer, s *api.Schedules) error {
	if err := check(s); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version %d from iteration %d, generation %d, %s", s.Version, s.EffectiveIteration, s.Generation, s.State)
	if s.Reason != "" {
		fmt.Fprintf(&b, ": %s", s.Reason)
	}
	text := excerpt.Line(b.String()) + "\n"
	if len(s.Ranks) == 0 {
		text += "no rank has a schedule yet: all train at maximum clock\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		ops := opsOf(r)
		var err error
		switch {
		case r.Mode == api.Uniform:
			var clocks []string
			for _, o := range ops {
				clocks = append(clocks, excerpt.Line(o.instruction)+" "+o.frequency+" MHz")
			}
			_, err = fmt.Fprintf(out, "\nrank %d: %s\n", r.Rank, strings.Join(clocks, ", "))
		case len(r.Instruction) == 0:
			_, err = fmt.Fprintf(out, "\nrank %d: maximum clock\n", r.Rank)
		default:
			if _, err = fmt.Fprintf(out, "\nrank %d: %s, iteration %s\n", r.Rank, report.Count(len(ops), "op"), report.Seconds(unit.Time(r.IterationNs))); err != nil {
				return err
			}
			t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(t, "STAGE\tMICROBATCH\tINSTRUCTION\tMHZ\tSTART_S\tTIME_S\t")
			for _, o := range ops {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t\n", o.stage, o.microbatch, excerpt.Line(o.instruction), o.frequency, o.start, o.time)
			}
			err = t.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
