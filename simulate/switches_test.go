package simulate

import (
	"testing"

	"github.com/perseus-energy/perseus/plan"
)

// TestSwitchesCounted has the count not depend on whether switches take time.
func TestSwitchesCounted(t *testing.T) {
	f, p := example(t, 4)
	table, err := ParsePowerTable("60")
	if err != nil {
		t.Fatal(err)
	}
	for _, goal := range []plan.Goal{plan.Fastest, plan.LeastEnergy} {
		s, err := p.Plan(planOf(t, f, plan.Request{Goal: goal}))
		if err != nil {
			t.Fatal(err)
		}
		free := replay(t, Options{}, Member{Schedule: s}).Timelines[0]
		followed := replay(t, Options{Blocking: table}, Member{Schedule: s}).Timelines[0]
		total := 0
		for r := range free.Ranks {
			got, want := free.Ranks[r].Switches, followed.Ranks[r].Switches
			if total += got; got != want {
				t.Errorf("rank %d: %d switches, want %d", r, got, want)
			}
		}
		if total == 0 {
			t.Error("no switch")
		}
	}
}
