package emulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// kept is what a driver keeps while no process uses the GPU, as a file holds it.
type kept struct {
	ClocksMHz gpu.Range  `json:"clocks_mhz"`
	MemoryMHz gpu.Range  `json:"memory_mhz"`
	Requested unit.Power `json:"power_limit_requested_w"`
	Enforced  unit.Power `json:"power_limit_enforced_w"`
}

func (b *Board) keeps(s *state) kept {
	return kept{s.requested(), s.memory, s.limit.Requested, s.limit.Enforced}
}

// load takes over what an earlier process left, if there is a file.
func (b *Board) load(s *state) error {
	text, err := os.ReadFile(b.c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("emulated GPU: what was kept: %w", err)
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return fmt.Errorf("emulated GPU: %s: %w; remove it to start anew", b.c.File, err)
	}
	s.inForce, s.memory, s.limit.Requested, s.limit.Enforced = k.ClocksMHz, k.MemoryMHz, k.Requested, k.Enforced
	return nil
}

// save keeps the state for the next process, if it differs from what is kept. A file that cannot be written is as a
// driver that forgets: the board goes on. b.mu is held.
func (b *Board) save() {
	k := b.keeps(&b.known)
	if b.c.File == "" || k == b.kept {
		return
	}
	b.kept = k
	text, err := json.Marshal(k)
	if err != nil {
		panic(err) // it always works
	}
	next := filepath.Join(filepath.Dir(b.c.File), "."+filepath.Base(b.c.File)+".new")
	if os.WriteFile(next, text, 0o600) == nil {
		_ = os.Rename(next, b.c.File)
	}
}
