package baseline

import (
	"context"
	"os"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

func measured(t testing.TB, name string) *profile.Profile {
	t.Helper()
	r, err := os.Open(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := profile.Read(r, name, profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func job(t testing.TB, p *profile.Profile, schedule string, microbatches int, blocking unit.Power, o characterize.Options) (*frontierfile.File, *simulate.Pipeline) {
	t.Helper()
	size := pipeline.Size{Ranks: p.Stages(), Microbatches: microbatches}
	order, err := pipeline.Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	f, err := characterize.Run(context.Background(), characterize.NewJob(p, profile.Units{}, order, blocking), o)
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := simulate.New(&f.Header, p)
	if err != nil {
		t.Fatal(err)
	}
	return f, pipe
}

func TestPaper(t *testing.T) {
	for _, name := range []string{"gpt3-175b-a100-sxm", "bloom-176b-a40"} {
		p := measured(t, name+".csv")
		w, err := NewWorkload(name, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := Paper(context.Background(), w, round.Fast)
		if err != nil {
			t.Fatal(err)
		}
		if err := tables.WriteText(os.Stdout); err != nil {
			t.Fatal(err)
		}
		l, err := Emulate(context.Background(), w, 12e8, round.Fast)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.WriteText(os.Stdout)
		for _, m := range []int{12} {
			f, pipe := job(t, p, "1f1b", m, w.Blocking, characterize.Options{})
			c, err := Compare(f, pipe, CompareOptions{Noise: 1e7, Margins: []plan.Ratio{1e7}, Iterations: 20})
			if err != nil {
				t.Fatal(err)
			}
			_ = c.WriteText(os.Stdout)
		}
	}
}
