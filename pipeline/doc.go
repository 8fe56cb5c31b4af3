// Package pipeline turns the name of a pipeline schedule, or a user's own order
// of actions, into the graph of ops that package frontier solves.
//
// A schedule says only what each rank runs in which order: an [Order]. [Build]
// makes the orders that training frameworks use, one file a schedule; [ReadCSV]
// reads an order from PyTorch's schedule CSV. Whatever its origin, [Order.Check]
// checks it and [Order.Graph] derives the dependencies, the same code for all:
//
// # Ops
//
// Ops are numbered from 0, rank by rank, each rank's in execution order: op =
// (number of actions of the ranks before) + (position on its rank). An
// overlapped slot is one op.
//
// # Dependencies
//
// Write B' for the one of B and I that the order has for a stage and microbatch.
// The graph has exactly these arcs, each once however many rules give it, and no
// other; arcs that merely follow from others stay:
//
//   - from each action to the next one on its rank;
//   - F(s,m) → F(s+1,m), for each stage s but the last;
//   - B'(s,m) → B'(s−1,m), for each stage s but the first;
//   - F(s,m) → B'(s,m);
//   - I(s,m) → W(s,m);
//   - F(s,m) → R(s,m) → B'(s,m), where the order has a recomputation R(s,m).
//
// An overlapped slot has the arcs of both of its parts: it starts when both are
// ready and both are done when it ends. A fixed-time action (data loading,
// gradient reduction, optimizer) has the arcs of its rank's order only.
// [Order.GraphWithTransfers] puts an op on each arc that crosses ranks.
//
// # What an order must hold
//
// For all stages s and microbatches m one F(s,m), and either one B(s,m) or one
// I(s,m) and one W(s,m), at most one R(s,m) and only with a backward; or, in a
// forward-only order, the F(s,m) alone. F, R, B, I and W of the same stage and
// microbatch are on the same rank. Following the arcs, all actions are reached:
// no action waits for itself.
//
// The package knows nothing of profiles, times or clocks; it imports dag, which
// comes after it, and is not for running a pipeline.
package pipeline
