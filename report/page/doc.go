// Package page writes what a frontier is worth as one HTML page that needs no
// network, its pictures as SVG and PNG, and timelines as Chrome traces.
//
// It comes after packages report, simulate and baseline, whose numbers it shows,
// and before the command; it opens no file and knows no clock. It is a package of
// its own because package report does without a simulator. Numbers here are for
// people: they are rounded, and floats. Pages, SVG and traces are the same bytes on any
// machine; the edges of letters in PNG may differ between kinds of processors.
package page
