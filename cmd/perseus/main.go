// Command perseus computes the iteration time–energy frontier of a training
// pipeline and the clock of every op of every rank for any point on it.
//
// Run perseus --help, or perseus COMMAND --help, for what it can do. The exit
// status is 0 where the work was done, 1 where it or a check failed, 2 where the
// input or the flags are wrong, and 130 after an interrupt.
//
// Each command has a file of its own that says which flags it has and which
// packages do the work; the work itself is in those packages.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// The picture in docs is of the example.
//go:generate go test . -run TestPicture -update

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
