package profile_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/profile"
)

func BenchmarkRead(b *testing.B) {
	measured, err := os.ReadFile(shareddata.Shared(b, "data", "profiles", "bloom-176b-a40.csv"))
	if err != nil {
		b.Fatal(err)
	}
	var large bytes.Buffer
	if err := profile.Synthetic(profile.SyntheticConfig{Stages: 256, Repeats: 10}).WriteCSV(&large); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		text []byte
	}{{"bloom-176b-a40", measured}, {"stages=256,repeats=10", large.Bytes()}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := profile.Read(bytes.NewReader(c.text), "p.csv", profile.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSynthetic(b *testing.B) {
	for b.Loop() {
		profile.Synthetic(profile.SyntheticConfig{Stages: 64})
	}
}
