package pipeline

import (
	"os"
	"strings"
	"testing"
)

func TestDocsListEverySchedule(t *testing.T) {
	text, err := os.ReadFile("../docs/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Schedules() {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/schedules.md does not have %s", name)
			}
		}
	}
	for k := Forward; k < SendForward; k++ {
		if !strings.Contains(string(text), "`"+k.Instruction()+"`") {
			t.Errorf("docs/schedules.md does not have %s", k.Instruction())
		}
	}
}
