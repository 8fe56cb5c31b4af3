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
		f.Add(json(f, made(f, profile, s.name, s.size, 20*unit.Watt, s.opt)), profile)
	}
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
			if _, err := Read(bytes.NewReader(json(t, file)), "F.json", profile); err != nil {
				t.Fatal(err)
			}
		}
	})
}
