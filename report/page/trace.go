package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// WriteTrace writes timelines in Chrome's trace-event format (JSON object form),
// which Perfetto and chrome://tracing open: a process for each timeline, a thread
// for each rank, and a complete event (ph X) for each op. Times are microseconds,
// exact to the nanosecond. until is when each timeline's iteration ends; waiting
// has no event. Source: "Trace Event Format", Google, 2016.
func WriteTrace(w io.Writer, timelines []*simulate.Timeline) error {
	b := bufio.NewWriter(w)
	b.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	separator := "\n"
	event := func(format string, args ...any) {
		b.WriteString(separator)
		fmt.Fprintf(b, format, args...)
		separator = ",\n"
	}
	for i, t := range timelines {
		pid := i + 1
		event(`{"ph":"M","pid":%d,"tid":0,"ts":0,"name":"process_name","args":{"name":%s}}`, pid, quoted(t.Schedule.Name))
		event(`{"ph":"M","pid":%d,"tid":0,"ts":0,"name":"process_sort_index","args":{"sort_index":%d}}`, pid, i)
		for rank := range t.Schedule.Ranks() {
			event(`{"ph":"M","pid":%d,"tid":%d,"ts":0,"name":"thread_name","args":{"name":"rank %d"}}`, pid, rank+1, rank)
			event(`{"ph":"M","pid":%d,"tid":%d,"ts":0,"name":"thread_sort_index","args":{"sort_index":%d}}`, pid, rank+1, rank)
			for s := range t.Spans(rank, 0) {
				if s.Op < 0 {
					continue
				}
				o := opOf(t, rank, s)
				event(`{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":%s,"cat":%s,"args":{"stage":%d,"microbatch":%d,"frequency_mhz":%d,"energy_j":%s,"power_w":%s}}`,
					pid, rank+1, microseconds(s.Start), microseconds(s.Duration), quoted(o.name+" "+strconv.Itoa(o.microbatch)), quoted(o.name),
					o.stage, o.microbatch, o.clock, exact(o.energy), strconv.FormatFloat(o.watts, 'f', 3, 64))
			}
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// exact returns a quantity as a decimal without its unit.
func exact(v json.Marshaler) string {
	text, _ := v.MarshalJSON() // quantities never fail
	return string(text)
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // strings never fail
	return string(text)
}

// microseconds returns a time as a decimal, exact.
func microseconds(t unit.Time) string {
	return fmt.Sprintf("%d.%03d", t/1000, t%1000)
}

// opView is an op of a timeline, for people.
type opView struct {
	name              string
	stage, microbatch int
	clock             int32
	energy            unit.Energy
	// watts is what one GPU draws on average.
	watts float64
}

func opOf(t *simulate.Timeline, rank int, s simulate.Span) opView {
	p := t.Schedule
	from, _ := p.Rank(rank)
	a := p.Order.Ranks[rank][s.Op-from]
	o := opView{name: p.OpName(s.Op), stage: int(a.Stage), microbatch: int(a.Microbatch), clock: p.Option[s.Op].Knobs.ClockMHz, energy: t.Energy[s.Op]}
	if s.Duration > 0 {
		o.watts = o.energy.Joules() / s.Duration.Seconds() / float64(max(1, p.GPUsPerRank))
	}
	return o
}
