package demo

import (
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/training"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// cluster is the emulated hardware and what runs on it.
type cluster struct {
	clock  *emulated.Clock
	order  *pipeline.Order
	boards [][]*emulated.Board // by pipeline and rank
	config Config
	ops    map[opKey]*emulated.Op
}

// opKey tells the ops of a cluster apart: GPUs of a stage are alike.
type opKey struct {
	stage int
	kind  pipeline.Kind
}

// model is the name of the GPUs.
const model = "Emulated A100"

// realIteration is how long an iteration takes in real time where no speed is given.
const realIteration = 100 * time.Millisecond

func newCluster(c Config) (*cluster, error) {
	order, err := jobs.Order("1f1b", pipeline.Size{Ranks: c.Stages, Microbatches: c.Microbatches}, c.Stages)
	if err != nil {
		return nil, err
	}
	k := &cluster{order: order, config: c, ops: map[opKey]*emulated.Op{}}
	// Boards live on a clock, whose speed depends on what they take: those of a first cluster tell.
	k.clock = emulated.NewClock(time.Now(), 1)
	if c.Speed == 0 {
		if err := k.build(1); err != nil {
			return nil, err
		}
		t, err := k.iteration()
		if err != nil {
			return nil, err
		}
		c.Speed = max(1, min(100, float64(t)/float64(realIteration)))
		k.ops = map[opKey]*emulated.Op{}
	}
	k.config = c
	k.clock = emulated.NewClock(time.Now(), c.Speed)
	k.clock.Naps(nap)
	return k, k.build(c.Pipelines)
}

// build makes the boards of some pipelines.
func (k *cluster) build(pipelines int) error {
	k.boards = nil
	for p := range pipelines {
		var boards []*emulated.Board
		for rank := range k.order.Ranks {
			i := p*len(k.order.Ranks) + rank
			c := emulated.Config{
				Info:   gpu.Info{ID: fmt.Sprintf("emulated:GPU-%04d", i), Name: model, Driver: "emulated", PCI: fmt.Sprintf("%04x:00:00.0", i), Index: rank},
				MinMHz: 810, MaxMHz: 1410, StepMHz: 30, MemoryMHz: 1593,
				Idle: 55 * unit.Watt, Static: 65 * unit.Watt, Dynamic: 280 * unit.Watt,
				Blocking: []emulated.ClockPower{{MHz: 1410, Power: k.config.Blocking}},
				Limit:    gpu.PowerLimit{Requested: 500 * unit.Watt, Enforced: 500 * unit.Watt, Default: 500 * unit.Watt, Min: 100 * unit.Watt, Max: 500 * unit.Watt},
				Latency:  k.config.Latency, CounterStep: k.config.CounterStep, Late: 100 * time.Millisecond, Seed: uint64(i), Now: k.clock.Now,
			}
			if k.config.Profile != nil {
				clocks, err := training.Clocks(k.config.Profile, rank)
				if err != nil {
					return err
				}
				c.Clocks, c.Limit = clocks, gpu.PowerLimit{}
			}
			b, err := emulated.New(c)
			if err != nil {
				return err
			}
			boards = append(boards, b)
		}
		k.boards = append(k.boards, boards)
	}
	return nil
}

// op returns what an action is on the GPU of a rank.
func (k *cluster) op(_, rank int, a pipeline.Action) (*emulated.Op, error) {
	key := opKey{int(a.Stage), a.Kind}
	if o := k.ops[key]; o != nil {
		return o, nil
	}
	b := k.boards[0][rank]
	var o *emulated.Op
	if k.config.Profile != nil {
		var err error
		if o, err = training.Measured(b, k.config.Profile, a); err != nil {
			return nil, err
		}
	} else {
		work := k.work(int(a.Stage))
		if a.Kind == pipeline.Backward {
			work *= 1.86
		}
		// 50 ms at 1410 MHz, 15 % of it waiting for memory.
		o = b.Formula(a.Kind.Instruction(), work*0.85*0.05*1410e6, time.Duration(work*0.15*float64(50*time.Millisecond)), 1)
	}
	k.ops[key] = o
	return o, nil
}

// work is how heavy a stage is: embedding and head make the first and the last one heavier, and layers do not divide
// evenly.
func (k *cluster) work(stage int) float64 {
	w := []float64{1, 0.96, 1.03, 0.98, 1.02, 0.95, 1.01, 0.97}[stage%8]
	if stage == 0 {
		w += 0.03
	}
	if stage == k.config.Stages-1 {
		w += 0.1
	}
	return w
}

// iteration returns how long one takes at the highest clocks.
func (k *cluster) iteration() (time.Duration, error) {
	graph, err := k.order.Graph()
	if err != nil {
		return 0, err
	}
	times := make([]unit.Time, 0, graph.Ops)
	for rank, a := range k.order.All() {
		o, err := k.op(0, rank, a)
		if err != nil {
			return 0, err
		}
		times = append(times, unit.Time(o.Fastest()))
	}
	starts := make([]unit.Time, graph.Ops)
	return time.Duration(graph.Starts(starts, func(op int32) unit.Time { return times[op] })), nil
}

// settings returns what the owner of each GPU can change on it.
func (k *cluster) settings() (all []emulated.Settings) {
	for _, boards := range k.boards {
		for _, b := range boards {
			all = append(all, b.Settings())
		}
	}
	return all
}

// devices returns handles of a pipeline's GPUs.
func (k *cluster) devices(pipeline int) (all []gpu.Device) {
	for _, b := range k.boards[pipeline] {
		all = append(all, b.Open())
	}
	return all
}

// straggler is the place of the GPU that gets hot, and the clock that is left to it.
func (k *cluster) straggler() (pipeline, rank, mhz int) {
	b := k.boards[0][0].Clocks()
	return len(k.boards) - 1, len(k.order.Ranks) / 2, nearest(b, b[0]*70/100)
}

func nearest(clocks []int, mhz int) int {
	best := clocks[0]
	for _, f := range clocks {
		if abs(f-mhz) < abs(best-mhz) {
			best = f
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// heat lowers the clock of the straggler, or lets it go.
func (k *cluster) heat(on bool) {
	p, r, mhz := k.straggler()
	if !on {
		mhz = 0
	}
	k.boards[p][r].SetCeiling(mhz)
}
