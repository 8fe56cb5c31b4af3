package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

// made returns the frontier of a profile's text.
func made(t testing.TB, text []byte, schedule string, size pipeline.Size, blocking unit.Power, opt characterize.Options, change ...func(*characterize.Job)) *frontierfile.File {
	p, err := profile.Read(bytes.NewReader(text), "P.csv", profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if size.Ranks == 0 {
		size.Ranks = p.Stages()
	}
	o, err := pipeline.Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	job := characterize.NewJob(p, o, blocking)
	for _, c := range change {
		c(&job)
	}
	f, err := characterize.Run(context.Background(), job, opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func shared(t testing.TB, name string) []byte {
	b, err := os.ReadFile(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMeasured(t *testing.T) {
	for _, tt := range []struct {
		profile  string
		blocking unit.Power
	}{{"gpt3-175b-a100-sxm.csv", 83_640_000}, {"bloom-176b-a40.csv", 70_380_000}} {
		text := shared(t, tt.profile)
		for _, schedule := range []string{"1f1b", "gpipe"} {
			for _, m := range []int{1, 5, 24} {
				for _, opt := range []characterize.Options{{}, {Points: 20}} {
					f := made(t, text, schedule, pipeline.Size{Microbatches: m}, tt.blocking, opt)
					r, err := File(f, text)
					if err != nil {
						t.Errorf("%s %s %d %+v: %v", tt.profile, schedule, m, opt, err)
						continue
					}
					if j := r.Inexact.Joules(); j > 1e-3 {
						t.Errorf("%s %s %d %+v: exact to %g J only", tt.profile, schedule, m, opt, j)
					}
				}
			}
		}
	}
}

// TestSchedules has the orders and dependencies of all schedules agree with
// those of package pipeline.
func TestSchedules(t *testing.T) {
	tested := 0
	for _, s := range pipeline.Schedules() {
		for _, size := range []pipeline.Size{
			s.Example,
			{Ranks: 1, Microbatches: 1},
			{Ranks: 1, Microbatches: 3},
			{Ranks: 2, Microbatches: 1},
			{Ranks: 2, Microbatches: 4},
			{Ranks: 4, Microbatches: 2},
			{Ranks: 4, Chunks: 2, Microbatches: 8},
			{Ranks: 4, Chunks: 3, Microbatches: 8, Group: 4},
			{Ranks: 5, Microbatches: 11},
		} {
			o, err := pipeline.Build(s.Name, size)
			if err != nil {
				continue
			}
			tested++
			want, err := o.Graph()
			if err != nil {
				t.Fatal(err)
			}
			h := frontierfile.Header{
				Schedule: s.Name, Ranks: len(o.Ranks), Microbatches: o.Size.Microbatches, Stages: o.Stages, Chunks: o.Size.Chunks,
				Ops: want.Ops, BlockingPower: make([]unit.Power, len(o.Ranks)),
			}
			if s.Name != "gpipe" && s.Name != "1f1b" {
				h.Order = o.ToActions()
			}
			got, err := orderOf(&h)
			if err != nil {
				t.Errorf("%s %+v: %v", s.Name, size, err)
				continue
			}
			if !slices.Equal(got.graph.Arcs, want.Arcs) {
				t.Errorf("%s %+v: other dependencies", s.Name, size)
			}
			i := 0
			for rank, a := range o.All() {
				if x := got.ops[i]; x.rank != rank || x.stage != int(a.Stage) || x.instruction != a.Kind.Instruction() {
					t.Errorf("%s %+v: op %d is %+v, want %v on rank %d", s.Name, size, i, x, a, rank)
				}
				i++
			}
		}
	}
	if tested < 30 {
		t.Errorf("only %d orders were tested", tested)
	}
}

func TestOrderViolations(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		order      [][]string
	}{
		{"missing forward", "stage 0, microbatch 1: it needs a forward", [][]string{{"0F0", "0B0", "0B1"}}},
		{"twice", "0F0 is there twice", [][]string{{"0F0", "0F0", "0B0"}}},
		{"deadlock", "order: ", [][]string{{"0B0", "0F0"}}},
		{"B and I", "stage 0, microbatch 0: it needs", [][]string{{"0F0", "0B0", "0I0", "0W0"}}},
		{"I without W", "stage 0, microbatch 0: it needs", [][]string{{"0F0", "0I0"}}},
		{"backward of some", "stage 0, microbatch 1: it needs", [][]string{{"0F0", "0F1", "0B0"}}},
		{"two ranks", "stage 0, microbatch 0 is on ranks 0 and 1", [][]string{{"0F0"}, {"0B0"}}},
		{"no number", `action "F0" is not understood`, [][]string{{"F0"}}},
		{"no kind", `action "00" is not understood`, [][]string{{"00"}}},
		{"negative", `action "0F-1" is not understood`, [][]string{{"0F-1"}}},
		{"unknown kind", `action "0X0" is not understood`, [][]string{{"0X0"}}},
		{"half a slot", `action "(0F0)" is not understood`, [][]string{{"(0F0)"}}},
		{"number too large", `is not understood`, [][]string{{"0F99999999999999999999"}}},
		{"many cells", "need a forward each", [][]string{{"0F0", "9999999F9999999"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := frontierfile.Header{Schedule: "custom", Ranks: len(tt.order), Order: tt.order, BlockingPower: make([]unit.Power, len(tt.order))}
			h.Stages, h.Microbatches, h.Chunks = 1, 1, 1
			if strings.Contains(tt.want, "microbatch 1") {
				h.Microbatches = 2
			}
			if tt.name == "many cells" {
				h.Stages, h.Microbatches, h.Chunks = 10_000_000, 10_000_000, 2
			}
			_, err := orderOf(&h)
			var violation *Violation
			if !errors.As(err, &violation) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// TestTransfersAndFixed has every schedule verified with and without transfers and
// with each of the ops of a fixed time.
func TestTransfersAndFixed(t *testing.T) {
	for _, schedule := range []string{"1f1b", "gpipe", "gpipe-forward"} {
		for _, transfer := range []unit.Time{0, 1, 1_000_000} {
			for _, add := range []pipeline.Fixed{{}, {Load: true}, {ReduceGrad: true}, {Optimizer: true}, {Load: true, ReduceGrad: true, Optimizer: true}} {
				for _, size := range []pipeline.Size{{Ranks: 3, Microbatches: 1}, {Ranks: 3, Microbatches: 4}} {
					name := fmt.Sprintf("%s, transfers of %v, %+v, %d microbatches", schedule, transfer, add, size.Microbatches)
					text := invented(3)
					f := withTerms(t, text, schedule, size, transfer, add)
					if _, err := File(f, text); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					// One op more or less than there are is not what the file says.
					for _, by := range []int{-1, 1} {
						f.Header.Ops += by
						var violation *Violation
						if _, err := File(f, text); !errors.As(err, &violation) || violation.Field != "ops" {
							t.Errorf("%s: %d ops: %v", name, f.Header.Ops, err)
						}
						f.Header.Ops -= by
					}
				}
			}
		}
	}
}

// withTerms returns the frontier of a job with transfers and ops of a fixed time.
func withTerms(t testing.TB, text []byte, schedule string, size pipeline.Size, transfer unit.Time, add pipeline.Fixed) *frontierfile.File {
	t.Helper()
	p, err := profile.Read(bytes.NewReader(text), "P.csv", profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := pipeline.Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	job := characterize.NewJob(p, o.WithFixed(add), 20*unit.Watt)
	job.Terms.TransferTime = transfer
	for _, f := range []struct {
		wanted bool
		kind   pipeline.Kind
	}{{add.Load, pipeline.Load}, {add.Optimizer, pipeline.Optimizer}, {add.ReduceGrad, pipeline.ReduceGrad}} {
		if f.wanted {
			job.Terms.Fixed = append(job.Terms.Fixed, frontierfile.Fixed{Instruction: f.kind.Instruction(), Time: 5_000_000})
		}
	}
	f, err := characterize.Run(context.Background(), job, characterize.Options{Points: 4})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLargeSizes has sizes that a file cannot hold refused before they cost memory.
func TestLargeSizes(t *testing.T) {
	h := frontierfile.Header{Schedule: "1f1b", Ranks: 2, Chunks: 1, Microbatches: 1 << 24, Stages: 2, Ops: 8, BlockingPower: make([]unit.Power, 2)}
	for field, order := range map[string][][]string{"ops": nil, "order": {{"0F0"}, {"1F0"}}} {
		h.Order, h.Fixed = order, []frontierfile.Fixed{{Instruction: "load", Time: 1}}
		var violation *Violation
		if _, err := orderOf(&h); !errors.As(err, &violation) || violation.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestProfiles has the options agree with those that package profile reads, on
// profiles of all forms.
func TestProfiles(t *testing.T) {
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		units := profile.Units{
			Time:      rapid.SampledFrom([]string{"s", "ms", "us", "ns"}).Draw(t, "time unit"),
			Energy:    rapid.SampledFrom([]string{"J", "mJ", "uJ", "kJ"}).Draw(t, "energy unit"),
			Frequency: rapid.SampledFrom([]string{"MHz", "kHz", "Hz", "GHz"}).Draw(t, "frequency unit"),
		}
		ranked := rapid.Bool().Draw(t, "ranked")
		columns := []string{"stage", "instruction", "frequency", "time", "energy"}
		members := 1
		if ranked {
			columns = append([]string{"rank", "dp_rank", "pp_rank", "tp_rank", "note"}, columns...)
			members = rapid.IntRange(1, 3).Draw(t, "members")
		}
		columns = rapid.Permutation(columns).Draw(t, "columns")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		text := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark") + strings.Join(columns, ",") + end
		for stage := range rapid.IntRange(1, 2).Draw(t, "stages") {
			for _, instruction := range []string{"forward", "backward"} {
				for clock := 1000; clock < 1000+100*rapid.IntRange(1, 4).Draw(t, "clocks"); clock += 100 {
					for member := range members {
						for repeat := range rapid.IntRange(1, 4).Draw(t, "repeats") {
							time := rapid.Int64Range(1e6, 9e6).Draw(t, "ns")
							energy := time * rapid.Int64Range(50_000, 400_000).Draw(t, "mW")
							value := map[string]string{
								"rank": fmt.Sprint(stage*members + member + repeat*100), "dp_rank": fmt.Sprint(repeat), "pp_rank": fmt.Sprint(stage), "tp_rank": fmt.Sprint(member),
								"note": `"a, b"`, "stage": fmt.Sprint(stage), "instruction": instruction,
								"frequency": scaled(int64(clock), map[string]int{"MHz": 0, "kHz": -3, "Hz": -6, "GHz": 3}[units.Frequency]),
								"time":      scaled(time, map[string]int{"s": 9, "ms": 6, "us": 3, "ns": 0}[units.Time]),
								"energy":    scaled(energy, map[string]int{"J": 12, "mJ": 9, "uJ": 6, "kJ": 15}[units.Energy]),
							}
							switch rapid.IntRange(0, 60).Draw(t, "fault") {
							case 0:
								value["time"] = "nan"
							case 1:
								value["energy"] = "-" + value["energy"]
							case 2:
								value["time"] += "e3"
							case 3:
								value["frequency"] = " " + value["frequency"] + " "
							case 4:
								value["instruction"] = `"` + instruction + `"`
							case 5:
								value["energy"] += "7"
							case 6:
								continue
							}
							var cells []string
							for _, c := range columns {
								cells = append(cells, value[c])
							}
							text += strings.Join(cells, ",") + end
						}
					}
				}
			}
			if rapid.Bool().Draw(t, "blank") {
				text += end + strings.Join(columns, ",") + end
			}
		}
		p, err := profile.Read(strings.NewReader(text), "P.csv", profile.Options{Units: units, SkipBadRows: true})
		if err != nil {
			t.Skip(err)
		}
		read++
		m, err := readProfile(text, frontierfile.Profile{TimeUnit: units.Time, EnergyUnit: units.Energy, FrequencyUnit: units.Frequency, SkippedRows: p.Report.Skipped})
		if err != nil {
			t.Fatalf("%v; package profile says\n%s\n%s", err, strings.Join(p.Report.Lines(), "\n"), text)
		}
		if m.members != p.GPUsPerStage || m.stages != p.Stages() || m.rows != p.Report.Rows {
			t.Fatalf("%d GPUs, %d stages, %d rows; package profile has %d, %d and %d", m.members, m.stages, m.rows, p.GPUsPerStage, p.Stages(), p.Report.Rows)
		}
		for stage := range p.Stages() {
			for _, instruction := range p.Instructions() {
				want, err := p.Options(stage, instruction)
				if err != nil {
					t.Fatal(err)
				}
				if got := m.options[source{stage, instruction}]; !slices.Equal(got, want) {
					t.Fatalf("stage %d, %s: %v, package profile has %v\n%s", stage, instruction, got, want, text)
				}
			}
		}
		m, err = readProfile(text, frontierfile.Profile{TimeUnit: units.Time, EnergyUnit: units.Energy, FrequencyUnit: units.Frequency, SkippedRows: p.Report.Skipped + 1})
		if err == nil {
			t.Fatalf("a false number of skipped rows is taken: %+v", m)
		}
	})
	t.Logf("%d profiles were read", read)
}

// scaled writes v/10^digits.
func scaled(v int64, digits int) string {
	if digits < 0 {
		return fmt.Sprint(v) + strings.Repeat("0", -digits)
	}
	s := fmt.Sprintf("%0*d", digits+1, v)
	return s[:len(s)-digits] + strings.TrimSuffix("."+s[len(s)-digits:], ".")
}

func BenchmarkFile(b *testing.B) {
	text := shared(b, "gpt3-175b-a100-sxm.csv")
	for _, m := range []int{12, 96, 512} {
		b.Run("", func(b *testing.B) {
			f := made(b, text, "1f1b", pipeline.Size{Microbatches: m}, 83_640_000, characterize.Options{})
			for b.Loop() {
				if _, err := File(f, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReport has options counted as what they are: those of the profile once, those
// of the table's entries, of which there can be several for one instruction, all.
func TestReport(t *testing.T) {
	text := invented(2)
	f := made(t, text, "1f1b", pipeline.Size{Microbatches: 3}, 20*unit.Watt, characterize.Options{Points: 3}, func(j *characterize.Job) {
		j.Terms.MicrobatchFactors = []frontierfile.Factors{
			{Time: frontierfile.One, Energy: frontierfile.One}, {Time: 2 * frontierfile.One, Energy: frontierfile.One}, {Time: 3 * frontierfile.One, Energy: frontierfile.One},
		}
	})
	r, err := File(f, text)
	if err != nil {
		t.Fatal(err)
	}
	useful := 0
	for _, c := range f.Header.Curves {
		useful += len(c.Options)
	}
	if r.Measured != 24 || r.Useful != useful || useful <= r.Measured || r.Rows != 24 || r.Points != len(f.Points) || r.Header != &f.Header {
		t.Errorf("%+v, want 24 options measured and %d useful", r, useful)
	}
	lines := strings.Join(r.Lines(), "\n")
	for _, want := range []string{"24 rows, 24 options\n", fmt.Sprintf("options: %d useful ones in 12 entries of the table, derived anew\n", useful), "terms: ", "1f1b, 2 ranks, 2 stages, 3 microbatches, derived anew; 12 ops"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
}
