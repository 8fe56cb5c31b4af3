// Package verify checks a frontier file against the raw profile and the rules
// alone. It reads the profile, derives the order, the dependencies and the
// options anew, by code of its own that is short enough to be believed by
// reading, and shares with what made the file only packages unit, dag and
// frontierfile. It never calls the solver, the rounding, the profile reader or
// the schedules.
//
// # What is proved
//
// The file is what the profile and the schedule make it, to the last digit. Each
// point's schedule takes the time and the energy that the file says. Each
// point's flow is conserved, so that it is a certificate (linear programming
// duality, as in Phillips and Dessouky, "Solving the project time/cost tradeoff
// problem using the minimal cut concept", 1977): for any schedule with makespan
// at most T,
//
//	Σe' ≥ Σ_op min over its options (e' + flow(op)·t) − price·T
//
// and from that follow bound and gap. At each point's relaxed time a schedule
// with relaxed op times is found for which the certificates of this point and of
// the next faster one are both tight: so each certificate is the frontier of the
// relaxed problem on the whole segment between its two points, and as every
// segment has one, the whole curve is exact, but for prices being whole
// microwatts; the report says how little that is. Where the file has only some
// breakpoints, the same is shown of each alone, and how far the lines between
// them may be off.
//
// It is not for telling whether a profile is a good one.
package verify
