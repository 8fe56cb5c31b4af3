// Package agent is the node agent: the only process with privilege on a node. It listens for the training processes of
// the node, leases each its GPU, sets the clocks that the server's schedules ask for, measures, and gives every GPU back
// as it was.
//
// # Use
//
//	a, err := agent.New(agent.Config{
//		Devices: devices,            // or Open: a function that opens and closes them
//		Uplink:  uplink,             // *client.Client, or anything that has its five methods; nil: no server
//		Socket:  "/run/perseus/agent.sock", // "": none
//		StateDir: "/var/lib/perseus-agent", // "": records are kept in memory only, for emulated GPUs
//	})
//	err = a.Run(ctx)                     // returns when ctx ends and all GPUs are given back
//
// A training loop in the same process needs no socket:
//
//	s, err := a.Attach(ctx, wire.Hello{…})  // after Run has begun; waits for it
//	s.Send(wire.Event{Kind: wire.StepBegin, Sequence: 1, TimeNs: …})
//	s.Close()                            // releases the GPU; returns when it is as before
//
// Times in events are those of Config.Clock: UnixNano of its Now, which by default is CLOCK_MONOTONIC. A clock that runs
// faster than the world gives a training in scaled time.
//
// # Parts
//
// Package follow decides when to ask for which clock, package meter finds time and energy of ops, package record keeps
// on disk what was found. A driver owns a GPU: one goroutine that makes all calls which change it. A link owns a job: it
// registers the node's ranks, polls schedules and sends reports. The order is events → driver (follow, meter) → link.
//
// # Rules
//
// A GPU is leased to one rank of one job of one user at a time, until the process says bye, closes, or is silent for
// three heartbeats. All ranks of a job on a node belong to one user. Without a server the last schedule stays in force;
// reports are kept, a bounded number, the oldest dropped first.
package agent
