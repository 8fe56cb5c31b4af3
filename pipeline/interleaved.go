package pipeline

import "fmt"

// interleaved1F1B runs groups of microbatches through one chunk after another
// and, once warm, one forward and one backward in turn. Source: Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters" (2021),
// section 2.2; with uneven groups as Megatron-LM runs it. PyTorch's order is the
// same for the same group.
func interleaved1F1B(z Size, rank int) []Action {
	total := z.Chunks * z.Microbatches
	warmup := min((z.Chunks-1)*z.Group+2*(z.Ranks-1-rank), total)
	actions := make([]Action, 0, 2*total)
	for k := range total + warmup {
		if k < total {
			chunk, m := z.interleave(k)
			actions = append(actions, forward(chunk*z.Ranks+rank, m))
		}
		if k >= warmup {
			chunk, m := z.interleave(k - warmup)
			actions = append(actions, backward((z.Chunks-1-chunk)*z.Ranks+rank, m))
		}
	}
	return actions
}

// interleavedZeroBubble is like interleaved1F1B with half the warmup, backwards
// split, and the weights' part put off by as many backwards as the rank's number.
// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), with the order of
// PyTorch's ScheduleInterleavedZeroBubble.
func interleavedZeroBubble(z Size, rank int) []Action {
	total := z.Chunks * z.Microbatches
	warmup := min((z.Chunks-1)*z.Group+z.Ranks-1-rank, total)
	actions := make([]Action, 0, 3*total)
	back := func(make func(stage, m int) Action, k int) {
		chunk, m := z.interleave(k)
		actions = append(actions, make((z.Chunks-1-chunk)*z.Ranks+rank, m))
	}
	for k := range total + warmup {
		if k < total {
			chunk, m := z.interleave(k)
			actions = append(actions, forward(chunk*z.Ranks+rank, m))
		}
		if k >= warmup {
			back(inputGrad, k-warmup)
			if k-warmup >= rank {
				back(weightGrad, k-warmup-rank)
			}
		}
	}
	for k := max(0, total-rank); k < total; k++ {
		back(weightGrad, k)
	}
	return actions
}

// interleave returns the chunk and the microbatch of the k-th forward of a rank:
// a group of microbatches passes all chunks before the next group.
func (z Size) interleave(k int) (chunk, microbatch int) {
	before := k / (z.Group * z.Chunks) * z.Group // microbatches in earlier groups
	k -= before * z.Chunks
	group := min(z.Group, z.Microbatches-before)
	return k / group, before + k%group
}

// roundGroup returns PyTorch's group: that of M div P rounds of equal size; ok is
// false where there is none.
func (z Size) roundGroup() (group int, ok bool) {
	rounds := max(1, z.Microbatches/z.Ranks)
	return z.Microbatches / rounds, z.Microbatches%rounds == 0
}

// inRounds is the fit of schedules that have PyTorch's group only.
func inRounds(z Size) (Size, error) {
	group, ok := z.roundGroup()
	rounds := max(1, z.Microbatches/z.Ranks)
	switch {
	case !ok:
		return z, fmt.Errorf("%d microbatches on %d ranks make %d rounds, which do not come out even; %d or %d microbatches do",
			z.Microbatches, z.Ranks, rounds, z.Microbatches-z.Microbatches%rounds, z.Microbatches-z.Microbatches%rounds+rounds)
	case z.Group != 0 && z.Group != group:
		return z, fmt.Errorf("group = %d: %d microbatches on %d ranks have groups of %d", z.Group, z.Microbatches, z.Ranks, group)
	}
	z.Group = group
	return z, nil
}

// inGroups is the fit of interleaved1F1B: PyTorch's group, or any that
// Megatron-LM takes as microbatch group size per virtual pipeline stage.
func inGroups(z Size) (Size, error) {
	m, p := z.Microbatches, z.Ranks
	even, ok := z.roundGroup()
	if z.Group == 0 && ok || z.Group == even && ok {
		z.Group = even
		return z, nil
	}
	megatron := func(group int) bool {
		return p <= group && group <= m && (m%group == 0 || m%group >= p)
	}
	if megatron(z.Group) {
		return z, nil
	}
	smallest := p
	for smallest <= m && !megatron(smallest) {
		smallest++
	}
	possible := "no group fits: use at least as many microbatches as ranks"
	switch {
	case ok && smallest <= m && smallest != even:
		possible = fmt.Sprintf("%d and %d are", even, smallest)
	case ok:
		possible = fmt.Sprintf("%d is", even)
	case smallest <= m:
		possible = fmt.Sprintf("%d is", smallest)
	}
	if z.Group == 0 {
		return z, fmt.Errorf("%d microbatches do not divide into %d equal rounds over %d ranks: set a group (%s possible), or use a multiple of %d microbatches",
			m, max(1, m/p), p, possible, p)
	}
	return z, fmt.Errorf("group = %d: a group has from ranks (%d) to microbatches (%d) microbatches, and the last one, if smaller, at least ranks; %s possible",
		z.Group, p, m, possible)
}
