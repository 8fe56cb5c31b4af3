// Package dag is the common ground of the tree: ops with their options, the
// dependencies between them, and the longest path. A [Problem] is what package
// frontier solves, package round rounds and package verify checks.
//
// It knows nothing of profiles, pipelines, clocks or files: profile and pipeline
// come before it and make its parts, and it imports only unit.
package dag
