package doctor

import (
	"fmt"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// SuspectedLock is a lock that nobody can read back, inferred from the clock.
type SuspectedLock struct {
	// MHz is the clock that the GPU is held at.
	MHz int    `json:"clock_mhz"`
	Why string `json:"why"`
}

// enoughSamples is how many a suspicion needs: a clock that stands still for a moment is none.
const enoughSamples = 5

// Suspect tells whether samples of a GPU that nobody here has locked look as if somebody else had: the clock stands still
// below the highest, and the driver names no reason, neither idleness nor power, heat or a slowdown. A lock that includes
// what the GPU would do anyway, as one at the highest clock, cannot be seen; a lock may be suspected that is none, such as
// a clock set aside by a tool that profiles. clocks are those on offer, from the highest down.
func Suspect(clocks []int, samples []Sample) *SuspectedLock {
	if len(clocks) < 2 || len(samples) < enoughSamples {
		return nil
	}
	at := samples[0].MHz
	for _, s := range samples {
		why := s.Throttle
		why.Capped = 0
		if s.MHz != at || why != (gpu.Throttle{}) {
			return nil
		}
	}
	// Clocks are read a few MHz off what is listed.
	if nearest(clocks, at) == clocks[0] {
		return nil
	}
	return &SuspectedLock{MHz: at, Why: fmt.Sprintf("the clock stands at %d MHz, below %d, and the driver names no reason", at, clocks[0])}
}

// nearest returns the listed clock next to mhz, the higher of two.
func nearest(descending []int, mhz int) int {
	best := descending[0]
	for _, c := range descending[1:] {
		if max(c-mhz, mhz-c) < max(best-mhz, mhz-best) {
			best = c
		}
	}
	return best
}

// foreign says whether somebody else seems to have locked the clocks.
func (g *GPU) foreign(s seen) {
	g.SuspectedLock = Suspect(g.ClocksMHz, s.samples)
	if g.SuspectedLock == nil {
		if len(s.samples) >= enoughSamples {
			g.add("foreign lock", OK, "no sign of a lock; a lock cannot be read back, only inferred", "")
		}
		return
	}
	g.add("foreign lock", Note, "somebody seems to have locked the clocks: "+g.SuspectedLock.Why,
		"find out who (a perseus agent that runs here, nvidia-smi -lgc, dcgm, a profiler); nvidia-smi -i "+g.PCI+" -rgc takes it back, and perseus agent --restore LOW,HIGH says what to restore if it is meant")
}
