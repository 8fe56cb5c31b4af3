// Package report says in words, tables and pictures what a frontier is worth:
// its landmarks, the savings at each of them, and how sure they are where the
// profile was measured more than once.
//
// It reads frontier files, comes after package plan and before the commands, and
// decides nothing. Numbers here are for people: they are rounded, and floats.
package report
