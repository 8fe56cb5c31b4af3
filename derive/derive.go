// Package derive makes the options of an instruction that was not measured from
// those of instructions that were, by rules that a user states: an input gradient
// as half of a backward, a recomputation as a forward.
//
// A rule is a sum: NAME=TERM+TERM+…, where a term is a measured instruction, alone
// or times a factor; NAME@STAGE=… is a rule for one stage alone. At each clock at which all terms were measured, the time is
// the sum of factor·time, each rounded up to a nanosecond, and the energy the sum
// of factor·energy, each rounded to the nearest picojoule. The rule for an
// overlapped pair, forward+backward, says that the two take as long together as one
// after the other: it keeps to what was measured and claims no gain.
//
// An op of which all factors are 0 does nothing: it has one option, without a clock,
// time or energy.
//
// It comes after dag and unit, which it imports, and before package characterize.
// No rule is applied by itself: guessing is not for it.
package derive

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/unit"
)

// Term is a share of a measured instruction.
type Term struct {
	Factor      unit.Ratio
	Instruction string
}

// Rule says how an instruction follows from measured ones.
type Rule struct {
	Instruction string
	// Stage is the only stage that the rule is for, or −1.
	Stage int
	Terms []Term
}

// same says whether two rules are of the same instruction and stage.
func (r Rule) same(o Rule) bool { return r.Instruction == o.Instruction && r.Stage == o.Stage }

// Find returns the rule for an instruction of a stage, one for that stage alone
// before one for all; nil if there is none.
func Find(rules []Rule, instruction string, stage int) *Rule {
	var found *Rule
	for i := range rules {
		r := &rules[i]
		if r.Instruction == instruction && (r.Stage == stage || r.Stage < 0 && found == nil) {
			found = r
		}
	}
	return found
}

// preset is a name for several rules.
type preset struct{ name, rules string }

func presets() []preset {
	return []preset{
		{"split-backward", "input-gradient=backward*0.5,weight-gradient=backward*0.5"},
		{"split-backward-torch", "input-gradient=backward*0.5,weight-gradient=backward*0.5,input-gradient@0=backward*0,weight-gradient@0=backward"},
		{"join-backward", "backward=input-gradient+weight-gradient"},
		{"recompute", "recompute=forward,recompute-backward=forward+backward"},
		{"overlap", "overlap=forward+backward"},
	}
}

// Presets returns the names of the presets, with what each stands for.
func Presets() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name+" ("+p.rules+")")
	}
	return names
}

// For returns the preset that derives an instruction, as "split-backward
// (input-gradient=…)"; empty if there is none.
func For(instruction string) string {
	for i, p := range presets() {
		for rule := range strings.SplitSeq(p.rules, ",") {
			if strings.HasPrefix(rule, instruction+"=") {
				return Presets()[i]
			}
		}
	}
	return ""
}

// Parse returns the rules in a list of rules and names of presets, separated by
// commas, in the order of the list. It fails on what is neither, on two rules for
// one instruction, on a rule that needs what another derives, and on factors
// above 1000.
func Parse(list string) ([]Rule, error) {
	var rules []Rule
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		texts := []string{item}
		for _, p := range presets() {
			if p.name == item {
				texts = strings.Split(p.rules, ",")
			}
		}
		for _, text := range texts {
			r, err := ParseRule(text)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(rules, r.same); i >= 0 {
				return nil, fmt.Errorf("derivation %q: there is another of %s, %v", clip(text), r.Instruction, rules[i])
			}
			rules = append(rules, r)
		}
	}
	for _, r := range rules {
		for _, t := range r.Terms {
			if slices.ContainsFunc(rules, func(o Rule) bool { return o.Instruction == t.Instruction }) {
				return nil, fmt.Errorf("derivation %v: %s is derived itself; a term must be measured", r, t.Instruction)
			}
		}
	}
	return rules, nil
}

