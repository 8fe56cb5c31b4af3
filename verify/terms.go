package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// key returns what tells apart the options of the order's ops: the rules of
// docs/format.md, "Option table".
func (o *order) key(h *frontierfile.Header, x op) frontierfile.Key {
	k := frontierfile.Key{Stage: x.stage, Instruction: x.instruction, Factors: frontierfile.Factors{Time: unit.One, Energy: unit.One}}
	if x.rank < 0 {
		return k // a transfer
	}
	k.BlockingPower = h.BlockingPower[x.rank]
	if len(x.parts) == 2 {
		k.SecondStage = x.parts[1].stage
	}
	if fixedTime(h, x.instruction) != 0 {
		return k
	}
	for _, c := range h.Caps {
		if c.Rank == x.rank {
			k.CapMHz = c.MHz
		}
	}
	if slices.Contains([]string{"load", "reduce-gradient", "optimizer"}, x.instruction) {
		return k
	}
	if len(h.MicrobatchFactors) > 0 {
		k.Factors = h.MicrobatchFactors[x.parts[0].microbatch]
		if len(x.parts) == 2 {
			second := h.MicrobatchFactors[x.parts[1].microbatch]
			k.Factors.Time = (k.Factors.Time + second.Time + 1) / 2
			k.Factors.Energy = (k.Factors.Energy + second.Energy + 1) / 2
		}
	}
	if f, ok := o.own[ownKey{x.stage, x.parts[0].microbatch, x.instruction}]; ok {
		k.Factors = f
	}
	return k
}

// ownKey says which op has factors of its own.
type ownKey struct {
	stage, microbatch int
	instruction       string
}

// fixedTime returns the time of an instruction that no clock changes; 0 if it is
// not said to be one.
func fixedTime(h *frontierfile.Header, instruction string) unit.Time {
	for _, f := range h.Fixed {
		if f.Instruction == instruction {
			return f.Time
		}
	}
	return 0
}

// terms checks that what the header adds to the profile is of ranks, microbatches,
// ops and GPUs that the job has, and none of it twice.
func (o *order) terms(h *frontierfile.Header) error {
	last := -1
	for _, c := range h.Caps {
		if c.Rank <= last || c.Rank >= h.Ranks {
			return violated("caps", "rank %d: ranks rise, and there are 0 … %d", c.Rank, h.Ranks-1)
		}
		last = c.Rank
	}
	for i, f := range h.Fixed {
		known := slices.Contains([]string{"load", "reduce-gradient", "optimizer"}, f.Instruction)
		if !known || f.Time <= 0 || i > 0 && h.Fixed[i-1].Instruction >= f.Instruction {
			return violated("fixed", "%q, %v: unknown, not positive or not sorted", f.Instruction, f.Time)
		}
	}
	if n := len(h.MicrobatchFactors); n != 0 && n != h.Microbatches {
		return violated("microbatch_factors", "%d for %d microbatches", n, h.Microbatches)
	}
	o.own = map[ownKey]frontierfile.Factors{}
	for _, f := range h.OpFactors {
		k := ownKey{f.Stage, f.Microbatch, f.Instruction}
		if _, twice := o.own[k]; twice {
			return violated("op_factors", "stage %d, microbatch %d, %s is there twice", k.stage, k.microbatch, k.instruction)
		}
		o.own[k] = f.Factors
	}
	found := map[ownKey]bool{}
	for _, x := range o.ops {
		if x.rank >= 0 && fixedTime(h, x.instruction) == 0 {
			found[ownKey{x.stage, x.parts[0].microbatch, x.instruction}] = true
		}
	}
	for _, f := range h.OpFactors {
		if !found[ownKey{f.Stage, f.Microbatch, f.Instruction}] {
			return violated("op_factors", "there is no %s of stage %d and microbatch %d", f.Instruction, f.Stage, f.Microbatch)
		}
	}
	return nil
}

