// Package emulated is a GPU in software: clocks, power, counters, latency, permissions, foreign owners and scripted
// faults, by a simple, stated model. It needs no hardware and touches nothing outside; package gpu comes before it, and
// tests, the node agent's --emulated and perseus demo use it.
//
// # Clocks
//
// A GPU runs at the highest clock that the lock, the power limit, the thermal ceiling and a hardware slowdown (half the
// top clock) allow. A lock takes effect after Latency; a newer request replaces one that is not yet in effect. All else
// counts at once.
//
// # Power
//
// While an op runs the GPU draws the op's power at the clock it has; after an op it waits for the next one and draws the
// blocking power of that clock, until it is left. Otherwise it draws Idle + load·(Static + Dynamic·(clock/highest)³). The
// energy counter is the exact integral of that and shows it in steps; Board.Total gives it without.
//
// # Ops
//
// An op is known by its time and energy at each clock: measured ones, or those of the formula, cycles/clock and a memory
// part that no clock changes. When the clock changes on the way, what is left of the op goes on at the new clock, in
// proportion; its energy likewise. The memory clock can be read and locked, and changes neither time nor energy.
//
// # Time
//
// A board lives on a clock that it is given, such as a Clock, which runs at a multiple of real time. Whoever drives it
// with ops does so at logical instants: an op starts when the last one that it waits for ends, not when a process woke
// up to hear of it. Within Config.Late this can be told afterwards.
package emulated
