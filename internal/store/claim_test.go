package store

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestClaim(t *testing.T) {
	database := filepath.Join(t.TempDir(), "perseus.db")
	release, err := Claim(database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(database); err == nil || !strings.Contains(err.Error(), "served by another process") {
		t.Errorf("claimed twice: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = Claim(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if _, err := Claim(filepath.Join(database, "none", "perseus.db")); err == nil {
		t.Error("claimed in a folder that is not there")
	}
}