// optionsOf returns all options of an entry of the option table, from the
// measurements and the header's terms.
func optionsOf(h *frontierfile.Header, k frontierfile.Key, m *measurements) ([]dag.Option, error) {
	// The one option of an op in which GPUs wait: its effective energy is 0.
	still := func(t unit.Time) []dag.Option {
		return []dag.Option{{Time: t, Energy: -dag.Effective(0, k.BlockingPower, t)}}
	}
	if k.Instruction == transferInstruction {
		return still(h.TransferTime), nil
	}
	if t := fixedTime(h, k.Instruction); t != 0 {
		return still(t), nil
	}
	options, err := unscaled(h, k, m)
	if err != nil {
		return nil, err
	}
	var kept []dag.Option
	for _, o := range options {
		if k.CapMHz > 0 && o.Knobs.ClockMHz > k.CapMHz {
			continue
		}
		o, err := times(o, k.Factors.Time, k.Factors.Energy)
		if err != nil {
			return nil, err
		}
		kept = append(kept, o)
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("no option of stage %d, %s is up to %d MHz", k.Stage, k.Instruction, k.CapMHz)
	}
	return kept, nil
}

// unscaled returns the options of an entry without cap and factors: as measured, or
// derived.
func unscaled(h *frontierfile.Header, k frontierfile.Key, m *measurements) ([]dag.Option, error) {
	measured := m.options[source{k.Stage, k.Instruction}]
	// A rule for this very stage goes before all, also before what was measured.
	for _, name := range []string{fmt.Sprintf("%s@%d", k.Instruction, k.Stage), k.Instruction} {
		sum, ok := ruleOf(h, name)
		if !ok {
			continue
		}
		if name == k.Instruction && len(measured) > 0 {
			return nil, fmt.Errorf("%s is derived, but stage %d has it measured", name, k.Stage)
		}
		options, err := deriveFrom(k, sum, m)
		if err != nil {
			return nil, fmt.Errorf("derived, %s=%s: %w", name, sum, err)
		}
		return options, nil
	}
	if len(measured) == 0 {
		return nil, fmt.Errorf("the profile has no rows of stage %d, %s", k.Stage, k.Instruction)
	}
	return measured, nil
}

// ruleOf returns the sum by which an instruction, or one at a stage, is derived.
func ruleOf(h *frontierfile.Header, name string) (sum string, ok bool) {
	for _, rule := range h.Derived {
		if sum, ok := strings.CutPrefix(rule, name+"="); ok {
			return sum, true
		}
	}
	return "", false
}

