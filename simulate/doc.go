// Package simulate replays an energy schedule, or fixed clocks, on a pipeline: it
// says when each op runs, how long each rank works and waits, and where the
// energy goes, before anyone touches a clock.
//
// It comes after packages plan and characterize, whose schedules and problems it
// takes; reports and baselines come after it. It changes no schedule, controls no
// device, and knows no wall clock: time is simulated.
//
// # The model
//
// An op starts when the op before it on its rank and all that it depends on have
// ended; what comes from another rank arrives the latency of a transfer later. A
// pipeline's iteration lasts from its first start to its last end; the job's
// iteration lasts until its slowest pipeline is done, and as long again as the
// optimizer takes. A rank that neither computes nor has fixed work waits, and its
// GPUs draw the blocking power: one number, or one by the clock in force, which
// is the one that the rank's last op left (before the first op, the one that the
// iteration before left).
//
// Whatever makes an op longer than measured, noise or a slowdown, makes it draw
// the same power for longer. A slowed rank works at a rate below one, and an op
// is done when its rate adds up to its measured time, so that a slowdown that
// changes halfway counts halfway.
//
// A clock switch is asked for as the op starts; until it is done the op proceeds
// at the old clock, with the time and energy that the op has at that clock, in
// proportion. A request that comes before the last one was done replaces it.
//
// # Energy by cause
//
// All energy is compute (while an op runs), fixed (loading data, optimizer) or
// blocking (waiting). Bloat is the part of it that buys nothing, by the causes of
// Perseus (Chung et al., SOSP 2024, section 2.2). With T the time of a pipeline
// by itself, T' ≥ T that of the job's iteration, and E(t) the least that its ops
// can add to waiting with a makespan of at most t (the relaxed frontier of Σe',
// below which no schedule stays):
//
//	intrinsic bloat = Σe' − E(T)    saved without making the pipeline slower
//	extrinsic bloat = E(T) − E(T')  saved by being as slow as the slowest pipeline
//
// so that total = needed + intrinsic + extrinsic. They are upper bounds: real
// clocks come in steps, and reach E(t) but for the gap of their plan.
//
// Times are whole nanoseconds and energies exact, so a replay without options
// gives the plan's own energy to the digit.
package simulate
