package pipeline

import (
	"io"
	"strings"
	"testing"
)

// large has the 524,288 ops of 64 ranks, 4 chunks and 1,024 microbatches.
var large = Size{Ranks: 64, Chunks: 4, Microbatches: 1024}

func BenchmarkBuild64x4x1024(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		build(b, "interleaved-1f1b", large)
	}
}

func BenchmarkGraph64x4x1024(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := build(b, "interleaved-1f1b", large).Graph(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadCSV64x4x1024(b *testing.B) {
	var text strings.Builder
	if err := build(b, "interleaved-1f1b", large).WriteCSV(&text); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadCSV(strings.NewReader(text.String()), "large.csv"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLower64x4x1024(b *testing.B) {
	o := build(b, "interleaved-1f1b", large)
	b.ReportAllocs()
	for b.Loop() {
		if err := o.WriteTorchCSV(io.Discard, true); err != nil {
			b.Fatal(err)
		}
	}
}
