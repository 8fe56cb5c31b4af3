package pipeline

// gpipe runs all forwards, then all backwards, microbatches in the same order in
// both. Source: Huang et al., "GPipe" (2019), section 2.3, with the backward
// order of PyTorch's ScheduleGPipe.
func gpipe(z Size, rank int) []Action {
	actions := gpipeForward(z, rank)
	for m := range z.Microbatches {
		actions = append(actions, backward(rank, m))
	}
	return actions
}

// gpipeForward runs the forwards only: inference.
func gpipeForward(z Size, rank int) []Action {
	actions := make([]Action, 0, 2*z.Microbatches)
	for m := range z.Microbatches {
		actions = append(actions, forward(rank, m))
	}
	return actions
}
