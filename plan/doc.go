// Package plan finds the energy schedule for a wish: one setting for every op of
// every rank, for an iteration that is as fast as possible, takes a given time,
// waits for a straggler, keeps to a power budget, or uses the least energy.
//
// A plan starts from a frontier file. At effort fast it is the file's own point;
// at the other efforts the relaxed problem is solved again at the very time that
// the wish comes down to and rounded with more care, and the file's point is
// kept where it is better. What is asked outside the frontier is answered by the
// nearest plan there is, marked as not feasible and with a note that says why.
//
// Package characterize, which makes frontier files, comes before it; simulation,
// reports and the edges come after. It is not for choosing what to wish: it does
// not watch a job, and knows no clocks, devices or networks. docs/plan.md
// describes the files it writes.
package plan
