// Package importrules holds no code, only the test that keeps the direction of imports in this module.
//
// Data flows one way: measurements and a pipeline make a problem, the solver makes a frontier of it, a plan is
// looked up there, and the edges (commands, files) carry it. The table in importrules_test.go is
// that picture in a form that fails. It comes after all other packages, and none of them knows it.
package importrules
