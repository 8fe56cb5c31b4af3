package profile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/profile"
)

// typed returns a profile of two stages, with a replacement.
func typed(old, replacement string) string {
	var b strings.Builder
	b.WriteString(header5)
	for stage := range 2 {
		for _, instruction := range []string{"forward", "backward"} {
			for _, clock := range []int{840, 960, 1410} {
				fmt.Fprintf(&b, "%d,%s,%d,%d.5,%d\n", stage, instruction, clock, 2000-clock, 100*clock)
			}
		}
	}
	return strings.Replace(b.String(), old, replacement, 1)
}

// TestTypos names the row that is mistyped, and leaves it out where that is asked.
func TestTypos(t *testing.T) {
	ms := profile.Units{Time: "ms", Energy: "mJ"}
	for _, c := range []struct{ name, old, replacement, want string }{
		{"a digit too many", "0,backward,960", "0,backward,9960", `p.csv:6:12: frequency "9960": stage 0, backward at 9960 MHz: no other op was measured at this clock, and the others at 840 … 1410 MHz; correct or delete the row`},
		{"a digit too few", "1,forward,840", "1,forward,84", `p.csv:8:11: frequency "84": stage 1, forward at 84 MHz: no other op was measured at this clock, and the others at 840 … 1410 MHz; correct or delete the row`},
		{"two letters swapped", "0,backward,960", "0,backwrad,960", `p.csv:6:3: instruction "backwrad": stage 0, backwrad at 960 MHz: did you mean backward? no other stage has backwrad; correct or delete the row`},
		{"a letter too many", "1,forward,1410", "1,forwards,1410", `p.csv:10:3: instruction "forwards": stage 1, forwards at 1410 MHz: did you mean forward? no other stage has forwards; correct or delete the row`},
		{"a letter too few", "1,backward,840", "1,bckward,840", `p.csv:11:3: instruction "bckward": stage 1, bckward at 840 MHz: did you mean backward? no other stage has bckward; correct or delete the row`},
	} {
		text := typed(c.old, c.replacement)
		if text == typed("", "") {
			t.Fatal(c.name)
		}
		_, err := profile.Read(strings.NewReader(text), "p.csv", profile.Options{Units: ms})
		if err == nil || err.Error() != c.want+skip {
			t.Errorf("%s: %v", c.name, err)
		}
		p := mustRead(t, text, profile.Options{Units: ms, SkipBadRows: true})
		if p.Report.Skipped != 1 || len(p.Instructions()) != 2 {
			t.Errorf("%s: %d rows skipped, %v", c.name, p.Report.Skipped, p.Instructions())
		}
	}
	for _, kept := range []string{"0,forward,2820", "0,forward,420"} {
		mustRead(t, typed("0,forward,840", kept), profile.Options{Units: ms})
	}
}
