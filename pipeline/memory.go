package pipeline

// Peak is the most that a rank has in memory at once. A stage and microbatch
// counts from the start of its forward to the end of its backward, B or W, since
// W needs the activations too.
type Peak struct {
	// Activations is how many stage-microbatches have all their activations live
	// at once: each is 1/Chunks of what a whole rank's layers need for one
	// microbatch.
	Activations int
	// Checkpoints is how many have only their input kept, until R or RB makes the
	// activations anew; 0 without recomputation.
	Checkpoints int
}

// Peaks returns each rank's peak, in the order's own sequence, whatever the
// times. It takes the order for one that Check passes. O(ops).
func (o *Order) Peaks() []Peak {
	recomputed := o.recomputed()
	peaks := make([]Peak, len(o.Ranks))
	for r, actions := range o.Ranks {
		var live, checkpoints int
		for _, a := range actions {
			freed, used := 0, 0
			parts, n := a.Parts()
			for _, p := range parts[:n] {
				again := recomputed != nil && p.Kind != Load && recomputed[int(p.Stage)*o.Size.Microbatches+int(p.Microbatch)]
				switch p.Kind {
				case Forward:
					live++
					if again {
						live--
						checkpoints++
						// While it runs it needs its activations too.
						used++
					}
				case Recompute:
					live++
					checkpoints--
				case RecomputeBackward:
					used++
					checkpoints--
				case Backward:
					freed++
				case WeightGrad:
					freed++
				}
			}
			peaks[r].Activations = max(peaks[r].Activations, live+used)
			peaks[r].Checkpoints = max(peaks[r].Checkpoints, checkpoints)
			live -= freed
		}
	}
	return peaks
}

// recomputed says of each stage and microbatch whether its activations are
// recomputed; nil where none are.
func (o *Order) recomputed() []bool {
	var again []bool
	for _, a := range o.All() {
		if a.Kind == Recompute || a.Kind == RecomputeBackward {
			if again == nil {
				again = make([]bool, o.Stages*o.Size.Microbatches)
			}
			again[int(a.Stage)*o.Size.Microbatches+int(a.Microbatch)] = true
		}
	}
	return again
}
