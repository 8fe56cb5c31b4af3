package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/agent/record"
	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

func open(t *testing.T, path string) *record.Folder {
	t.Helper()
	f, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := open(t, path)
	r := record.Record{
		Format: record.Format, GPU: "nvidia:GPU-1/../x", Name: "A100", At: time.Unix(1, 0).UTC(), Lock: record.Declared,
		Range: &gpu.Range{Min: 900, Max: 1200}, Power: gpu.PowerLimit{Default: 400 * unit.Watt}, Job: "j", Rank: 3,
	}
	for range 2 {
		if err := f.Save(r); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := f.All(); err != nil || !reflect.DeepEqual(all, []record.Record{r}) {
		t.Errorf("got %+v, %v", all, err)
	}
	if info, err := os.Stat(filepath.Join(path, "nvidia:GPU-1%2F..%2Fx.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	for range 2 {
		if err := f.Remove(r.GPU); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := f.All(); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestOneAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := open(t, path)
	if _, err := record.Open(path); !errors.Is(err, record.ErrInUse) {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestSymlinks(t *testing.T) {
	dir := t.TempDir()
	path, victim := filepath.Join(dir, "state"), filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	if err := os.Symlink(path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(filepath.Join(dir, "link")); err == nil || errors.Is(err, record.ErrInUse) {
		t.Errorf("a link to a folder: got %v", err)
	}
	for _, name := range []string{"GPU-1.json", ".GPU-2.json.new"} {
		if err := os.Symlink(victim, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Save(record.Record{GPU: "GPU-1"}); err == nil {
		t.Error("wrote in the place of a link")
	}
	if err := f.Save(record.Record{GPU: "GPU-2"}); err != nil {
		t.Error(err)
	}
	all, err := f.All()
	if err == nil || len(all) != 2 || all[0].GPU != "GPU-1" && all[1].GPU != "GPU-1" {
		t.Errorf("got %+v, %v", all, err)
	}
	if text, _ := os.ReadFile(victim); string(text) != "untouched" {
		t.Errorf("the file behind the link holds %q", text)
	}
}

func TestOpenToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(path); err == nil {
		t.Error("took a folder that others may write to")
	}
}

// TestDamaged: a record that cannot be read still says that its GPU was changed.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	f := open(t, path)
	if err := os.WriteFile(filepath.Join(path, "GPU-1.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := f.All(); err == nil || len(all) != 1 || all[0].GPU != "GPU-1" {
		t.Errorf("got %+v, %v", all, err)
	}
}
