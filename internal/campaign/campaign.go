package campaign

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// MinSamples is how many samples a clock of an op needs: fewer give no distribution-free 95 % interval of the median.
const MinSamples = 6

// MoreSamples is how many it gets where its interval overlaps that of the clock above.
const MoreSamples = 18

// MaxSamples is how many samples of a clock are kept; later ones are counted and dropped.
const MaxSamples = 64

// Op is an instruction of a stage and the clocks to try, in MHz, from the highest down.
type Op struct {
	Stage       int
	Instruction string
	ClocksMHz   []int
}

// Config says what is to be profiled.
type Config struct {
	Ops []Op
	// Replicas is the number of data-parallel pipelines, over which clocks are spread.
	Replicas int
	// Rises in a row of an op's effective energy end its way down.
	Rises int
	// BlockingPowerW is what a GPU draws while it waits; 0: it is found from iterations.
	BlockingPowerW float64
}

// Campaign profiles a job while it trains. Its fields are its whole state, for JSON; the same calls give the same steps.
type Campaign struct {
	Config  Config
	Points  [][]Point // of each op, in the order of its clocks
	Waiting []float64 // powers seen while waiting, in W
	// LeftOut counts samples that are no measurement, of an unknown op or clock, or of a GPU that was held back;
	// Dropped those beyond MaxSamples.
	LeftOut, Dropped int
}

// Point holds the samples of one op at one clock, in s and J.
type Point struct{ TimesS, EnergiesJ []float64 }

// Sample is one measured op.
type Sample struct {
	Stage          int
	Instruction    string
	ClockMHz       int
	TimeS, EnergyJ float64
	// Capped: power or heat held the GPU back.
	Capped bool
}

// New returns a campaign that has seen nothing. It fails on a configuration that has no op, an op without clocks or
// twice, or clocks that do not fall.
func New(c Config) (*Campaign, error) {
	if len(c.Ops) == 0 || c.Replicas < 1 || c.Rises < 1 {
		return nil, errors.New("a campaign needs ops, and one replica and one rise at least")
	}
	points := make([][]Point, len(c.Ops))
	for i, op := range c.Ops {
		if len(op.ClocksMHz) == 0 {
			return nil, fmt.Errorf("stage %d, %s: no clocks", op.Stage, op.Instruction)
		}
		for j := 1; j < len(op.ClocksMHz); j++ {
			if op.ClocksMHz[j] >= op.ClocksMHz[j-1] {
				return nil, fmt.Errorf("stage %d, %s: clock %d MHz comes after %d: list them from the highest down",
					op.Stage, op.Instruction, op.ClocksMHz[j], op.ClocksMHz[j-1])
			}
		}
		if slices.ContainsFunc(c.Ops[:i], func(o Op) bool { return o.Stage == op.Stage && o.Instruction == op.Instruction }) {
			return nil, fmt.Errorf("stage %d, %s: there twice", op.Stage, op.Instruction)
		}
		points[i] = make([]Point, len(op.ClocksMHz))
	}
	return &Campaign{Config: c, Points: points}, nil
}

// Step returns the clock in MHz of each op, for each replica, to run next, and false with the top clocks once nothing
// is missing. A replica takes the next clock that lacks samples after those of the replicas before it, so up to
// Replicas − 1 clocks below the last needed one may be tried. A step is repeated until samples arrive: a job that
// reports nothing stays where it is, and its caller bounds the cost. O(ops·clocks·samples).
func (c *Campaign) Step() (clocks [][]int, more bool) {
	w, known := c.BlockingPower()
	missing := make([][]int, len(c.Points))
	for i, points := range c.Points {
		if known {
			points = points[:needed(points, w, c.Config.Rises)]
		}
		// As long as nothing is known of waiting, no clock can be left out.
		for j, p := range points {
			if len(p.TimesS) < MinSamples || j > 0 && len(p.TimesS) < MoreSamples && alike(points[j-1], p) {
				missing[i] = append(missing[i], j)
			}
		}
		more = more || len(missing[i]) > 0
	}
	clocks = make([][]int, c.Config.Replicas)
	for r := range clocks {
		clocks[r] = make([]int, len(missing))
		for i, m := range missing {
			next := 0
			if len(m) > 0 {
				next = m[min(r, len(m)-1)]
			}
			clocks[r][i] = c.Config.Ops[i].ClocksMHz[next]
		}
	}
	return clocks, more
}

