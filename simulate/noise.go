package simulate

import (
	"math/rand/v2"

	"github.com/perseus-energy/perseus/plan"
)

// MaxNoise bounds the standard deviation of op times: at six times that, which
// no draw exceeds, an op still takes a tenth of its time.
const MaxNoise = 15 * plan.One / 100

// noise draws factors around 1. It works in integers, so that the same seed gives
// the same factors on every machine.
type noise struct {
	pcg       *rand.PCG
	deviation plan.Ratio
}

func newNoise(seed, stream uint64, deviation plan.Ratio) *noise {
	return &noise{rand.NewPCG(seed, stream), deviation}
}

// next returns 1 + deviation·z, where z is the sum of twelve uniform numbers of
// variance 1/12 less its mean: the normal distribution to within 0.01 of its
// distribution function, cut at ±6.
func (n *noise) next() plan.Ratio {
	sum := int64(0)
	for range 3 {
		v := n.pcg.Uint64()
		sum += int64(v&0xffff) + int64(v>>16&0xffff) + int64(v>>32&0xffff) + int64(v>>48)
	}
	z := sum - 6*0xffff // in 1/65536
	return plan.One + plan.Ratio(int64(n.deviation)*z/65536)
}
