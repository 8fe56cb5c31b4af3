package page

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/simulate"
)

// traceEvent is an event of the trace-event format.
type traceEvent struct {
	Name     string                     `json:"name"`
	Category string                     `json:"cat"`
	Phase    string                     `json:"ph"`
	Pid      *int                       `json:"pid"`
	Tid      *int                       `json:"tid"`
	TS       json.Number                `json:"ts"`
	Duration json.Number                `json:"dur"`
	Args     map[string]json.RawMessage `json:"args"`
}

// checkTrace applies the rules of "Trace Event Format" (Google, 2016) for the
// events that perseus writes: the JSON object form; known phases; names; pid and
// tid; times in microseconds, not negative; metadata with the argument that its
// name asks for; on each track complete events in the order of time, without
// overlap, so that they do not nest. It returns the number of complete events.
func checkTrace(text string) (complete int, err error) {
	var trace struct {
		Unit   string       `json:"displayTimeUnit"`
		Events []traceEvent `json:"traceEvents"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&trace); err != nil {
		return 0, err
	}
	if trace.Unit != "ms" && trace.Unit != "ns" {
		return 0, fmt.Errorf("displayTimeUnit %q: the format knows ms and ns", trace.Unit)
	}
	type track struct{ pid, tid int }
	ends := map[track]*big.Rat{}
	named := map[track]bool{}
	processes := map[int]bool{}
	for i, e := range trace.Events {
		if e.Name == "" || e.Pid == nil || e.Tid == nil {
			return 0, fmt.Errorf("event %d: no name, pid or tid", i)
		}
		at := track{*e.Pid, *e.Tid}
		start, ok := new(big.Rat).SetString(e.TS.String())
		if !ok || start.Sign() < 0 {
			return 0, fmt.Errorf("event %d: ts %q", i, e.TS)
		}
		switch e.Phase {
		case "M":
			argument, known := map[string]string{
				"process_name": "name", "thread_name": "name", "process_labels": "labels",
				"process_sort_index": "sort_index", "thread_sort_index": "sort_index",
			}[e.Name]
			if _, has := e.Args[argument]; !known || !has {
				return 0, fmt.Errorf("event %d: metadata %s without its argument %s", i, e.Name, argument)
			}
			processes[*e.Pid] = processes[*e.Pid] || e.Name == "process_name"
			named[at] = named[at] || e.Name == "thread_name"
		case "X":
			length, ok := new(big.Rat).SetString(e.Duration.String())
			if !ok || length.Sign() < 0 {
				return 0, fmt.Errorf("event %d: dur %q", i, e.Duration)
			}
			if !processes[at.pid] || !named[at] {
				return 0, fmt.Errorf("event %d: its process or thread has no name yet", i)
			}
			if last := ends[at]; last != nil && start.Cmp(last) < 0 {
				return 0, fmt.Errorf("event %d: begins at %s, before the end of the one before it on its track, %s", i, start.FloatString(3), last.FloatString(3))
			}
			ends[at] = start.Add(start, length)
			complete++
		default:
			return 0, fmt.Errorf("event %d: phase %q", i, e.Phase)
		}
	}
	return complete, nil
}

// TestTrace: the trace keeps to the format's rules and has each op of both
// timelines, with its exact time and energy.
func TestTrace(t *testing.T) {
	f, p := small(t, 4, 0, 0)
	c := contents(t, f, p)
	text := written(t, func(w io.Writer) error { return WriteTrace(w, c.Timelines()) })
	n, err := checkTrace(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * f.Header.Ops; n != want {
		t.Errorf("%d ops, want %d", n, want)
	}
	var trace struct {
		Events []struct {
			Phase          string
			Pid, Tid       int
			TS, Dur        float64
			Name, Category string
			Args           struct {
				Energy float64 `json:"energy_j"`
				Clock  int     `json:"frequency_mhz"`
			}
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, `"ph"`, `"phase"`)), &trace); err != nil {
		t.Fatal(err)
	}
	energy, end := map[int]float64{}, map[int]float64{}
	for _, e := range trace.Events {
		if e.Phase == "X" {
			energy[e.Pid] += e.Args.Energy
			end[e.Pid] = max(end[e.Pid], e.TS+e.Dur)
			if e.Args.Clock < 200 {
				t.Errorf("%s at %d MHz", e.Name, e.Args.Clock)
			}
		}
	}
	for i, of := range []*simulate.Timeline{c.After, c.Before} {
		sum := of.Sum()
		if got, want := energy[i+1], sum.Compute.Joules(); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("process %d: %v J, want %v J", i+1, got, want)
		}
		if got, want := end[i+1], of.Time.Seconds()*1e6; math.Abs(got-want) > 1e-3 {
			t.Errorf("process %d ends at %v µs, want %v µs", i+1, got, want)
		}
	}
}

// TestTraceRules shows that the rules above find what is wrong.
func TestTraceRules(t *testing.T) {
	const names = `{"ph":"M","pid":1,"tid":0,"ts":0,"name":"process_name","args":{"name":"p"}},{"ph":"M","pid":1,"tid":1,"ts":0,"name":"thread_name","args":{"name":"t"}}`
	for events, want := range map[string]string{
		names + `,{"ph":"X","pid":1,"tid":1,"ts":0,"dur":2.5,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":2.5,"dur":1,"name":"b"}`:   "",
		names + `,{"ph":"X","pid":1,"tid":1,"ts":0,"dur":2.5,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":2.499,"dur":1,"name":"b"}`: "before the end",
		names + `,{"ph":"X","pid":1,"tid":1,"ts":-1,"dur":1,"name":"a"}`:                                                           "ts",
		names + `,{"ph":"X","pid":1,"tid":1,"ts":1,"name":"a"}`:                                                                    "dur",
		names + `,{"ph":"X","pid":1,"tid":2,"ts":1,"dur":1,"name":"a"}`:                                                            "has no name yet",
		names + `,{"ph":"X","pid":1,"ts":1,"dur":1,"name":"a"}`:                                                                    "no name, pid or tid",
		names + `,{"ph":"Q","pid":1,"tid":1,"ts":1,"dur":1,"name":"a"}`:                                                            "phase",
		`{"ph":"M","pid":1,"tid":0,"ts":0,"name":"process_name","args":{}}`:                                                        "without its argument",
	} {
		_, err := checkTrace(`{"displayTimeUnit":"ms","traceEvents":[` + events + `]}`)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", events, err, want)
		}
	}
}
