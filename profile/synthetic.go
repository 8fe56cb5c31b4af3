package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/unit"
)

// SyntheticConfig describes a model on emulated GPUs. A field that is zero has
// the default given beside it; where zero itself is wanted, write a negative
// number. Values outside the stated range are taken as the nearest inside.
type SyntheticConfig struct {
	// Seed makes another profile of the same kind.
	Seed uint64
	// Stages (8; up to 65536) and how often each op is measured at each clock (1;
	// up to 1000).
	Stages, Repeats int
	// The clocks are MaxMHz (1410; 100 … 5000) and down by StepMHz (15) to MinMHz
	// (810; from 50).
	MinMHz, MaxMHz, StepMHz int32
	// Forward is the time of a forward at MaxMHz on a stage without extra work
	// (50 ms; 1 µs … 1 s). A backward takes 1.86 times as long.
	Forward unit.Time
	// What the first stage has more to do for the embedding (20) and the last one
	// for the LM head (100), and how far stages differ otherwise, at most, up or
	// down (10); in thousandths, up to 3000, Spread up to 900.
	Embedding, Head, Spread int
	// Noise is the standard deviation of times, in millionths (1500; up to
	// 50,000); that of the power is the same.
	Noise int
	// SplitBackward adds input-gradient and weight-gradient.
	SplitBackward bool

	// Static is what a busy GPU draws at any clock (100 W; up to 500 W), Dynamic
	// what it draws above that at MaxMHz (385 W; up to 2 kW).
	Static, Dynamic unit.Power
	// KneeMHz is the clock below which the voltage no longer falls (68 % of
	// MaxMHz), KneeVoltage the voltage there as a share of that at MaxMHz, in
	// thousandths (690; 100 … 1000).
	KneeMHz     int32
	KneeVoltage int
	// Memory is the share of a forward at MaxMHz that waits for memory, which the
	// clock does not change, in thousandths (150; up to 1000). A backward's is a
	// third larger.
	Memory int
}

// withDefaults returns c with each field filled in and in its range.
func (c SyntheticConfig) withDefaults() SyntheticConfig {
	fill(&c.Stages, 8, 1, maxStage+1)
	fill(&c.Repeats, 1, 1, 1000)
	fill(&c.MaxMHz, 1410, 100, usualFastest)
	fill(&c.MinMHz, c.MaxMHz*810/1410, 50, c.MaxMHz)
	fill(&c.StepMHz, 15, 1, c.MaxMHz)
	fill(&c.Forward, 50*unit.Millisecond, unit.Microsecond, unit.Second)
	fill(&c.Embedding, 20, 0, 3000)
	fill(&c.Head, 100, 0, 3000)
	fill(&c.Spread, 10, 0, 900)
	fill(&c.Noise, 1500, 0, 50_000)
	fill(&c.Static, 100*unit.Watt, 0, 500*unit.Watt)
	fill(&c.Dynamic, 385*unit.Watt, 0, 2000*unit.Watt)
	fill(&c.KneeMHz, c.MaxMHz*68/100, 0, c.MaxMHz)
	fill(&c.KneeVoltage, 690, 100, 1000)
	fill(&c.Memory, 150, 0, 1000)
	return c
}

func fill[T ~int | ~int32 | ~int64](field *T, standard, least, most T) {
	if *field == 0 {
		*field = standard
	}
	*field = min(max(*field, least), most)
}

