package plan

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// The golden files in testdata are literalPlan in each form, checked by reading;
// go test ./plan -update writes them again.
var update = flag.Bool("update", false, "write the golden files again")

// literalPlan is a plan of two ranks with something unusual in each field.
func literalPlan() *Plan {
	return &Plan{
		Request:  Request{Goal: AveragePower, Power: 15 * unit.Watt / 2, Margin: One / 200, Effort: round.Normal},
		Feasible: false, Note: "no plan draws as little as 7.5W: this one draws the least, 8.000001W", Point: -1,
		RelaxedTime: 3 * unit.Second, Time: 3*unit.Second - 1, Energy: 24_000_000_001, Effective: -1,
		Bound: 23_999_999_999, Gap: 1, Price: 123_456, AveragePower: 8_000_001,
		WaitTime: 3*unit.Second - 1, WaitEnergy: 24_000_000_001,
		BaselineTime: 2 * unit.Second, BaselineEnergy: 20_000_000_000, Saving: -200_000_000,
		Schedule: "custom", Microbatches: 1, ProfileSHA256: strings.Repeat("0123456789abcdef", 4),
		Ranks: [][]Op{
			{
				{Stage: 0, Microbatch: 0, Instruction: "forward", Knobs: dag.Knobs{ClockMHz: 1410}, Start: 0, Time: unit.Second, Energy: 8 * unit.Joule},
				{Stage: 0, Microbatch: 0, Instruction: "backward", Knobs: dag.Knobs{ClockMHz: 210}, Start: 2*unit.Second - 1, Time: unit.Second, Energy: -1},
			},
			{
				{Stage: 1, Microbatch: 0, Instruction: "it's \\ \"odd\",\nλ", Knobs: dag.Knobs{}, Start: unit.Second, Time: unit.Second - 1, Energy: unit.Joule / 8},
			},
			{},
		},
	}
}

func examplePlan(t *testing.T) *Plan {
	t.Helper()
	f := exampleFrontier(t)
	p, err := quick(t, f).Make(Request{Goal: Straggler, Factor: 12 * One / 10, Effort: round.Fast})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGolden(t *testing.T) {
	p := literalPlan()
	for _, test := range []struct {
		name  string
		write func(*Plan, *bytes.Buffer) error
	}{
		{"plan.csv", func(p *Plan, b *bytes.Buffer) error { return p.WriteCSV(b) }},
		{"plan.json", func(p *Plan, b *bytes.Buffer) error { return p.WriteJSON(b) }},
		{"plan.py", func(p *Plan, b *bytes.Buffer) error { return p.WriteZeus(b) }},
	} {
		path := filepath.Join("testdata", test.name)
		var got bytes.Buffer
		if err := test.write(p, &got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs; go test ./plan -update writes it again:\n%s", path, &got)
		}
	}
}

// TestFormsAgree reads the three forms of a plan back and compares them.
func TestFormsAgree(t *testing.T) {
	p := examplePlan(t)
	var table, object, literal bytes.Buffer
	for _, err := range []error{p.WriteCSV(&table), p.WriteJSON(&object), p.WriteZeus(&literal)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Format, Goal string
		Factor       json.Number `json:"asked_factor"`
		Time         json.Number `json:"time_s"`
		Ranks        []struct {
			Rank int
			Ops  []struct {
				Stage, Microbatch int
				Instruction       string
				Start             json.Number `json:"start_s"`
				Time              json.Number `json:"time_s"`
				Energy            json.Number `json:"energy_j"`
				Knobs             struct {
					Clock int `json:"clock_mhz"`
				}
			}
		}
	}
	if err := json.Unmarshal(object.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if read.Format != Format || read.Goal != "straggler" || read.Factor != "1.2" || read.Time.String()+"s" != p.Time.String() {
		t.Errorf("JSON header %+v", read)
	}
	at := 1
	for rank, r := range read.Ranks {
		var line []string
		for _, o := range r.Ops {
			want := []string{
				strconv.Itoa(rank), strconv.Itoa(o.Stage), strconv.Itoa(o.Microbatch), o.Instruction,
				strconv.Itoa(o.Knobs.Clock), o.Start.String(), o.Time.String(), o.Energy.String(),
			}
			if r.Rank != rank || strings.Join(rows[at], ",") != strings.Join(want, ",") {
				t.Fatalf("CSV row %q, JSON %q of rank %d", rows[at], want, r.Rank)
			}
			line = append(line, "('"+o.Instruction+"', "+strconv.Itoa(o.Knobs.Clock)+")")
			at++
		}
		if want := "[" + strings.Join(line, ", ") + "],\n"; !strings.Contains(literal.String(), want) {
			t.Errorf("rank %d is missing in the literal: %s", rank, want)
		}
	}
	if at != len(rows) {
		t.Errorf("%d rows in CSV, %d ops in JSON", len(rows)-1, at-1)
	}
}

// TestZeusLiteral has Python evaluate the file as Zeus does.
func TestZeusLiteral(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("python3 is not installed")
		}
		t.Skip("python3 is not installed")
	}
	p := examplePlan(t)
	var literal bytes.Buffer
	if err := p.WriteZeus(&literal); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", "import sys; v = eval(sys.stdin.read())\n"+
		"assert type(v) is list and all(type(r) is list for r in v)\n"+
		"assert all(type(o) is tuple and type(o[0]) is str and type(o[1]) is int and len(o) == 2 for r in v for o in r)\n"+
		"print(len(v), sum(len(r) for r in v))")
	cmd.Stdin = &literal
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "4 48" {
		t.Errorf("%s, %v", out, err)
	}
}
