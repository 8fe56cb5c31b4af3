package pipeline

import "fmt"

// dualPipe feeds microbatches from both ends: the first half enters at rank 0,
// the second half at the last rank, and each rank holds two stages, one for each
// direction. Forwards of one direction run together with backwards of the other.
// Source: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.2.1, and
// deepseek-ai/DualPipe.
func dualPipe(z Size, rank int) []Action {
	// The two halves of the ranks mirror each other: near is the direction that
	// enters at this half's end.
	mirrored := z.Ranks - 1 - rank
	near := stream{stage: rank}
	far := stream{stage: mirrored, first: z.Microbatches / 2}
	if rank >= z.Ranks/2 {
		near, far = far, near
	}
	return dual(z.Ranks/2, min(rank, mirrored), z.Microbatches/2, near, far)
}

// dualPipeV is the half of dualPipe's ranks that a V of two chunks needs: the
// streams are the two chunks. Source: Qi et al., "Cut-in-half" (2025), and
// deepseek-ai/DualPipe.
func dualPipeV(z Size, rank int) []Action {
	return dual(z.Ranks, rank, z.Microbatches, stream{stage: rank}, stream{stage: 2*z.Ranks - 1 - rank})
}

// stream is one of the two ways of microbatches through a rank.
type stream struct {
	stage, first       int // first is its lowest microbatch
	forwards, backward int // done so far
}

func (s *stream) nextForward() (stage, m int) {
	s.forwards++
	return s.stage, s.first + s.forwards - 1
}

func (s *stream) nextBackward() (stage, m int) {
	s.backward++
	return s.stage, s.first + s.backward - 1
}

// dual returns the actions of the rank that is depth ranks from the end at which
// stream a enters; b, which comes back from the middle or the V's turn, passes
// half ranks. Each stream has the given number of microbatches, at least 2·half.
func dual(half, depth, microbatches int, a, b stream) []Action {
	actions := make([]Action, 0, 6*microbatches)
	var pending []Action // weights' parts, first in first out
	f := func(s *stream) { actions = append(actions, forward(s.nextForward())) }
	full := func(s *stream) { actions = append(actions, backward(s.nextBackward())) }
	input := func(s *stream) {
		stage, m := s.nextBackward()
		actions = append(actions, inputGrad(stage, m))
		pending = append(pending, weightGrad(stage, m))
	}
	weight := func() {
		actions = append(actions, pending[0])
		pending = pending[1:]
	}
	overlap := func(fs, bs *stream) {
		stage, m := fs.nextForward()
		otherStage, otherM := bs.nextBackward()
		actions = append(actions, Overlapped(int32(stage), int32(m), int32(otherStage), int32(otherM)))
	}

	behind := half - depth - 1 // ranks between this one and the turn
	for range 2 * behind {
		f(&a)
	}
	for range depth + 1 {
		f(&a)
		f(&b)
	}
	for range behind {
		input(&b)
		weight()
		f(&b)
	}
	for i := range microbatches - 2*half + depth + 1 {
		if i == 0 && behind == 0 {
			// Apart, at the turn, so that the next rank starts sooner.
			f(&a)
			full(&b)
		} else {
			overlap(&a, &b)
		}
		overlap(&b, &a)
	}
	for range behind {
		full(&b)
		overlap(&b, &a)
	}
	// Of these 2·(depth+1) backwards the second half is split.
	for i := range 2 * (depth + 1) {
		s := &b
		if i%2 == 1 {
			s = &a
		}
		if i <= depth {
			full(s)
		} else {
			input(s)
		}
	}
	for range behind {
		weight()
		input(&a)
	}
	for range depth + 1 {
		weight()
	}
	return actions
}

// dualSize is the fit of dualPipe.
func dualSize(z Size) (Size, error) {
	z, err := twoChunks(z)
	switch {
	case err != nil:
		return z, err
	case z.Ranks%2 != 0:
		return z, fmt.Errorf("%d ranks: their number must be even; dualpipev takes any", z.Ranks)
	case z.Microbatches%2 != 0 || z.Microbatches < 2*z.Ranks:
		return z, fmt.Errorf("%d microbatches on %d ranks: their number must be even and at least %d, twice the ranks",
			z.Microbatches, z.Ranks, 2*z.Ranks)
	}
	return z, nil
}

// dualVSize is the fit of dualPipeV.
func dualVSize(z Size) (Size, error) {
	z, err := twoChunks(z)
	if err == nil && z.Microbatches < 2*z.Ranks {
		return z, fmt.Errorf("%d microbatches on %d ranks: at least %d are needed, one for each stage; zbv takes any number",
			z.Microbatches, z.Ranks, 2*z.Ranks)
	}
	return z, err
}
