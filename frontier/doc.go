// Package frontier solves a dag.Problem: it walks the exact time–energy frontier
// of the relaxed problem from t_max to t_min.
package frontier
