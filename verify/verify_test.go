package verify

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// made returns the frontier of a profile's text.
func made(t testing.TB, text []byte, schedule string, size pipeline.Size, blocking unit.Power, opt characterize.Options) *frontierfile.File {
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
	f, err := characterize.Run(context.Background(), characterize.NewJob(p, profile.Units{}, o, blocking), opt)
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
			for _, m := range []int{1, 5, 12, 96} {
				for _, opt := range []characterize.Options{{}, {Points: 20}} {
					f := made(t, text, schedule, pipeline.Size{Microbatches: m}, tt.blocking, opt)
					r, err := File(f, text)
					if err != nil {
						t.Errorf("%s %s %d %+v: %v", tt.profile, schedule, m, opt, err)
						continue
					}
					t.Logf("%+v", r)
					if m == 96 {
						for _, l := range r.Lines() {
							t.Log(l)
						}
					}
				}
			}
		}
	}
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
