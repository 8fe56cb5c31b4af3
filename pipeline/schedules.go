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
			Name: "1f1b-early-recompute", Aliases: []string{"early-recomputation-1f1b", "1f1b-early-recomputation", "early-recompute-1f1b", "merak"},
			Summary: "1f1b with activations recomputed, early where a rank would wait", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 6}, fit: oneChunk, rank: earlyRecompute,
		},
		{
			Name: "interleaved-1f1b", Aliases: []string{"interleaved", "vpp", "1f1b-interleaved", "virtual-pipeline"},
			Summary: "1f1b over several chunks a rank",
			Sizes:   "group G: M / max(1, M div P) where that is whole (the default), or P ≤ G ≤ M with M mod G either 0 or at least P",
			Example: Size{Ranks: 3, Chunks: 2, Microbatches: 6}, fit: inGroups, rank: interleaved1F1B,
		},
		{
			Name: "looped-bfs", Aliases: []string{"bfs", "breadth-first", "breadth-first-pipeline"},
			Summary: "gpipe over several chunks a rank", Sizes: "any ranks, chunks and microbatches",
			Example: Size{Ranks: 4, Chunks: 2, Microbatches: 4}, fit: noGroup, rank: loopedBFS,
		},
		{
			Name: "zb-h1", Aliases: []string{"zb1p", "zero-bubble", "zero-bubble-h1"},
			Summary: "1f1b with weights' gradients put off into the bubbles", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 6}, fit: oneChunk, rank: zbH1,
		},
		{
			Name:    "zb-h1-quickstart",
			Summary: "zb-h1 that splits a backward only where it fills a bubble", Sizes: "any ranks and microbatches, 1 chunk",
			Example: Size{Ranks: 4, Chunks: 1, Microbatches: 6}, fit: oneChunk, rank: zbH1Quickstart,
		},
		{
			Name: "interleaved-zero-bubble", Aliases: []string{"interleaved-zb", "interleaved-zb1p"},
			Summary: "interleaved-1f1b with weights' gradients put off into the bubbles",
			Sizes:   "M a multiple of max(1, M div P); group M / max(1, M div P)",
			Example: Size{Ranks: 3, Chunks: 2, Microbatches: 6}, fit: inRounds, rank: interleavedZeroBubble,
		},
		{
			Name: "zbv", Aliases: []string{"zbv-zero-bubble", "zero-bubble-v"},
			Summary: "two chunks a rank in a V, no bubble at equal times", Sizes: "any ranks and microbatches, 2 chunks",
			Placement: V, Example: Size{Ranks: 3, Chunks: 2, Microbatches: 6}, fit: twoChunks, rank: zbv,
		},
		{
			Name:    "dualpipe",
			Summary: "microbatches from both ends, forwards and backwards overlapped", Sizes: "2 chunks, P even, M even and at least 2·P",
			Placement: Bidirectional, Example: Size{Ranks: 4, Chunks: 2, Microbatches: 8}, fit: dualSize, rank: dualPipe,
		},
		{
			Name: "dualpipev", Aliases: []string{"cut-in-half"},
			Summary: "dualpipe's order on a V of two chunks", Sizes: "2 chunks, M at least 2·P",
			Placement: V, Example: Size{Ranks: 3, Chunks: 2, Microbatches: 6}, fit: dualVSize, rank: dualPipeV,
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
		return z, fmt.Errorf("%d chunks: it has 1; interleaved-1f1b, interleaved-zero-bubble and looped-bfs have several", z.Chunks)
	}
	return noGroup(z)
}

// noGroup refuses a group where it would mean nothing.
func noGroup(z Size) (Size, error) {
	if z.Group != 0 {
		return z, fmt.Errorf("group = %d: only interleaved-1f1b and interleaved-zero-bubble have a group", z.Group)
	}
	return z, nil
}
