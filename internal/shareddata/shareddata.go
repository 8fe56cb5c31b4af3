// Package shareddata finds the measured profiles, runs and reference schedules
// that lie beside a checkout, for tests only.
package shareddata

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared returns the path of a file under the folder of reference data, which
// lies beside the repository's root. Where the folder is missing the test is
// skipped, or fails if CI=true.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(append([]string{filepath.Dir(dir), "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("reference data is missing: %v", err)
		}
		t.Skipf("reference data is missing: put it at %s", path)
	}
	return path
}