// ParseRule returns a rule as in "overlap=forward*0.9+0.95*backward".
func ParseRule(text string) (Rule, error) {
	name, sum, ok := strings.Cut(text, "=")
	r := Rule{Stage: -1}
	instruction, stage, single := strings.Cut(name, "@")
	r.Instruction = strings.TrimSpace(instruction)
	fail := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("derivation %q: %s", clip(text), fmt.Sprintf(format, args...))
	}
	if !ok {
		return fail("expected INSTRUCTION=SUM, as in input-gradient=backward*0.5, or one of %s", strings.Join(Presets(), ", "))
	}
	if !valid(r.Instruction) {
		return fail("%q is no name of an instruction", clip(r.Instruction))
	}
	if single {
		v, err := strconv.ParseUint(strings.TrimSpace(stage), 10, 16)
		if err != nil {
			return fail("%q is no stage", clip(stage))
		}
		r.Stage = int(v)
	}
	for part := range strings.SplitSeq(sum, "+") {
		t := Term{Factor: unit.One}
		named, factored := false, false
		for side := range strings.SplitSeq(part, "*") {
			side = strings.TrimSpace(side)
			switch {
			case valid(side) && !named:
				t.Instruction, named = side, true
			case !factored:
				v, err := ParseFactor(side)
				if side == "0" {
					v, err = 0, nil // it does nothing
				}
				if err != nil {
					return fail("%q: %v", clip(part), err)
				}
				t.Factor, factored = v, true
			default:
				return fail("%q: a term is an instruction, or one times a factor", clip(part))
			}
		}
		if !named {
			return fail("%q: a term names a measured instruction", clip(part))
		}
		if t.Instruction == r.Instruction || slices.ContainsFunc(r.Terms, func(o Term) bool { return o.Instruction == t.Instruction }) {
			return fail("%s is there twice", t.Instruction)
		}
		r.Terms = append(r.Terms, t)
	}
	return r, nil
}

// maxFactor bounds factors.
const maxFactor = 1000 * unit.One

// ParseFactor returns a factor as in "1.25".
func ParseFactor(s string) (unit.Ratio, error) {
	v, exact, err := unit.ParseDecimal(s, 9, unit.Nearest)
	switch {
	case err != nil:
		return 0, fmt.Errorf("factor %w", err)
	case !exact:
		return 0, errors.New("a factor has at most 9 decimals")
	case v < 1 || unit.Ratio(v) > maxFactor:
		return 0, errors.New("a factor is above 0 and at most 1000")
	}
	return unit.Ratio(v), nil
}

// valid says whether s is an instruction's name, as profiles have them.
func valid(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// clip cuts a text to a length that a line can hold.
func clip(s string) string { return excerpt.Of(s, 60) }

// String returns the rule as ParseRule reads it.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Instruction)
	if r.Stage >= 0 {
		b.WriteString("@" + strconv.Itoa(r.Stage))
	}
	for i, t := range r.Terms {
		b.WriteByte("=+"[min(i, 1)])
		b.WriteString(t.Instruction)
		if t.Factor != unit.One {
			b.WriteString("*" + t.Factor.String())
		}
	}
	return b.String()
}

// Options returns the options of the rule's instruction, by ascending clock, from
// those of its terms, which measured returns. It fails where measured does, or
// where the terms have no clock in common.
func (r Rule) Options(measured func(instruction string) ([]dag.Option, error)) ([]dag.Option, error) {
	if !slices.ContainsFunc(r.Terms, func(t Term) bool { return t.Factor != 0 }) {
		return []dag.Option{{}}, nil
	}
	var out []dag.Option
	for i, t := range r.Terms {
		options, err := measured(t.Instruction)
		if err != nil {
			return nil, err
		}
		scaled := make([]dag.Option, 0, len(options))
		options = slices.SortedFunc(slices.Values(options), func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
		for _, o := range options {
			if o, err = Scale(o, t.Factor, t.Factor); err != nil {
				return nil, fmt.Errorf("derivation %v: %w", r, err)
			}
			if i == 0 {
				scaled = append(scaled, o)
				continue
			}
			k, found := slices.BinarySearchFunc(out, o, func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
			if found {
				o.Time, o.Energy = o.Time+out[k].Time, o.Energy+out[k].Energy
				if o.Time > unit.MaxOpTime || o.Energy > unit.MaxOpEnergy {
					return nil, fmt.Errorf("derivation %v: %v and %v are out of range", r, o.Time, o.Energy)
				}
				scaled = append(scaled, o)
			}
		}
		if out = scaled; len(out) == 0 {
			return nil, fmt.Errorf("derivation %v: there is no clock at which all its terms were measured", r)
		}
	}
	return out, nil
}

// Scale returns an option times factors of time and energy: the time rounded up to
// a nanosecond, the energy to the nearest picojoule. It fails where the result is
// out of the bounds of package unit.
func Scale(o dag.Option, time, energy unit.Ratio) (dag.Option, error) {
	if time == unit.One && energy == unit.One {
		return o, nil
	}
	t, ok1 := unit.Scale(o.Time, time, unit.Up)
	e, ok2 := unit.Scale(o.Energy, energy, unit.Nearest)
	if !ok1 || !ok2 || t > unit.MaxOpTime || max(e, -e) > unit.MaxOpEnergy {
		return o, fmt.Errorf("%v and %v, times %v and %v, are out of range", o.Time, o.Energy, time, energy)
	}
	o.Time, o.Energy = t, e
	return o, nil
}
