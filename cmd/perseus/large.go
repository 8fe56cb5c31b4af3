package main

import (
	"fmt"

	"github.com/perseus-energy/perseus/characterize"
)

// How many ops a job has before it takes more than a few seconds, and before all
// points of its frontier take too long and too much space to be what was meant.
// docs/performance.md has the times.
const (
	largeOps = 1 << 15
	mostOps  = 1 << 20
)

// opsOf returns how many ops a job has.
func opsOf(job *characterize.Job) int {
	if job.Graph != nil {
		return job.Graph.Problem.Graph.Ops
	}
	return job.Order.Ops()
}

// large returns an error where a job has too many ops for all points of its frontier,
// with the way out, and says so where it will take its time. few says that not all
// points were asked for.
func (w *world) large(ops int, few, quiet bool, wayOut string) error {
	if ops > mostOps && !few {
		return fmt.Errorf("the job has %d ops; all points of a frontier are computed for up to %d: %s", ops, mostOps, wayOut)
	}
	if ops > largeOps && !quiet {
		fmt.Fprintf(w.stderr, "perseus: the job has %d ops, which takes a while; Ctrl-C ends it and leaves no file\n", ops)
	}
	return nil
}
