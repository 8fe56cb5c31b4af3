package pipeline

import "fmt"

// zbv has two chunks a rank in a V, so that the last stage is on the first rank,
// and no bubble at equal times of F, I and W, in the memory of 1F1B. It is laid
// out for as many microbatches as fill the V; those that there are not are left
// out. Source: Qi et al., "Pipeline Parallelism with Controllable Memory" (2024),
// with the order of PyTorch's ScheduleZBVZeroBubble.
func zbv(z Size, rank int) []Action {
	down, up := rank, 2*z.Ranks-1-rank // the stages of the two chunks
	full := max(z.Microbatches, 2*z.Ranks-1)
	actions := make([]Action, 0, 6*z.Microbatches)
	put := func(make func(stage, m int) Action, stage int, next *int) {
		if *next < z.Microbatches {
			actions = append(actions, make(stage, *next))
		}
		*next++
	}
	// The next microbatch of each kind and chunk.
	var fDown, fUp, iDown, iUp, wDown, wUp int

	// Fill: the first microbatch comes back up after 2·(ranks−rank)−1 forwards.
	for range 2*(z.Ranks-rank) - 1 {
		put(forward, down, &fDown)
	}
	for range rank {
		put(forward, up, &fUp)
		put(forward, down, &fDown)
	}
	for range z.Ranks - rank {
		put(forward, up, &fUp)
		put(inputGrad, up, &iUp)
		put(weightGrad, up, &wUp)
	}
	for fUp < fDown || fDown < full {
		if fDown < full {
			put(forward, down, &fDown)
		}
		put(inputGrad, down, &iDown)
		put(weightGrad, down, &wDown)
		put(forward, up, &fUp)
		put(inputGrad, up, &iUp)
		put(weightGrad, up, &wUp)
	}
	// Drain: inputs' gradients first, since other ranks wait for them.
	for range rank {
		put(inputGrad, down, &iDown)
		put(inputGrad, up, &iUp)
	}
	for range z.Ranks - rank {
		put(inputGrad, down, &iDown)
		put(weightGrad, down, &wDown)
	}
	for wUp < iUp {
		put(weightGrad, up, &wUp)
	}
	for wDown < iDown {
		put(weightGrad, down, &wDown)
	}
	return actions
}

// twoChunks is the fit of schedules in a V.
func twoChunks(z Size) (Size, error) {
	if z.Chunks != 2 {
		return z, fmt.Errorf("%d chunks: it has 2", z.Chunks)
	}
	return noGroup(z)
}
