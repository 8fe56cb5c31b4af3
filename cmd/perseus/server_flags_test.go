package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmptyToken has a token file without a token refused by all who read one: it is most often the wrong file.
func TestEmptyToken(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"jobs list", "agent --emulated 1 --server http://127.0.0.1:1"} {
		var out, errs bytes.Buffer
		args := append(strings.Fields(command), "--token-file", empty)
		if status := run(t.Context(), args, nil, &out, &errs); status != statusBadInput || !strings.Contains(errs.String(), "it is empty") {
			t.Errorf("%s: status %d, %s%s", command, status, out.String(), errs.String())
		}
	}
}

// TestDatabaseName has no password in the log, wherever a URL has it.
func TestDatabaseName(t *testing.T) {
	for name, want := range map[string]string{
		"perseus.db":                                "perseus.db",
		"postgres://me:secret@db/perseus":           "postgres://db/perseus",
		"postgres://me:se@cret@db:5432/perseus":     "postgres://db:5432/perseus",
		"postgresql://db/perseus?password=secret":   "postgresql://db/perseus",
		"postgres://me:%zz@db/perseus?sslmode=none": "postgres://…",
	} {
		if got := database(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
