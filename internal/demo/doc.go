// Package demo shows everything end to end on emulated GPUs: a server with a database in a temporary folder, a node agent
// for each pipeline, and a training job in scaled time that is profiled, planned, slowed by a hot GPU, planned anew, and
// left as it was found. What the control plane says it saved is checked against what the GPUs really used, which it
// cannot see, and against the simulator.
//
// It comes after all other packages and before the command. The server and the agents are the ones of package server and
// package agent.
package demo