// deriveFrom returns the options of a sum of terms, each an instruction or one times
// a factor, at the clocks that all of them have. Of an overlapped pair, the forward
// is of the first stage, all else of the second. A sum of nothing has one option that
// does nothing.
func deriveFrom(k frontierfile.Key, sum string, m *measurements) (total []dag.Option, err error) {
	terms := strings.Split(sum, "+")
	if !slices.ContainsFunc(terms, func(term string) bool { return !strings.HasSuffix(term, "*0") }) {
		return []dag.Option{{}}, nil
	}
	for i, term := range terms {
		name, factor, err := factored(term)
		if err != nil {
			return nil, err
		}
		stage := k.Stage
		if k.Instruction == "overlap" && name != "forward" {
			stage = k.SecondStage
		}
		var all []dag.Option
		for _, o := range m.options[source{stage, name}] {
			o, err := times(o, factor, factor)
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
		if i > 0 {
			if all, err = sums(total, all); err != nil {
				return nil, err
			}
		}
		if total = all; len(total) == 0 {
			return nil, fmt.Errorf("nothing is left with %s of stage %d", name, stage)
		}
	}
	return total, nil
}

// factored returns the two parts of a term, as of "backward*0.5"; a factor that is
// not there is One.
func factored(term string) (instruction string, factor unit.Ratio, err error) {
	instruction, text, ok := strings.Cut(term, "*")
	if !ok {
		return instruction, unit.One, nil
	}
	v, exact, err := unit.ParseDecimal(text, 9, unit.Nearest)
	if err != nil || !exact || v < 0 || unit.Ratio(v) > 1000*unit.One {
		return "", 0, fmt.Errorf("%q is no factor", text)
	}
	return instruction, unit.Ratio(v), nil
}

// sums returns the options of two ops one after the other, at the clocks that both
// have.
func sums(a, b []dag.Option) (both []dag.Option, err error) {
	for _, o := range b {
		for _, with := range a {
			if with.Knobs != o.Knobs {
				continue
			}
			o.Time, o.Energy = o.Time+with.Time, o.Energy+with.Energy
			if o.Time > unit.MaxOpTime || o.Energy > unit.MaxOpEnergy {
				return nil, fmt.Errorf("%v, %v: the sum is out of range", o.Time, o.Energy)
			}
			both = append(both, o)
			break
		}
	}
	return both, nil
}

// times returns an option times factors: its time rounded up, its energy to the
// nearest.
func times(o dag.Option, time, energy unit.Ratio) (dag.Option, error) {
	t, ok1 := unit.Scale(o.Time, time, unit.Up)
	e, ok2 := unit.Scale(o.Energy, energy, unit.Nearest)
	if !ok1 || !ok2 || t > unit.MaxOpTime || e > unit.MaxOpEnergy {
		return o, fmt.Errorf("%v, %v: out of range with its factors", o.Time, o.Energy)
	}
	o.Time, o.Energy = t, e
	return o, nil
}

// group returns how many GPUs run an op together by the degrees of parallelism: the
// number of those that are linked, from one to the next, by being in the same
// tensor- and context-parallel group or, if there are experts, in the same group of
// experts. Ranks are laid out as docs/schedules.md says.
func group(p *frontierfile.Parallel) (int, error) {
	world, err := worldSize(p)
	if err != nil {
		return 0, err
	}
	order := strings.Split(p.RankOrder, "-")
	if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, []string{"cp", "dp", "ep", "pp", "tp"}) {
		return 0, fmt.Errorf("rank_order is %q", p.RankOrder)
	}
	dense := grid{order, map[string]int{"tp": p.TP, "cp": p.CP, "ep": 1, "dp": p.DP, "pp": p.PP}}
	expert := grid{order, map[string]int{"tp": p.ETP, "cp": 1, "ep": p.EP, "dp": world / (p.ETP * p.EP * p.PP), "pp": p.PP}}
	// The groups of the first pipeline rank; all others look the same.
	var links [][]int // of each rank there the groups that it is in
	members := map[int][]int{}
	for rank := range world {
		pp, epp := dense.coordinate(rank, "pp"), expert.coordinate(rank, "pp")
		if pp != epp {
			return 0, fmt.Errorf("rank %d is on pipeline rank %d, but its experts on %d", rank, pp, epp)
		}
		if pp != 0 {
			continue
		}
		in := []int{dense.coordinate(rank, "dp")}
		if p.EP > 1 || p.ETP != p.TP {
			in = append(in, -1-expert.coordinate(rank, "dp")) // groups of experts are negative
		}
		for _, g := range in {
			members[g] = append(members[g], len(links))
		}
		links = append(links, in)
	}
	return linked(links, members), nil
}

// worldSize returns how many GPUs the job has, after checking that the degrees fit.
func worldSize(p *frontierfile.Parallel) (int, error) {
	const most = 1 << 20
	for _, n := range []int{p.TP, p.CP, p.DP, p.PP, p.EP, p.ETP} {
		if n < 1 || n > most {
			return 0, fmt.Errorf("a degree is %d", n)
		}
	}
	world := int64(1)
	for _, n := range []int{p.TP, p.CP, p.DP, p.PP} {
		if world *= int64(n); world > most {
			return 0, fmt.Errorf("more than %d GPUs", most)
		}
	}
	if share := int64(p.ETP) * int64(p.EP) * int64(p.PP); world%share != 0 {
		return 0, fmt.Errorf("tp·cp·dp·pp = %d is no multiple of etp·ep·pp = %d", world, share)
	}
	return int(world), nil
}

// grid is how ranks are laid out: the first dimension of the order varies fastest.
type grid struct {
	order []string
	size  map[string]int
}

// coordinate returns where a rank is in a dimension.
func (g grid) coordinate(rank int, dimension string) int {
	for _, d := range g.order {
		if d == dimension {
			return rank % g.size[d]
		}
		rank /= g.size[d]
	}
	return 0
}

// linked returns how many are linked to the first, itself included, where of says
// which groups each is in and members who is in a group.
func linked(of [][]int, members map[int][]int) int {
	seen := map[int]bool{0: true}
	done := map[int]bool{}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		for _, g := range of[queue[0]] {
			if done[g] {
				continue
			}
			done[g] = true
			for _, m := range members[g] {
				if !seen[m] {
					seen[m] = true
					queue = append(queue, m)
				}
			}
		}
	}
	return len(seen)
}
