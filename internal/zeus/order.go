package zeus

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/pipeline"
)

// maxOps bounds the ops of one job's iteration: each GET at maximum clock needs its order.
const maxOps = 1 << 20

// steps are one rank's ops of an iteration in execution order, in slices parallel to each other.
type steps struct {
	names       []string // that instruction points to
	instruction []uint8
	stage       []uint16
	mhz         []uint16
}

func (s *steps) add(name string, stage, mhz int) {
	i := slices.Index(s.names, name)
	if i < 0 {
		i = len(s.names)
		s.names = append(s.names, name)
	}
	s.instruction = append(s.instruction, uint8(i))
	s.stage = append(s.stage, uint16(stage))
	s.mhz = append(s.mhz, uint16(mhz))
}

func (s *steps) name(i int) string { return s.names[s.instruction[i]] }

// orders builds the orders of jobs, and keeps the last few: the ranks of one job ask one after another.
type orders struct {
	mu   sync.Mutex
	kept []keptOrder // newest first
}

type keptOrder struct {
	schedule string
	size     pipeline.Size
	order    *pipeline.Order
}

const keptOrders = 4

// of returns what each pipeline rank of a job runs. It fails where the job's schedule has no such size.
func (o *orders) of(spec *api.JobSpec) (*pipeline.Order, error) {
	if spec.ScheduleCSV != "" {
		return pipeline.ReadCSV(strings.NewReader(spec.ScheduleCSV), "schedule_csv")
	}
	size := pipeline.Size{Ranks: spec.PP, Chunks: spec.Chunks, Microbatches: spec.Microbatches}
	if n := 2 * int64(size.Ranks) * int64(max(size.Chunks, 1)) * int64(size.Microbatches); n > maxOps {
		return nil, fmt.Errorf("pp_degree %d, %d microbatches: an iteration of %d ops; at most %d are taken", size.Ranks, size.Microbatches, n, maxOps)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, k := range o.kept {
		if k.schedule == spec.Schedule && k.size == size {
			copy(o.kept[1:i+1], o.kept[:i])
			o.kept[0] = k
			return k.order, nil
		}
	}
	order, err := pipeline.Build(spec.Schedule, size)
	if err != nil {
		return nil, err
	}
	o.kept = slices.Insert(o.kept, 0, keptOrder{spec.Schedule, size, order})
	o.kept = o.kept[:min(len(o.kept), keptOrders)]
	return order, nil
}

// checkDefaults returns an error where no job could have them.
func checkDefaults(schedule string, microbatches int) error {
	if _, err := pipeline.Find(schedule); err != nil {
		return fmt.Errorf("the schedule of Zeus jobs: %w", err)
	}
	if microbatches < 1 || microbatches > 65536 {
		return fmt.Errorf("the microbatches of Zeus jobs: %d: must be from 1 to 65536", microbatches)
	}
	return nil
}
