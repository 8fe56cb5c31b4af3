// Package training is a training job in software: data-parallel pipelines that run an order of actions on emulated GPUs,
// wait for each other at the end of each iteration, and say what they do as a training framework does. What they take in
// time and energy is known exactly, so that what is measured and planned can be checked against it.
//
// An op starts when the op before it on its rank and all that it depends on have ended, to the nanosecond of the clock
// that the GPUs live on. That clock is held at each such instant until the loop and its clients are done with it: how
// busy the machine is does not change what is computed. Between ops GPUs draw their blocking power, in the synchronisation
// at the end too. A client that changes clocks does so at the clock's own time.
//
// It comes after packages pipeline and emulated, and before perseus demo. It knows neither agents nor servers: a client
// is whatever takes the events.
package training