// Synthetic returns a profile made by a model of a GPU with dynamic voltage and
// frequency scaling, for examples, tests and benchmarks. At clock f, with F the
// greatest one and µ the share of waiting for memory,
//
//	t(f) = t(F) · (µ + (1 − µ)·F/f)
//	V(f) = max(V_knee, V_knee + (1 − V_knee)·(f − f_knee)/(F − f_knee)), V(F) = 1
//	e(f) = P_static·t(f) + P_dynamic·t(F)·(µ + (1 − µ)·V(f)²)
//
// that is, switching costs C·V² a cycle, and the number of cycles and of memory
// accesses does not depend on the clock. The split of time is that of Hong and
// Kim (ISCA 2010) and, for clocks, Nath and Tullsen (MICRO 2015); a voltage that
// is flat below a knee and linear above it was measured by Guerreiro, Ilic, Roma
// and Tomás, "GPGPU Power Modelling for Multi-Domain Voltage-Frequency Scaling"
// (HPCA 2018). Times and powers are then multiplied by 1 + noise and rounded to
// 100 ns and 10 µJ. All of it is computed in integers from a PCG generator: the
// same configuration gives the same profile on every machine. The defaults
// resemble a training stage on an A100 SXM. O(rows).
func Synthetic(config SyntheticConfig) *Profile {
	c := config.withDefaults()
	rng := rand.New(rand.NewPCG(c.Seed, 0x9e3779b97f4a7c15))
	type instruction struct {
		name         string
		work, memory int64 // thousandths of a forward's time; of its own time
	}
	memory := int64(c.Memory)
	instructions := []instruction{{"backward", 1860, min(1000, memory*4/3)}, {"forward", 1000, memory}}
	if c.SplitBackward {
		instructions = append(instructions, instruction{"input-gradient", 1000, memory}, instruction{"weight-gradient", 860, min(1000, memory*5/3)})
	}
	var names []string
	for _, i := range instructions {
		names = append(names, i.name)
	}
	var clocks []int32
	for f := c.MaxMHz; f >= c.MinMHz; f -= c.StepMHz {
		clocks = append(clocks, f)
	}
	slices.Reverse(clocks)
	rows := make([]row, 0, c.Stages*len(instructions)*len(clocks)*c.Repeats)
	for stage := range int32(c.Stages) {
		work := int64(1000 + rng.IntN(2*c.Spread+1) - c.Spread)
		if stage == 0 {
			work += int64(c.Embedding)
		}
		if int(stage) == c.Stages-1 {
			work += int64(c.Head)
		}
		for i, in := range instructions {
			top := mulDiv(int64(c.Forward), work*in.work, 1e6)
			for _, f := range clocks {
				time, energy := c.model(top, in.memory, f)
				for range c.Repeats {
					r := row{stage: stage, instruction: int32(i), clock: f}
					slower := 1e6 + c.noise(rng)
					t, e := mulDiv(time, slower, 1e6), mulDiv(mulDiv(energy, slower, 1e6), 1e6+c.noise(rng), 1e6)
					r.time = unit.Time(max(1, (t+50)/100) * 100)
					r.energy = unit.Energy(max(1, (e+5e6)/1e7) * 1e7)
					rows = append(rows, r)
				}
			}
		}
	}
	return synthesized(rows, names)
}

// synthesized returns the profile of rows as if they had been read.
func synthesized(rows []row, names []string) *Profile {
	sortRows(rows)
	p := newProfile(rows, names, 1, Report{Name: "synthetic profile", Rows: len(rows)})
	var text strings.Builder
	_ = p.WriteCSV(&text) // a builder does not fail
	sum := sha256.Sum256([]byte(text.String()))
	p.SHA256, p.Report.Bytes = hex.EncodeToString(sum[:]), int64(text.Len())
	return p
}

// model returns time and energy, in ns and pJ, at clock f of an op that takes
// top at the greatest clock, without noise.
func (c SyntheticConfig) model(top, memory int64, f int32) (time, energy int64) {
	time = mulDiv(top, memory*int64(f)+(1000-memory)*int64(c.MaxMHz), 1000*int64(f))
	volt := int64(c.KneeVoltage) * 1000 // millionths
	if f > c.KneeMHz {
		volt += (1e6 - volt) * int64(f-c.KneeMHz) / int64(c.MaxMHz-c.KneeMHz)
	}
	switching := memory*1e9 + (1000-memory)*(volt*volt/1000) // 1e12 at the greatest clock
	// mW·ns are pJ.
	static := mulDiv(int64(c.Static), time, 1000)
	dynamic := mulDiv(mulDiv(int64(c.Dynamic), top, 1000), switching, 1e12)
	return time, static + dynamic
}

// noise returns a random number in millionths: the sum of twelve uniform ones,
// which is close to normal.
func (c SyntheticConfig) noise(rng *rand.Rand) int64 {
	sum := int64(-6e6)
	for range 12 {
		sum += int64(rng.IntN(1e6 + 1))
	}
	return sum * int64(c.Noise) / 1e6
}

// mulDiv returns a·b/c, rounded to nearest, for a, b ≥ 0, c > 0 and a result
// that fits.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c)/2, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(c))
	return int64(q)
}
