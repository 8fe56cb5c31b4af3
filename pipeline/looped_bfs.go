package pipeline

// loopedBFS runs all microbatches through one chunk before the next chunk,
// forwards in ascending and backwards in descending order of chunks and of
// microbatches. Source: Lamy-Poirier, "Breadth-First Pipeline Parallelism"
// (2022), with the order of PyTorch's ScheduleLoopedBFS.
func loopedBFS(z Size, rank int) []Action {
	actions := make([]Action, 0, 2*z.Chunks*z.Microbatches)
	for c := range z.Chunks {
		for m := range z.Microbatches {
			actions = append(actions, forward(c*z.Ranks+rank, m))
		}
	}
	for c := z.Chunks - 1; c >= 0; c-- {
		for m := z.Microbatches - 1; m >= 0; m-- {
			actions = append(actions, backward(c*z.Ranks+rank, m))
		}
	}
	return actions
}
