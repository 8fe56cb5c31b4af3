package plan

import (
	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/unit"
)

// job is what a frontier is of, rebuilt from the file's header.
type job struct {
	order   *pipeline.Order
	problem *dag.Problem
	// blocking is what the GPUs of each curve of problem draw while they wait.
	blocking []unit.Power
}

func newJob(h *frontierfile.Header) (*job, error) {
	p, order, err := characterize.Problem(h)
	if err != nil {
		return nil, err
	}
	j := &job{order: order, problem: p}
	for i := range h.Curves {
		j.blocking = append(j.blocking, h.Curves[i].BlockingPower)
	}
	return j, nil
}
