package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/pipeline/dagfile"
	"github.com/perseus-energy/perseus/unit"
)

// FuzzFile has no file and no profile make it panic, or take a frontier that
// differs from the one that the profile gives.
func FuzzFile(f *testing.F) {
	profile := []byte("stage,instruction,frequency,time,energy\n" +
		"0,forward,900,0.07,20\n0,forward,1400,0.05,24\n0,backward,900,0.12,37\n0,backward,1400,0.09,45\n")
	for _, s := range []struct {
		name string
		size pipeline.Size
		opt  characterize.Options
	}{
		{"1f1b", pipeline.Size{Microbatches: 1}, characterize.Options{}},
		{"gpipe", pipeline.Size{Microbatches: 2}, characterize.Options{Points: 3}},
		{"zb-h1-quickstart", pipeline.Size{Microbatches: 1}, characterize.Options{}},
	} {
		f.Add(written(f, made(f, profile, s.name, s.size, 20*unit.Watt, s.opt)), profile)
	}
	two := append(bytes.Clone(profile), "1,forward,900,0.05,24\n1,backward,900,0.09,45\n"...)
	full := made(f, two, "zbv", pipeline.Size{Ranks: 1, Microbatches: 2}, 20*unit.Watt, characterize.Options{}, func(j *characterize.Job) {
		j.Order = j.Order.WithFixed(pipeline.Fixed{Load: true})
		j.Terms = frontierfile.Terms{
			Derived:           []string{"input-gradient=backward*0.5", "weight-gradient=backward*0.5"},
			Fixed:             []frontierfile.Fixed{{Instruction: "load", Time: 5}},
			Caps:              []frontierfile.Cap{{Rank: 0, MHz: 1000}},
			MicrobatchFactors: []frontierfile.Factors{{Time: frontierfile.One, Energy: frontierfile.One}, {Time: frontierfile.One / 2, Energy: frontierfile.One}},
			Parallel:          &frontierfile.Parallel{TP: 1, CP: 1, EP: 1, ETP: 1, DP: 2, PP: 1, RankOrder: "tp-cp-ep-dp-pp", Replica: -1},
		}
	})
	f.Add(written(f, full), two)
	graph := []byte(`{"format":"perseus-dag/1","resources":[{"name":"g","blocking_power_w":3}],"curves":[{"name":"c","options":[{"clock_mhz":1,"time_s":2,"energy_j":3}]}],"ops":[{"name":"a","resource":"g","curve":"c"},{"name":"b","time_s":1}],"edges":[["a","b"]]}`)
	d, err := dagfile.Read(bytes.NewReader(graph), "G.json")
	if err != nil {
		f.Fatal(err)
	}
	sum := sha256.Sum256(graph)
	g, err := characterize.Run(f.Context(), characterize.NewGraphJob(d, hex.EncodeToString(sum[:])), characterize.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written(f, g), graph)
	f.Fuzz(func(t *testing.T, text, profile []byte) {
		file, err := frontierfile.Read(bytes.NewReader(text), "F.json")
		if err != nil || file.Header.Ops > 1<<12 || file.Header.Arcs > 1<<13 {
			return
		}
		sum := sha256.Sum256(profile)
		file.Header.Profile.SHA256 = hex.EncodeToString(sum[:])
		_, err = File(file, profile)
		var violation *Violation
		if err != nil && !errors.As(err, &violation) {
			t.Fatalf("%T %v", err, err)
		}
		if err == nil {
			// Written and read again it is as true.
			if _, err := Read(bytes.NewReader(written(t, file)), "F.json", profile); err != nil {
				t.Fatal(err)
			}
		}
	})
}
