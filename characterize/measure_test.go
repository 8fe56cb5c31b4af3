package characterize

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// table is a profile in memory.
type table map[string][]dag.Option

func (t table) Stages() int { return len(t) / 2 }

func (t table) Options(stage int, instruction string) ([]dag.Option, error) {
	return t[strconv.Itoa(stage)+","+instruction], nil
}

// measured returns the options in a five-column profile without repeats.
func measured(t testing.TB, name string) table {
	b, err := os.ReadFile(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	m := table{}
	for _, line := range strings.Fields(string(b))[1:] {
		f := strings.Split(line, ",")
		clock, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		time, _, err := unit.ParseDecimal(f[3], 9, unit.Up)
		if err != nil {
			t.Fatal(err)
		}
		energy, _, err := unit.ParseDecimal(f[4], 12, unit.Nearest)
		if err != nil {
			t.Fatal(err)
		}
		k := f[0] + "," + f[1]
		m[k] = append(m[k], dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}, Time: unit.Time(time), Energy: unit.Energy(energy)})
	}
	return m
}

func job(t testing.TB, m table, ranks, microbatches int, blocking unit.Power) Job {
	o, err := pipeline.Build("1f1b", pipeline.Size{Ranks: ranks, Microbatches: microbatches})
	if err != nil {
		t.Fatal(err)
	}
	j := Job{
		Measurements: m, Order: o, GPUsPerRank: 1,
		Profile: frontierfile.Profile{SHA256: strings.Repeat("0", 64), TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"},
	}
	for range ranks {
		j.BlockingPower = append(j.BlockingPower, blocking)
	}
	return j
}

func a100(t testing.TB, microbatches int) Job {
	return job(t, measured(t, "gpt3-175b-a100-sxm.csv"), 8, microbatches, 83_640_000)
}

func run(t testing.TB, j Job, opt Options) *frontierfile.File {
	f, err := Run(context.Background(), j, opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func BenchmarkRun(b *testing.B) {
	for _, m := range []int{12, 96, 512} {
		b.Run("8x"+strconv.Itoa(m), func(b *testing.B) {
			j := a100(b, m)
			for b.Loop() {
				f := run(b, j, Options{})
				var w bytes.Buffer
				if _, err := f.WriteTo(&w); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w.Len())/1e6, "MB")
				b.ReportMetric(float64(len(f.Points)), "points")
			}
		})
	}
}

// BenchmarkEncodings reports the sizes that docs/adr/003 compares, in MB.
func BenchmarkEncodings(b *testing.B) {
	for _, m := range []int{12, 96, 512} {
		b.Run("8x"+strconv.Itoa(m), func(b *testing.B) {
			f := run(b, a100(b, m), Options{})
			for b.Loop() {
				var zipped bytes.Buffer
				z := gzip.NewWriter(&zipped)
				n, err := f.WriteTo(z)
				if err != nil || z.Close() != nil {
					b.Fatal(err)
				}
				full, varints := sizes(f)
				for name, size := range map[string]int{"json": int(n), "gzip": zipped.Len(), "full": full, "base64": varints * 4 / 3} {
					b.ReportMetric(float64(size)/1e6, name+"-MB")
				}
			}
		})
	}
}

// sizes returns the bytes of full lists and of differences as varints.
func sizes(f *frontierfile.File) (full, varints int) {
	before := make([]int64, f.Header.Ops+f.Header.Arcs)
	for p := range f.Walk() {
		last := 0
		for i := range before {
			v := int64(0)
			if i < len(p.Choice) {
				v = int64(p.Choice[i])
			} else {
				v = int64(p.Flow[i-len(p.Choice)])
			}
			full += len(strconv.FormatInt(v, 10)) + 1
			if v != before[i] {
				varints += len(binary.AppendUvarint(nil, uint64(i-last))) + len(binary.AppendVarint(nil, v-before[i]))
				last, before[i] = i, v
			}
		}
	}
	return full, varints
}
