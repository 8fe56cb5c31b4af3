package store

import (
	"path/filepath"
	"sync"
	"testing"
)

// BenchmarkAddReport is 64 callers that each add durable reports one after the other.
func BenchmarkAddReport(b *testing.B) {
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			database := filepath.Join(b.TempDir(), "p.db")
			if name == "postgres" {
				server, err := postgres()
				if err != nil {
					b.Skip(err)
				}
				if database, err = server.Database(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			s, err := Open(b.Context(), database, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.Update(b.Context(), func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) }); err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 500)
			next := make(chan struct{}, 64)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for range next {
						if err := s.Update(b.Context(), func(x *Tx) error { x.Publish("a"); return x.AddReport("a", 1, body) }); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for range b.N {
				next <- struct{}{}
			}
			close(next)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}
