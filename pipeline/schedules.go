package pipeline

import "fmt"

// Schedules returns all schedules, in the order in which a list shows them.
func Schedules() []Schedule {
	return []Schedule{
		{
			Name: "gpipe", Aliases: []string{"fill-drain"},
			Summary: "all forwards, then all backwards", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 4}, fit: oneChunk, rank: gpipe,
		},
		{
			Name: "1f1b", Aliases: []string{"pipedream-flush", "one-forward-one-backward", "dapple"},
			Summary: "one forward, one backward in turn", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 6}, fit: oneChunk, rank: oneForwardOneBackward,
		},
		{
			Name: "gpipe-forward", Aliases: []string{"forward-only", "inference"},
			Summary: "forwards only: inference", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 6}, fit: oneChunk, rank: gpipeForward,
		},
	}
}

// oneChunk is the fit of schedules with one stage a rank.
func oneChunk(z Size) (Size, error) {
	if z.Chunks != 1 {
		return z, fmt.Errorf("%d chunks: it has 1; interleaved-1f1b and looped-bfs have several", z.Chunks)
	}
	return noGroup(z)
}

// noGroup refuses a group where it would mean nothing.
func noGroup(z Size) (Size, error) {
	if z.Group != 0 {
		return z, fmt.Errorf("group = %d: only interleaved schedules have a group", z.Group)
	}
	return z, nil
}