// Progress returns how many clocks, over all ops, have the samples they need, and how many are needed as far as is
// known now.
func (c *Campaign) Progress() (done, all int) {
	w, known := c.BlockingPower()
	for _, points := range c.Points {
		if known {
			points = points[:needed(points, w, c.Config.Rises)]
		}
		all += len(points)
		for _, p := range points {
			if len(p.TimesS) >= MinSamples {
				done++
			}
		}
	}
	return done, all
}

// Alike returns the pairs of neighbouring clocks whose times and energies cannot be told apart even with MoreSamples,
// as many as limit.
func (c *Campaign) Alike(limit int) []string {
	var out []string
	for i, points := range c.Points {
		op := c.Config.Ops[i]
		for j := 1; j < len(points) && len(out) < limit; j++ {
			if len(points[j].TimesS) >= MoreSamples && alike(points[j-1], points[j]) {
				out = append(out, fmt.Sprintf("stage %d, %s: %d and %d MHz", op.Stage, op.Instruction, op.ClocksMHz[j-1], op.ClocksMHz[j]))
			}
		}
	}
	return out
}

// alike says whether neither time nor energy tells two measured clocks apart: their intervals overlap.
func alike(a, b Point) bool {
	return overlap(a.TimesS, b.TimesS) && overlap(a.EnergiesJ, b.EnergiesJ)
}

func overlap(a, b []float64) bool {
	alo, ahi, aok := Interval(a)
	blo, bhi, bok := Interval(b)
	return aok && bok && alo <= bhi && blo <= ahi
}

// needed returns how many clocks of an op are to be tried where a waiting GPU draws w: down to the one at which its
// effective energy has risen often enough in a row, all if it has not.
func needed(points []Point, w float64, rises int) int {
	var effective []float64
	for _, p := range points {
		if len(p.TimesS) < MinSamples {
			break
		}
		effective = append(effective, Median(p.EnergiesJ)-w*Median(p.TimesS))
	}
	if n, ok := Lowest(effective, rises); ok {
		return n
	}
	return len(points)
}

// Add takes a sample, at whatever step it was measured.
func (c *Campaign) Add(s Sample) {
	i := slices.IndexFunc(c.Config.Ops, func(o Op) bool { return o.Stage == s.Stage && o.Instruction == s.Instruction })
	if i < 0 || s.Capped || !positive(s.TimeS) || !positive(s.EnergyJ) {
		c.LeftOut++
		return
	}
	j := slices.Index(c.Config.Ops[i].ClocksMHz, s.ClockMHz)
	if j < 0 {
		c.LeftOut++
		return
	}
	p := &c.Points[i][j]
	if len(p.TimesS) >= MaxSamples {
		c.Dropped++
		return
	}
	p.TimesS, p.EnergiesJ = append(p.TimesS, s.TimeS), append(p.EnergiesJ, s.EnergyJ)
}

// AddIteration takes the time and energy of a whole iteration of one GPU, and those of its ops: the rest is waiting.
// An iteration that waits for less than 2 % of its time says nothing of waiting and is passed over.
func (c *Campaign) AddIteration(timeS, energyJ, opsTimeS, opsEnergyJ float64) {
	wait := timeS - opsTimeS
	if !positive(timeS) || !positive(energyJ) || !positive(opsTimeS) || !positive(opsEnergyJ) {
		c.LeftOut++
		return
	}
	if wait < 0.02*timeS {
		return
	}
	power := (energyJ - opsEnergyJ) / wait
	switch {
	case !positive(power):
		c.LeftOut++
	case len(c.Waiting) >= MaxSamples:
		c.Dropped++
	default:
		c.Waiting = append(c.Waiting, power)
	}
}

// BlockingPower returns what a GPU draws while it waits, in W: as configured, or the median of MinSamples iterations
// or more. ok is false before that.
func (c *Campaign) BlockingPower() (w float64, ok bool) {
	if c.Config.BlockingPowerW > 0 {
		return c.Config.BlockingPowerW, true
	}
	return Median(c.Waiting), len(c.Waiting) >= MinSamples
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
