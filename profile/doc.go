// Package profile reads measurements of ops at each GPU clock and gives the
// options that each op has. It repairs what has one meaning only, reports what
// it repaired, and refuses everything that would need a guess.
//
// It comes after dag and unit, which it imports, and knows nothing of
// pipelines: which instructions a pipeline needs, and how often, is settled by
// its callers. It neither smooths nor models measured values, and leaves the
// choice of useful options to [dag.NewCurve]. docs/profiles.md is the page for
// users.
//
// # How repeats become one option
//
// A point is a (stage, instruction, clock). A member is one GPU of the group
// that runs the stage together: a tp_rank in the nine-column form, or a triple of
// tp_rank, cp_rank and ep_rank where it has those columns; the only one in the
// five-column form. The samples of a member at a point are all rows with
// that point and that member, whatever their rank and dp_rank: replicas are
// repeats of each other. Then, in integers of ns and pJ,
//
//	row time      the decimal, rounded up to 1 ns
//	row energy    the decimal, rounded to the nearest 1 pJ, halves up
//	member time   median of its samples' times
//	member energy median of its samples' energies
//	point time    the slowest member's time
//	point energy  the sum of the members' energies
//
// where the median of x1 ≤ … ≤ xn is x((n+1)/2) for odd n, and
// ⌊(x(n/2) + x(n/2+1) + 1) / 2⌋ for even n: the mean of the two in the middle,
// rounded up. Times and energies are sorted each for itself. The result does not
// depend on the order of the rows, and is the same where a file is read twice
// over.
//
// The median is what Hoefler and Belli, "Scientific Benchmarking of Parallel
// Computing Systems" (SC 2015, section 3.1.3), advise for measured times, which
// are skewed and have outliers; up to half of the samples may be wrong before it
// is (Huber, "Robust Statistics", 1981, chapter 3).
package profile
