// Package frontierfile reads and writes perseus-frontier/1, the file that holds
// a job's iteration time–energy frontier: what it was computed from, and for
// each point its cost, its bound, the flow that proves the bound and the knobs
// of every op. docs/format.md describes each field.
//
// A [File] is made by a [Builder] or by [Read]. Its points' costs are at hand;
// flows and knobs stay encoded as differences from point to point until
// [File.Load] or [File.Walk] asks for them.
//
// It knows what a file may look like, not whether it is true: package verify
// checks that. Package characterize comes before it, plan and verify after it,
// and it imports only unit and dag.
package frontierfile
