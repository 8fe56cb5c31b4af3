// Package baseline plans pipelines the way others do, to compare with: all
// maximum clocks, Zeus with one clock or one for each stage, EnvPipe's envelope,
// and Perseus as published. Each is an implementation of its own, written from
// the papers and from how the published programs behave.
//
// It also says what Perseus here plans at each baseline's own time, regenerates
// the tables of the paper beside the published figures, and emulates large jobs.
//
// The methods work on all that was measured, at every clock, where the
// measurements are at hand; with a frontier file alone, on the clocks that it
// keeps, which are better than the ones it left out: a baseline then comes out
// no worse than it is.
//
// It comes after packages plan and simulate, and is not for planning real jobs:
// no schedule from here goes into a plan. Published figures, curves fitted by
// least squares, and shares are floats; schedules and their costs are exact.
package baseline
