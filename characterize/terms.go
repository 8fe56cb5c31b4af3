package characterize

import (
	"fmt"
	"slices"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// TransferInstruction is the instruction of an op that carries a value from one
// rank to another.
const TransferInstruction = "transfer"

// MissingError reports an instruction that an order needs and the measurements
// lack.
type MissingError struct {
	Stage       int
	Instruction string
	Err         error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("stage %d needs %s: %v", e.Stage, e.Instruction, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// opKey is where an op finds its factors of its own.
type opKey struct {
	stage, microbatch int
	instruction       string
}

// keys gives each op of an order its entry in the option table.
type keys struct {
	blocking []unit.Power
	caps     map[int]int32
	fixed    map[string]bool
	factors  []frontierfile.Factors
	ops      map[opKey]frontierfile.Factors
}

// newKeys returns the keys by the terms of a job with as many ranks as there are
// blocking powers. It fails where the terms name a rank, an instruction or a
// microbatch that the job does not have, or one twice.
func newKeys(t *frontierfile.Terms, blocking []unit.Power, microbatches int) (*keys, error) {
	k := &keys{
		blocking: blocking, factors: t.MicrobatchFactors,
		caps: map[int]int32{}, fixed: map[string]bool{}, ops: map[opKey]frontierfile.Factors{},
	}
	for _, c := range t.Caps {
		if c.Rank < 0 || c.Rank >= len(blocking) {
			return nil, fmt.Errorf("caps: rank %d is capped at %d MHz, but there are ranks 0 … %d", c.Rank, c.MHz, len(blocking)-1)
		}
		if k.caps[c.Rank] != 0 {
			return nil, fmt.Errorf("caps: rank %d is capped twice, at %d MHz and %d MHz", c.Rank, k.caps[c.Rank], c.MHz)
		}
		if c.MHz <= 0 {
			return nil, fmt.Errorf("caps: rank %d is capped at %d MHz", c.Rank, c.MHz)
		}
		k.caps[c.Rank] = c.MHz
	}
	for _, f := range t.Fixed {
		switch kind := kindOf(f.Instruction); {
		case !kind.Fixed() || kind.Communication():
			return nil, fmt.Errorf("fixed: %q is no op of a fixed time; there are load, reduce-gradient and optimizer", f.Instruction)
		case k.fixed[f.Instruction]:
			return nil, fmt.Errorf("fixed: %s is there twice", f.Instruction)
		}
		k.fixed[f.Instruction] = true
	}
	if n := len(t.MicrobatchFactors); n != 0 && n != microbatches {
		return nil, fmt.Errorf("microbatch_factors: %d for %d microbatches", n, microbatches)
	}
	for _, f := range t.OpFactors {
		at := opKey{f.Stage, f.Microbatch, f.Instruction}
		if _, twice := k.ops[at]; twice {
			return nil, fmt.Errorf("op_factors: stage %d, microbatch %d, %s is there twice", f.Stage, f.Microbatch, f.Instruction)
		}
		k.ops[at] = f.Factors
	}
	return k, nil
}

// kindOf returns the kind of an instruction; 0 if there is none.
func kindOf(instruction string) pipeline.Kind {
	for k := pipeline.Forward; k.Instruction() != "unknown"; k++ {
		if k.Instruction() == instruction {
			return k
		}
	}
	return 0
}

// of returns the key of an action on a rank.
func (k *keys) of(rank int, a pipeline.Action) frontierfile.Key {
	key := frontierfile.Key{
		Stage: int(a.Stage), Instruction: a.Kind.Instruction(), BlockingPower: k.blocking[rank],
		Factors: frontierfile.Factors{Time: frontierfile.One, Energy: frontierfile.One},
	}
	if a.Kind == pipeline.Overlap {
		key.SecondStage = int(a.Second.Stage)
	}
	if k.fixed[key.Instruction] {
		return key
	}
	key.CapMHz = k.caps[rank]
	if a.Kind.Fixed() {
		return key
	}
	if len(k.factors) > 0 {
		key.Factors = k.factors[a.Microbatch]
		if a.Kind == pipeline.Overlap {
			second := k.factors[a.Second.Microbatch]
			key.Factors.Time = (key.Factors.Time + second.Time + 1) / 2
			key.Factors.Energy = (key.Factors.Energy + second.Energy + 1) / 2
		}
	}
	if len(k.ops) > 0 {
		if f, ok := k.ops[opKey{int(a.Stage), int(a.Microbatch), key.Instruction}]; ok {
			key.Factors = f
		}
	}
	return key
}

// check returns an error for an op with factors of its own that o does not have.
func (k *keys) check(o *pipeline.Order) error {
	if len(k.ops) == 0 {
		return nil
	}
	left := map[opKey]bool{}
	for at := range k.ops {
		left[at] = true
	}
	for _, a := range o.All() {
		if !a.Kind.Fixed() {
			delete(left, opKey{int(a.Stage), int(a.Microbatch), a.Kind.Instruction()})
		}
	}
	for at := range left {
		if len(left) == 1 || at == least(left) {
			return fmt.Errorf("op_factors: there is no %s of stage %d and microbatch %d", at.instruction, at.stage, at.microbatch)
		}
	}
	return nil
}

// least returns the first of some ops.
func least(ops map[opKey]bool) opKey {
	var first opKey
	found := false
	for at := range ops {
		a := frontierfile.Key{Stage: at.stage, SecondStage: at.microbatch, Instruction: at.instruction}
		b := frontierfile.Key{Stage: first.stage, SecondStage: first.microbatch, Instruction: first.instruction}
		if !found || a.Compare(b) < 0 {
			first, found = at, true
		}
	}
	return first
}

// transfer is the key of all transfers.
func transfer() frontierfile.Key {
	return frontierfile.Key{Instruction: TransferInstruction, Factors: frontierfile.Factors{Time: frontierfile.One, Energy: frontierfile.One}}
}

// options returns the options of a key: those measured, or derived from what was
// measured, times the factors, up to the cap; or the one of a fixed time, in which
// the GPUs wait, so that its effective energy is 0.
func (j *Job) options(k frontierfile.Key, rules []derive.Rule) ([]dag.Option, error) {
	still := func(t unit.Time) []dag.Option {
		return []dag.Option{{Time: t, Energy: -dag.Effective(0, k.BlockingPower, t)}}
	}
	if k == transfer() {
		return still(j.Terms.TransferTime), nil
	}
	for _, f := range j.Terms.Fixed {
		if f.Instruction == k.Instruction {
			return still(f.Time), nil
		}
	}
	options, err := j.measured(k, rules)
	if err != nil {
		return nil, err
	}
	if k.CapMHz > 0 && len(options) > 0 {
		lowest := slices.MinFunc(options, func(a, b dag.Option) int { return a.Knobs.Compare(b.Knobs) })
		options = slices.DeleteFunc(options, func(o dag.Option) bool { return o.Knobs.ClockMHz > k.CapMHz })
		if len(options) == 0 {
			return nil, fmt.Errorf("stage %d, %s: nothing was measured up to the cap of %d MHz; the lowest clock is %d MHz",
				k.Stage, k.Instruction, k.CapMHz, lowest.Knobs.ClockMHz)
		}
	}
	for i := range options {
		if options[i], err = derive.Scale(options[i], k.Factors.Time, k.Factors.Energy); err != nil {
			return nil, fmt.Errorf("%v: %w", k, err)
		}
	}
	return options, nil
}

// measured returns the options of an instruction as measured or derived.
func (j *Job) measured(k frontierfile.Key, rules []derive.Rule) ([]dag.Option, error) {
	if r := derive.Find(rules, k.Instruction, k.Stage); r != nil {
		return r.Options(func(instruction string) ([]dag.Option, error) {
			stage := k.Stage
			// Of a pair the forward is of the one stage, all else of the other.
			if k.Instruction == pipeline.Overlap.Instruction() && instruction != pipeline.Forward.Instruction() {
				stage = k.SecondStage
			}
			options, err := j.Measurements.Options(stage, instruction)
			if err != nil {
				err = &MissingError{stage, instruction, err}
			}
			return options, err
		})
	}
	options, err := j.Measurements.Options(k.Stage, k.Instruction)
	if err != nil {
		return nil, &MissingError{k.Stage, k.Instruction, err}
	}
	return slices.Clone(options), nil
}

// rules returns the rules of derivation, of one instruction each.
func rules(t *frontierfile.Terms) ([]derive.Rule, error) {
	var all []derive.Rule
	for _, text := range t.Derived {
		r, err := derive.ParseRule(text)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Alike returns the measurements of gpus GPUs that run each op together, each of
// which takes the time and uses the energy of m's one.
func Alike(m Measurements, gpus int) Measurements { return alike{m, gpus} }

type alike struct {
	Measurements
	gpus int
}

func (a alike) Options(stage int, instruction string) ([]dag.Option, error) {
	options, err := a.Measurements.Options(stage, instruction)
	options = slices.Clone(options)
	for i := range options {
		// Out of range stays so; NewCurve refuses it.
		if e := &options[i].Energy; *e > unit.MaxOpEnergy/unit.Energy(a.gpus) {
			*e = 2 * unit.MaxOpEnergy
		} else {
			*e *= unit.Energy(a.gpus)
		}
	}
	return options, err
}

// Remeasured returns all options of entry i of a header's table, useful or not, as
// they follow from measurements of another time: derived, scaled and capped as the
// header says. It fails as Run does.
func Remeasured(h *frontierfile.Header, i int, m Measurements) ([]dag.Option, error) {
	k := h.Curves[i].Key()
	if h.Graph != nil {
		return nil, fmt.Errorf("%v: a graph has no profile", k)
	}
	derived, err := rules(&h.Terms)
	if err != nil {
		return nil, err
	}
	if p, ok := m.(*profile.Profile); ok && p.GPUsPerStage == 1 && h.GPUsPerRank > 1 {
		m = Alike(m, h.GPUsPerRank)
	}
	j := Job{Measurements: m, Terms: h.Terms}
	return j.options(k, derived)
}
