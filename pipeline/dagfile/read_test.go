package dagfile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

const small = `{
  "format": "perseus-dag/1",
  "comment": "two stages",
  "resources": [
    {"name": "gpu0", "blocking_power_w": 80},
    {"name": "gpu1", "blocking_power_w": 60.5}
  ],
  "curves": [
    {"name": "forward", "options": [
      {"clock_mhz": 1410, "time_s": 0.030, "energy_j": 9},
      {"clock_mhz": 1200, "time_s": 0.035, "energy_j": 8}
    ]}
  ],
  "ops": [
    {"name": "f0", "resource": "gpu0", "curve": "forward"},
    {"name": "send", "time_s": 4e-4},
    {"name": "f1", "resource": "gpu1", "curve": "forward"},
    {"name": "b0", "resource": "gpu0", "options": [{"time_s": 0.06, "energy_j": 20}]},
    {"name": "reduce", "resource": "gpu0", "time_s": 0.01, "energy_j": 1.5}
  ],
  "edges": [["f0", "send"], ["send", "f1"], ["f1", "b0"], ["f0", "b0"]]
}`

func TestRead(t *testing.T) {
	f, err := Read(strings.NewReader(small), "small.json")
	if err != nil {
		t.Fatal(err)
	}
	p := f.Problem
	// gpu0 runs f0, b0, reduce in this order: two arcs, one of them given as an edge too.
	want := []dag.Arc{{From: 0, To: 1}, {From: 0, To: 3}, {From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 4}}
	if got := p.Graph.Arcs[:p.Graph.Dependencies]; !slices.Equal(got, want) {
		t.Errorf("arcs %v, want %v", got, want)
	}
	if p.BlockingPower != 140_500_000 {
		t.Errorf("blocking power %v", p.BlockingPower)
	}
	// The same options cost something else on a GPU that draws less.
	if p.CurveOf[0] == p.CurveOf[2] || len(p.Curves) != 5 {
		t.Errorf("curves of ops %v", p.CurveOf)
	}
	start := make([]unit.Time, p.Graph.Ops)
	cost := p.Evaluate(start, func(op int32) dag.Option { return p.Curve(op).Fastest() })
	if cost.Time != 130_400_000 {
		t.Errorf("makespan %v", cost.Time)
	}
	if send := p.Curve(1).Fastest(); send.Energy != 0 || send.Effective != 0 {
		t.Errorf("send costs %v", send)
	}
	names := make([]string, 0, 5)
	for _, op := range f.Ops {
		names = append(names, op.Name)
	}
	if got := strings.Join(names, " "); got != "f0 send f1 b0 reduce" || f.Ops[1].Resource != -1 || f.Ops[2].Resource != 1 {
		t.Errorf("ops %+v", f.Ops)
	}
}

