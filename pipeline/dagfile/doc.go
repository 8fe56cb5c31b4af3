// Package dagfile reads a job that is no pipeline, or one that package pipeline
// cannot describe: a graph of ops with their options, as JSON. What comes out is
// the same dag.Problem that a pipeline and a profile make together.
//
// A file in the format perseus-dag/1:
//
//	{
//	  "format": "perseus-dag/1",
//	  "resources": [{"name": "gpu0", "blocking_power_w": 83.64}],
//	  "curves": [{"name": "forward", "options": [
//	    {"clock_mhz": 1410, "time_s": 0.0312, "energy_j": 9.1},
//	    {"clock_mhz": 1200, "time_s": 0.0355, "energy_j": 8.2}]}],
//	  "ops": [
//	    {"name": "f0", "resource": "gpu0", "curve": "forward"},
//	    {"name": "send", "time_s": 0.0004},
//	    {"name": "f1", "resource": "gpu0", "options": [{"time_s": 0.031, "energy_j": 9}]}],
//	  "edges": [["f0", "send"], ["send", "f1"]]
//	}
//
// Ops are numbered from 0 in the order of the file. An op has either the name of
// a curve, or options of its own, or a fixed time with an energy of 0 unless
// energy_j is given. The ops of a resource run one after another in the order of
// the file: the file need not have edges for that. An op without resource occupies
// nothing; its effective energy is its energy. Units are those that names end in.
// Times are rounded up to a nanosecond, energies to the nearest picojoule, powers
// to the nearest microwatt. [Schema] returns the format as a JSON Schema.
package dagfile
