package pipeline

// earlyRecompute is 1F1B in which a forward keeps only its input and the rest is
// computed again. A backward that follows a forward recomputes by itself (RB);
// once the forwards have run out, a rank recomputes (R) while it waits for the
// gradient. Source: Lai et al., "Merak" (2022), section 4.2, in the order of
// lowtime's EarlyRecomputation1F1B.
func earlyRecompute(z Size, rank int) []Action {
	actions := make([]Action, 0, 3*z.Microbatches)
	for _, a := range oneForwardOneBackward(z, rank) {
		if a.Kind == Backward {
			if int(a.Microbatch) <= z.Microbatches-z.Ranks+rank {
				a.Kind = RecomputeBackward
			} else {
				actions = append(actions, action(Recompute, rank, int(a.Microbatch)))
			}
		}
		actions = append(actions, a)
	}
	return actions
}
