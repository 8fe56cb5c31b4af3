package pipeline

// zbH1 splits each backward and puts the weights' part off to fill the bubbles,
// within the memory of 1F1B. Source: Qi et al., "Zero Bubble Pipeline
// Parallelism" (2023), section 2.3, in the order that the authors' scheduler
// finds for equal times of F, I and W and a memory limit of as many forwards as
// ranks.
func zbH1(z Size, rank int) []Action {
	if z.Microbatches > z.Ranks {
		z.Group = z.Microbatches // of no effect with one chunk
		return interleavedZeroBubble(z, rank)
	}
	// The memory limit does not bind: a rank forwards whatever arrives before its
	// first backward can start.
	forwards, weights := min(z.Microbatches, 2*(z.Ranks-1-rank)+1), 0
	actions := make([]Action, 0, 3*z.Microbatches)
	for m := range forwards {
		actions = append(actions, forward(rank, m))
	}
	for m := range z.Microbatches {
		actions = append(actions, inputGrad(rank, m))
		switch {
		case forwards < z.Microbatches:
			actions = append(actions, forward(rank, forwards))
			forwards++
		case m+1 < z.Microbatches:
			actions = append(actions, weightGrad(rank, weights))
			weights++
		}
	}
	for ; weights < z.Microbatches; weights++ {
		actions = append(actions, weightGrad(rank, weights))
	}
	return actions
}

// zbH1Quickstart is 1F1B that splits a backward only where its weights' part can
// fill a bubble, so never on rank 0. Source: the branch zb-h1-quick-start of the
// zero-bubble authors.
func zbH1Quickstart(z Size, rank int) []Action {
	warmup := min(z.Ranks-rank-1, z.Microbatches)
	steady := z.Microbatches - warmup
	actions := make([]Action, 0, 3*z.Microbatches)
	var pending []Action // weights' parts, first in first out
	pop := func() {
		actions = append(actions, pending[0])
		pending = pending[1:]
	}
	for m := range warmup {
		actions = append(actions, forward(rank, m))
	}
	for m := range z.Microbatches {
		if m < steady {
			actions = append(actions, forward(rank, warmup+m))
		}
		// Within the first backwards the pipeline fills, from the last steady one
		// on it drains.
		if rank == 0 || m >= rank && m < steady-1 {
			actions = append(actions, backward(rank, m))
			continue
		}
		actions = append(actions, inputGrad(rank, m))
		pending = append(pending, weightGrad(rank, m))
		if m >= rank {
			pop()
		}
	}
	for len(pending) > 0 {
		pop()
	}
	return actions
}
