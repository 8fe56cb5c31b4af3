// Package watch holds the statistics with which a control plane watches a training job: who is slow ([Detector]),
// whether iterations take longer than planned ([Guardrail]), and what a plan saves, with proof ([Measurement]).
//
// All of it is arithmetic on reports in the order they are given: no clock, no files, no goroutines. The same reports
// give the same answers. The types keep their whole state in exported fields, so that JSON carries it over a restart
// with nothing lost. None of them may be used by several goroutines at once.
package watch
