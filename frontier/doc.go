// Package frontier walks the exact time–energy frontier of a dag.Problem, from
// t_max down to t_min, with a flow that proves each piece of it.
//
// # The problem
//
// Each op's options are relaxed to the lower convex hull of (t, e'). Minimising
// Σe' subject to makespan ≤ T is then a linear programme, the time–cost tradeoff
// of project networks. Its dual is a flow from the iteration's start to its end:
// dependencies carry any flow, and an op is a bundle of parallel arcs, one a hull
// vertex, slowest first. Each is as long as the op takes at that vertex and
// carries the difference of the hull's slopes beside it, the fastest any amount.
// The value of the flow is the price of time, −dΣe'/dT.
//
// # The paper's way, and this one
//
// Perseus (Chung et al., SOSP 2024, section 4.3) follows Phillips and Dessouky
// ("Solving the project time/cost tradeoff problem using the minimal cut
// concept", 1977): start where all ops are slowest, take the ops on critical
// paths, find the cut through them that is cheapest to speed up, shorten every op
// on it by a unit of time τ, and repeat. Each round solves a maximum flow from
// scratch, and the frontier comes out in steps of τ, on curves fitted to the
// measurements.
//
// The cheapest cut of one round is nearly the one of the round before. This
// package keeps the flow instead, as a basis of the network simplex: two trees,
// one of events whose time is fixed and one of events that all move together with
// the end of the iteration. The arcs between the trees are the minimal cut. Events
// move until an arc from the first tree to the second becomes tight, which is known
// from the arcs' slacks, so the step is as long as the cut stays the cheapest and
// there is no τ to choose: the shortest step of Phillips and Dessouky that matters
// and no other. One pivot then exchanges two arcs. Both ways visit the same minimal
// cuts of the same network, so with τ → 0 and measured curves the paper's frontier is
// this one; between two changes of the flow the frontier is linear, and the flow
// proves it there (see dag.Problem.Bound).
//
// # Numbers
//
// Times are whole nanoseconds and slopes whole microwatts; lengths and capacities
// are integers, so all events and flows are too, and nothing is compared with a
// tolerance. The rounding of slopes parts the bound from the relaxed optimum by at
// most half a microwatt times each op's span of times.
//
// # Cost
//
// Memory is O(ops + arcs). A pivot takes the length of two tree paths plus about
// the square root of the number of ops; see the comment of the partition type for how. The
// number of pivots grows with breakpoints times microbatches on uniform
// pipelines.
//
// Package dag comes before, round and verify after. It knows no files, clocks or
// schedules, and stops when its caller stops iterating.
package frontier
