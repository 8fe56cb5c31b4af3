package demo_test

import (
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/demo"
)

func TestViews(t *testing.T) {
	show := func(v demo.View) {
		v.Status("one")
		v.Status("a status that is too long")
		v.Line("first")
		v.Status("")
		v.Line("second")
	}
	var plain, screen strings.Builder
	show(demo.Lines(&plain))
	show(demo.Terminal(&screen, 11))
	if want := "first\nsecond\n"; plain.String() != want {
		t.Errorf("%q, want %q", plain.String(), want)
	}
	const clear = "\r\x1b[K"
	if want := "one" + clear + "a status t" + clear + "first\na status t" + clear + "second\n"; screen.String() != want {
		t.Errorf("%q, want %q", screen.String(), want)
	}
}

func TestResult(t *testing.T) {
	r := demo.Result{MaxTimeS: 2, MaxEnergyJ: 1000, TimeS: 2, EnergyJ: 900, Saving: 10, Checks: []demo.Check{{"it saves", true}, {"it is fast", false}}}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at maximum clock                  2.000 s       1000 J", "10.00 %", "ok      it saves", "FAILED  it is fast"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if err := r.Err(); err == nil || err.Error() != "does not hold: it is fast" {
		t.Error(err)
	}
	r.Checks = r.Checks[:1]
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
