// Package record keeps, in files that survive a crash of the process and of the machine, what GPUs were like before the
// agent changed them. A record is on disk before the first change and is removed after the change was taken back: where
// there is one, there is something to restore.
//
// The folder belongs to one agent at a time, and symbolic links in its place or in it are refused.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
)

// Format is what Record.Format holds.
const Format = "perseus-agent-record/1"

// Prior is what is known of a clock lock that was there before.
type Prior string

// What can be known: drivers do not tell.
const (
	None      Prior = "none"      // no sign of one
	Suspected Prior = "suspected" // the clock was below the highest for no stated reason
	Declared  Prior = "declared"  // the operator said so
)

// Record is what was found of a GPU.
type Record struct {
	Format string `json:"format"`
	GPU    string `json:"gpu"`
	Name   string `json:"name"`
	PCI    string `json:"pci"`
	Driver string `json:"driver"`
	// Boot names the boot of the machine, where that is known.
	Boot string    `json:"boot_id,omitempty"`
	At   time.Time `json:"at"`
	// Lock, with the range that a declared one has and the clock at which one is suspected.
	Lock      Prior          `json:"prior_lock"`
	Range     *gpu.Range     `json:"prior_range_mhz,omitempty"`
	ClockMHz  int            `json:"clock_mhz,omitempty"`
	MemoryMHz int            `json:"memory_clock_mhz,omitempty"`
	Power     gpu.PowerLimit `json:"power_limit_uw"`
	// Job and Rank are those that it was changed for.
	Job  string `json:"job"`
	Rank int    `json:"rank"`
}

// maxSize is far above that of any record, in bytes.
const maxSize = 1 << 16

const extension = ".json"

// Folder is the place of the records.
type Folder struct {
	path string
	root *os.Root
	lock *os.File
}

// ErrInUse is returned where another process has the folder.
var ErrInUse = errors.New("another agent uses this folder")

// Open takes the folder at path, which it makes if only the last element is missing, until Close or the end of the
// process.
func Open(path string) (*Folder, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the state folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("state folder %s: is no folder (symbolic links are refused)", path)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("state folder %s: others may write to it (mode %v); chmod go-w it", path, info.Mode().Perm())
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the state folder: %w", err)
	}
	f := &Folder{path: path, root: root}
	f.lock, err = root.OpenFile("lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the state folder's lock: %w", err), root.Close())
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("state folder %s: %w", path, err), f.Close())
	}
	return f, nil
}

// Close gives the folder back. Records stay.
func (f *Folder) Close() error { return errors.Join(f.lock.Close(), f.root.Close()) }

func nameOf(id string) string { return url.PathEscape(id) + extension }

// Save writes r, in the place of an earlier one of the same GPU. When it returns nil, r is on disk; else the earlier one
// is, or none.
func (f *Folder) Save(r Record) error {
	r.Format = Format
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record of %s: %w", r.GPU, err)
	}
	return f.Write(nameOf(r.GPU), append(text, '\n'))
}

// Write replaces the file with a name in the folder: whole, on disk, and never through a symbolic link.
func (f *Folder) Write(name string, text []byte) error {
	if err := f.write(name, text); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(f.path, name), err)
	}
	return nil
}

func (f *Folder) write(name string, text []byte) (err error) {
	if info, err := f.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return errors.New("is no regular file")
	}
	temporary := "." + name + ".new"
	// Only one process has the folder, so this is of one that was killed.
	if err := f.root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.root.Remove(temporary)
		}
	}()
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := f.root.Rename(temporary, name); err != nil {
		return err
	}
	return f.sync()
}

// sync brings the folder's names to disk.
func (f *Folder) sync() error {
	d, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove removes the record of a GPU; without one it does nothing.
func (f *Folder) Remove(id string) error {
	err := f.root.Remove(nameOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.sync()
	}
	if err != nil {
		return fmt.Errorf("remove the record of %s: %w", id, err)
	}
	return nil
}

// Read returns the content of the file with a name; it fails on one that is no regular file or larger than 64 KiB.
func (f *Folder) Read(name string) ([]byte, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: is no regular file", name), err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxSize)
	}
	return text, err
}

// All returns the records, by name of file. One that cannot be read is in err, and a Record with nothing but the GPU's
// id stands for it: that GPU was changed.
func (f *Folder) All() (all []Record, err error) {
	d, err := f.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	entries, err := d.ReadDir(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), extension)
		id, bad := url.PathUnescape(base)
		if !ok || bad != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var r Record
		text, failed := f.Read(e.Name())
		if failed == nil {
			failed = json.Unmarshal(text, &r)
		}
		if failed == nil && (r.Format != Format || r.GPU != id) {
			failed = fmt.Errorf("format %q of GPU %q: expected %q of %q", r.Format, r.GPU, Format, id)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("record %s: %w", filepath.Join(f.path, e.Name()), failed))
			r = Record{GPU: id}
		}
		all = append(all, r)
	}
	return all, err
}
