package watch

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
)

// reload returns what is left of v after it was saved and loaded.
func reload[T any](t *testing.T, v *T) *T {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	back := new(T)
	if err := json.Unmarshal(data, back); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestSavedGuardrail shows that a guardrail that is saved after each report says what one that stays in memory says.
func TestSavedGuardrail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kept, saved, trips := NewGuardrail(1, 1, 20), NewGuardrail(1, 1, 20), 0
	for range 500 {
		n, mean := rng.IntN(8), 0.99+0.04*rng.Float64()
		want, got := kept.Observe(n, mean), saved.Observe(n, mean)
		if got != want {
			t.Fatalf("%+v after loading, want %+v", got, want)
		}
		if want.Tripped {
			trips++
		}
		saved = reload(t, saved)
	}
	if trips == 0 || trips == 500 {
		t.Errorf("%d of 500 reports trip: the test shows nothing", trips)
	}
}

// TestSavedMeasurement shows the same of a measurement.
func TestSavedMeasurement(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kept, saved := NewMeasurement(4, 10, 1), NewMeasurement(4, 10, 1)
	for i := range kept.Iterations() {
		seconds, joules := 1+0.01*rng.Float64(), 100+rng.Float64()
		if kept.Arm(i) == Maximum {
			joules *= 1.2
		}
		kept.Observe(i, seconds, joules)
		saved.Observe(i, seconds, joules)
		saved = reload(t, saved)
		if !reflect.DeepEqual(saved, kept) {
			t.Fatalf("iteration %d: %+v after loading, want %+v", i, saved, kept)
		}
	}
	saving, slowdown, ok := saved.Result()
	wantSaving, wantSlowdown, wantOK := kept.Result()
	if saving != wantSaving || slowdown != wantSlowdown || ok != wantOK || !ok || !kept.Done() || saving.Low < 10 {
		t.Errorf("%+v %+v %t after loading, want %+v %+v %t", saving, slowdown, ok, wantSaving, wantSlowdown, wantOK)
	}
}
