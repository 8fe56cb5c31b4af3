// Package characterize computes a job's frontier: from the options of its ops,
// the order in which its ranks run them, and the power that its GPUs draw while
// they wait, to a frontier file whose every point has a schedule and a bound.
//
// It puts packages profile, pipeline, frontier, round and frontierfile together
// and adds nothing of its own to what they compute: [Run] walks the exact
// frontier in one goroutine, rounds its points in others and encodes them in
// order, so that the result does not depend on how many there are. [Problem]
// makes the problem anew from a file's header alone, for those who solve it at
// another time. It is not for looking points up, which package plan does, or for
// checking them, which package verify does.
package characterize
