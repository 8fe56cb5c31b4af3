package derive

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{"recompute=forward", "[recompute=forward]"},
		{"input-gradient=backward*0.5, weight-gradient = 0.500*backward", "[input-gradient=backward*0.5 weight-gradient=backward*0.5]"},
		{"split-backward,overlap", "[input-gradient=backward*0.5 weight-gradient=backward*0.5 overlap=forward+backward]"},
		{"recompute", "[recompute=forward recompute-backward=forward+backward]"},
		{"overlap=forward*0.9+1*backward", "[overlap=forward*0.9+backward]"},
		{"x=y*1000", "[x=y*1000]"},
		{"x@0=y*0, x=y", "[x@0=y*0 x=y]"},
	} {
		got, err := Parse(tt.list)
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("%q: %v, %v, want %s", tt.list, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ list, want string }{
		{"", "expected INSTRUCTION=SUM"},
		{"split-backwards", "or one of split-backward (input-gradient="},
		{"Recompute=forward", `"Recompute" is no name`},
		{"=forward", `"" is no name`},
		{"recompute=", "not a decimal number"},
		{"recompute=0.5", "names a measured instruction"},
		{"recompute=forward*", "factor"},
		{"recompute=forward*forward", "factor"},
		{"recompute=forward*0.5*0.5", "a term is an instruction, or one times a factor"},
		{"recompute=forward*0.0", "above 0"},
		{"recompute@x=forward", `"x" is no stage`},
		{"recompute@-1=forward", `"-1" is no stage`},
		{"recompute@1=forward,recompute@01=forward", "there is another of recompute"},
		{"recompute=forward*-1", "above 0"},
		{"recompute=forward*1001", "at most 1000"},
		{"recompute=forward*0.0000000001", "9 decimals"},
		{"recompute=forward*nan", "twice"},
		{"recompute=recompute", "twice"},
		{"recompute=forward+forward", "twice"},
		{"recompute=forward,recompute", "there is another of recompute, recompute=forward"},
		{"backward=forward*2,split-backward", "backward is derived itself"},
	} {
		if got, err := Parse(tt.list); err == nil || tt.want != "twice" && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, %v, want %s", tt.list, got, err, tt.want)
		}
	}
	if got := For("weight-gradient"); !strings.HasPrefix(got, "split-backward (") || For("forward") != "" {
		t.Errorf("weight-gradient: %q, forward: %q", got, For("forward"))
	}
}

func option(clock int32, time unit.Time, energy unit.Energy) dag.Option {
	return dag.Option{Knobs: dag.Knobs{ClockMHz: clock}, Time: time, Energy: energy}
}

func TestOptions(t *testing.T) {
	measured := func(instruction string) ([]dag.Option, error) {
		switch instruction {
		case "forward":
			return []dag.Option{option(1000, 7, 11), option(1200, 5, 13)}, nil
		case "backward":
			return []dag.Option{option(1200, 9, 21), option(1410, 8, 25)}, nil
		case "other":
			return []dag.Option{option(1, 1, 1)}, nil
		case "long":
			return []dag.Option{option(1, unit.MaxOpTime, 1)}, nil
		}
		return nil, errors.New("not measured")
	}
	for _, tt := range []struct {
		rule string
		want []dag.Option
		err  string
	}{
		{"x=forward", []dag.Option{option(1000, 7, 11), option(1200, 5, 13)}, ""},
		{"x=backward*0.5", []dag.Option{option(1200, 5, 11), option(1410, 4, 13)}, ""},
		{"x=forward+backward*0.5", []dag.Option{option(1200, 10, 24)}, ""},
		{"x=forward*0", []dag.Option{{}}, ""},
		{"x=forward*0+backward", []dag.Option{option(1200, 9, 21)}, ""},
		{"x=forward+other", nil, "no clock at which all its terms"},
		{"x=nothing", nil, "not measured"},
		{"x=long*2", nil, "out of range"},
		{"x=long+other", nil, "out of range"},
	} {
		r, err := ParseRule(tt.rule)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Options(measured)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, %v", tt.rule, got, err)
		}
	}
}

// FuzzParse checks that what is read is written in a form that reads the same.
func FuzzParse(f *testing.F) {
	f.Add("split-backward,recompute=forward*0.5+1.25*backward")
	f.Add("overlap")
	f.Fuzz(func(t *testing.T, list string) {
		rules, err := Parse(list)
		if err != nil {
			return
		}
		var texts []string
		for _, r := range rules {
			texts = append(texts, r.String())
		}
		again, err := Parse(strings.Join(texts, ","))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(rules) {
			t.Errorf("%q gives %v, which gives %v, %v", list, rules, again, err)
		}
	})
}

func TestFind(t *testing.T) {
	rules, err := Parse("split-backward-torch")
	if err != nil {
		t.Fatal(err)
	}
	for stage, want := range []string{"input-gradient@0=backward*0", "input-gradient=backward*0.5", "input-gradient=backward*0.5"} {
		if got := Find(rules, "input-gradient", stage); got == nil || got.String() != want {
			t.Errorf("stage %d: %v, want %s", stage, got, want)
		}
	}
	if got := Find(rules, "forward", 0); got != nil {
		t.Errorf("%v", got)
	}
}
