package training

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/wire"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// Config says what trains on what.
type Config struct {
	Clock *emulated.Clock
	Order *pipeline.Order
	// Boards holds the GPU of each rank of each pipeline. They live on Clock.
	Boards [][]*emulated.Board
	// Op returns what an action is on the GPU of a rank of a pipeline.
	Op func(pipeline, rank int, a pipeline.Action) (*emulated.Op, error)
	// Optimizer is what an iteration takes when all pipelines are done; GPUs draw meanwhile what they draw waiting.
	Optimizer time.Duration
	// Evaluation, if not nil, says which iterations only run the forwards. They count as well.
	Evaluation func(iteration int) bool
	// Report, if not nil, is called after each iteration, with the clock held: what it changes holds for the next one. The
	// loop ends where it returns false.
	Report func(Iteration) (more bool)
}

// Iteration is what an iteration took, exactly.
type Iteration struct {
	// Number counts from 0.
	Number     int
	Evaluation bool
	Begin      time.Time
	// Time is until all pipelines and the optimizer were done, Pipelines until each was.
	Time      unit.Time
	Pipelines []unit.Time
	// Energy is what all GPUs used, waiting included, PipelineEnergy those of each pipeline.
	Energy         unit.Energy128
	PipelineEnergy []unit.Energy128
}

// Client hears what a rank does. Times are Unix times of the clock, in ns. Event must not wait for the clock.
type Client interface{ Event(wire.Event) }

// Loop trains. Run must not be called by two at once; the other methods are safe for concurrent use.
type Loop struct {
	c            Config
	instructions []string
	graph        *dag.Graph
	ranks        []*rank // pipeline by pipeline
	each         int     // ranks of a pipeline
	hold         *emulated.Hold
	woken        chan struct{}
	iterations   int

	mu      sync.Mutex
	telling bool // the clock stays where it is
}

// rank is one GPU in the loop. client, ends and running are guarded by Loop.mu.
type rank struct {
	board       *emulated.Board
	ops         []op // in execution order
	first       int32
	client, new Client
	attached    bool // new takes the place of client at the next iteration
	sequence    uint64

	running bool
	ends    time.Time
	next    int // op that runs, or is to run
	before  unit.Energy128
}

// op is an action of a rank.
type op struct {
	*emulated.Op
	event   wire.Event
	forward bool
}

// New returns a loop, or an error where the boards do not fit the order, the order cannot run, or an op is missing.
func New(c Config) (*Loop, error) {
	graph, err := c.Order.Graph()
	if err != nil {
		return nil, fmt.Errorf("what the pipelines run: %w", err)
	}
	l := &Loop{c: c, graph: graph, instructions: c.Order.Instructions(), each: len(c.Order.Ranks), woken: make(chan struct{}, 1)}
	if len(c.Boards) == 0 {
		return nil, errors.New("training needs a pipeline at least")
	}
	for p, boards := range c.Boards {
		if len(boards) != l.each {
			return nil, fmt.Errorf("pipeline %d has %d GPUs for %d ranks", p, len(boards), l.each)
		}
		first := int32(0)
		for i, b := range boards {
			r := &rank{board: b, first: first}
			for _, a := range c.Order.Ranks[i] {
				o, err := c.Op(p, i, a)
				if err != nil {
					return nil, fmt.Errorf("pipeline %d, rank %d, %v: %w", p, i, a, err)
				}
				instruction := slices.Index(l.instructions, a.Kind.Instruction())
				r.ops = append(r.ops, op{Op: o, forward: a.Kind == pipeline.Forward, event: wire.Event{
					Instruction: uint8(max(0, instruction)), Chunk: uint16(int(a.Stage) / l.each), Microbatch: uint32(a.Microbatch),
				}})
			}
			first += int32(len(r.ops))
			l.ranks = append(l.ranks, r)
		}
	}
	return l, nil
}

// Instructions returns what the events' instructions are indexes of.
func (l *Loop) Instructions() []string { return l.instructions }

// Attach has a client hear of a rank of a pipeline from the next iteration on, in place of the one before; nil is none.
func (l *Loop) Attach(pipeline, i int, c Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.ranks[pipeline*l.each+i]
	r.new, r.attached = c, true
}

// Run trains until ctx ends, with its error, or until Report says so, with nil, and leaves all GPUs idle. Called again
// it goes on with the next iteration.
func (l *Loop) Run(ctx context.Context) error {
	l.hold = l.c.Clock.NewHold()
	defer l.hold.Release()
	now := l.c.Clock.Now()
	l.hold.Set(now)
	l.telling = true
	for i, r := range l.ranks {
		r.board.Watch(func() { l.changed(i) })
		r.board.Join()
		r.before = r.board.Total(now)
	}
	defer func() {
		for _, r := range l.ranks {
			r.board.Watch(nil)
			r.board.Leave()
			r.running = false
		}
	}()
	for {
		done, err := l.iteration(ctx, l.c.Clock.Now())
		if err != nil {
			return err
		}
		if l.c.Report != nil && !l.c.Report(done) {
			return nil
		}
	}
}

// changed takes note that an op may end at another time than thought.
func (l *Loop) changed(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.ranks[i]
	if !r.running {
		return
	}
	r.ends, _ = r.board.End()
	if !l.telling {
		l.hold.Set(l.soonest())
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}

// soonest returns when the next op ends. l.mu is held, and an op runs.
func (l *Loop) soonest() (at time.Time) {
	for _, r := range l.ranks {
		if r.running && (at.IsZero() || r.ends.Before(at)) {
			at = r.ends
		}
	}
	return at
}

// advance waits until the next op ends, and returns when that is.
func (l *Loop) advance(ctx context.Context) (time.Time, error) {
	for {
		l.mu.Lock()
		at := l.soonest()
		l.telling = false
		l.hold.Set(at)
		l.mu.Unlock()
		there := l.c.Clock.Until(ctx, at, l.woken)
		if err := ctx.Err(); err != nil {
			return at, err
		}
		l.mu.Lock()
		if there && at.Equal(l.soonest()) {
			l.telling = true
			l.mu.Unlock()
			return at, nil
		}
		l.mu.Unlock()
	}
}

// wait passes time in which no op runs.
func (l *Loop) wait(ctx context.Context, until time.Time) error {
	l.hold.Set(until)
	for !l.c.Clock.Until(ctx, until, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