func TestNumbersAreRounded(t *testing.T) {
	f, err := Read(strings.NewReader(`{"format": "perseus-dag/1", "ops": [
		{"name": "a", "time_s": 1.0000000001, "energy_j": 0.0000000000015},
		{"name": "b", "time_s": 0}]}`), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	if o := f.Problem.Curve(0).Fastest(); o.Time != 1_000_000_001 || o.Energy != 2 {
		t.Errorf("got %+v", o)
	}
}

func TestReadErrors(t *testing.T) {
	replaced := func(old, new string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("%s is not in the sample", old)
		}
		return strings.Replace(small, old, new, 1)
	}
	for _, test := range []struct{ name, text, want string }{
		{"empty", ``, `x.json:1:1: the JSON ends too soon`},
		{"cut", small[:200], `the JSON ends too soon`},
		{"syntax", "{\n  \"format\": perseus}", `x.json:2:13: invalid character 'p'`},
		{"more", small + "{}", `there is more after the JSON value`},
		{"type", `{"format": 1}`, `x.json:1:12: format: found a number, expected a string`},
		{"a list", `[]`, `the file: found a array, expected a {…}`},
		{"version", replaced(`perseus-dag/1`, `perseus-dag/2`), `format "perseus-dag/2"; this version reads "perseus-dag/1"`},
		{"unknown field", replaced(`"time_s": 4e-4`, `"time": 4e-4`), `unknown field "time"`},
		{"double field", replaced(`"time_s": 4e-4`, `"time_s": 4e-4, "time_s": 5`), `x.json:16:45: the field "time_s" is there twice`},
		{"no ops", `{"format": "perseus-dag/1", "ops": []}`, `0 ops; there must be from 1 to`},
		{"op without name", replaced(`"name": "send"`, `"name": ""`), `op 2 has no name`},
		{"double op", replaced(`"name": "send"`, `"name": "f0"`), `op 2: the name "f0" is that of op 1`},
		{"double resource", replaced(`"name": "gpu1"`, `"name": "gpu0"`), `resource 2: the name "gpu0" is that of resource 1`},
		{"unknown resource", replaced(`"resource": "gpu1"`, `"resource": "gpu7"`), `op "f1": there is no resource "gpu7"`},
		{"unknown curve", replaced(`"curve": "forward"`, `"curve": "f"`), `op "f0": there is no curve "f"`},
		{"unknown op", replaced(`["send", "f1"]`, `["send", "f9"]`), `edge 2: there is no op "f9"`},
		{"edge of three", replaced(`["send", "f1"]`, `["send", "f1", "b0"]`), `edge 2: 3 names; an edge is [from, to]`},
		{"loop", replaced(`["send", "f1"]`, `["send", "send"]`), `edge 2: op "send" waits for itself`},
		{"cycle", replaced(`["f0", "send"]`, `["b0", "f0"]`), `ops wait for each other: "f0" waits for "b0" waits for "f0"`},
		{"nothing to run by", replaced(`, "time_s": 4e-4`, ``), `op "send": exactly one of curve, options and time_s is needed`},
		{"two ways", replaced(`"time_s": 4e-4`, `"time_s": 4e-4, "curve": "forward"`), `op "send": exactly one of`},
		{"energy alone", replaced(`"curve": "forward"}`, `"curve": "forward", "energy_j": 1}`), `op "f0": energy_j goes with time_s`},
		{"no time", replaced(`"time_s": 0.030, `, ``), `curve "forward": option 1: time_s is missing`},
		{"no clock", replaced(`"clock_mhz": 1200, `, ``), `curve "forward": option 2: clock_mhz is missing`},
		{"half a clock", replaced(`1200`, `1200.5`), `curve "forward": option 2: clock_mhz 1200.5 is not whole`},
		{"double clock", replaced(`1200`, `1410`), `curve "forward": option 2: clock_mhz 1410 is that of option 1`},
		{"negative time", replaced(`4e-4`, `-4e-4`), `op "send": an op's time -0.0004s is outside`},
		{"huge time", replaced(`4e-4`, `4e400`), `op "send": option 1: time_s: "4e400": out of range`},
		{"string", replaced(`4e-4`, `"4e-4"`), `op "send": option 1: time_s: "\"4e-4\"": not a decimal number`},
		{"no options", replaced(`[{"time_s": 0.06, "energy_j": 20}]`, `[]`), `op "b0": there must be an option`},
		{"no power", replaced(`, "blocking_power_w": 80`, ``), `resource "gpu0": blocking_power_w is missing`},
		{"negative power", replaced(`80`, `-80`), `resource "gpu0": blocking_power_w is outside`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(test.text), "x.json")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
		})
	}
}

// TestSchemaHasTheFieldsOfTheReader keeps the two in step.
func TestSchemaHasTheFieldsOfTheReader(t *testing.T) {
	type object struct {
		Properties map[string]*object
		Items      *object
		Defs       map[string]*object `json:"$defs"`
	}
	var root object
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	p := root.Properties
	for _, test := range []struct {
		in   *object
		form any
	}{
		{&root, fileJSON{}},
		{p["resources"].Items, resourceJSON{}},
		{p["curves"].Items, curveJSON{}},
		{p["ops"].Items, opJSON{}},
		{root.Defs["options"].Items, optionJSON{}},
	} {
		form := reflect.TypeOf(test.form)
		if form.NumField() != len(test.in.Properties) {
			t.Errorf("%v has %d fields, the schema %d", form, form.NumField(), len(test.in.Properties))
		}
		for i := range form.NumField() {
			if name := form.Field(i).Tag.Get("json"); test.in.Properties[name] == nil {
				t.Errorf("the schema has no %q of %v", name, form)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	f.Add(`{"format":"perseus-dag/1","ops":[{"name":"a","time_s":1}],"edges":[]}`)
	f.Add(`{"format":"perseus-dag/1","ops":[{"name":"a","time_s":1},{"name":"b","time_s":1,"energy_j":-3}],"edges":[["a","b"],["b","a"]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f") {
				t.Errorf("the error does not begin with the file's name: %v", err)
			}
			return
		}
		p := file.Problem
		if p.Graph.Ops != len(file.Ops) || len(p.CurveOf) != len(file.Ops) {
			t.Fatalf("%d ops, %d in the graph", len(file.Ops), p.Graph.Ops)
		}
		at := make([]int, p.Graph.Ops)
		for i, op := range p.Graph.Order() {
			at[op] = i
		}
		last := map[int]int{}
		for i, op := range file.Ops {
			if before, ok := last[op.Resource]; ok && op.Resource >= 0 && at[before] > at[i] {
				t.Fatalf("ops %d and %d of a resource are out of order", before, i)
			}
			last[op.Resource] = i
		}
	})
}
