package pipeline

// oneForwardOneBackward fills the pipeline, then runs one forward and one
// backward in turn, then drains it: at most ranks−rank microbatches are live.
// Source: Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training"
// (2021), PipeDream-Flush; Megatron-LM runs the same order.
func oneForwardOneBackward(z Size, rank int) []Action {
	warmup := min(z.Ranks-rank-1, z.Microbatches)
	actions := make([]Action, 0, 2*z.Microbatches)
	for m := range z.Microbatches + warmup {
		if m < z.Microbatches {
			actions = append(actions, forward(rank, m))
		}
		if m >= warmup {
			actions = append(actions, backward(rank, m-warmup))
		}
	}
	return actions
}
