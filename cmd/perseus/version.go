package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/plan"
)

// version is set by the linker in a release.
var version = ""

type versionCommand struct{}

// Run prints the version, and the formats that this version reads and writes.
func (versionCommand) Run(w *world) error {
	v := versionName()
	_, err := fmt.Fprintf(w.stdout, "perseus %s %s/%s %s\nformats %s %s\n",
		v, runtime.GOOS, runtime.GOARCH, runtime.Version(), frontierfile.Format, plan.Format)
	return err
}

// versionName returns the version of this program.
func versionName() string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		return built(info)
	}
	return version
}

// built returns the version that the go command left in the program.
func built(info *debug.BuildInfo) string {
	v, changed := info.Main.Version, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && (v == "" || v == "(devel)"):
			v = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if v == "" {
		v = "unknown"
	}
	return v + changed
}
