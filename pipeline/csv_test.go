package pipeline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// mergeBackwards joins each I that its W follows at once into a B, as PyTorch's
// pass before lowering does.
func mergeBackwards(ranks [][]Action) [][]Action {
	merged := make([][]Action, len(ranks))
	for r, actions := range ranks {
		for i := 0; i < len(actions); i++ {
			a := actions[i]
			if a.Kind == InputGrad && i+1 < len(actions) && actions[i+1] == (Action{Kind: WeightGrad, Stage: a.Stage, Microbatch: a.Microbatch}) {
				a.Kind = Backward
				i++
			}
			merged[r] = append(merged[r], a)
		}
	}
	return merged
}

// TestSendsAndReceivesEqualPyTorch compares with PyTorch's test artifact
// zb1p_2rank_2stagep_comms.csv (pytorch/pytorch at
// 68401d25cfb70c42460c066d9dc94b3ccf59ab16, in the old letters), of which the test
// holds the SHA-256 only: sha256sum of that file.
func TestSendsAndReceivesEqualPyTorch(t *testing.T) {
	const artifact = "7ea26cdd136986442e160539817de920d00d2980fa395fb762ac154fbade807e"
	o := build(t, "interleaved-zero-bubble", Size{Ranks: 2, Chunks: 2, Microbatches: 8})
	lowered := sendReceive(mergeBackwards(o.Ranks), []int32{0, 1, 0, 1}, 8)
	var text strings.Builder
	if err := writeCSV(&text, lowered, "\n", ""); err != nil {
		t.Fatal(err)
	}
	old := text.String()
	for s := range 4 {
		for m := range 8 {
			old = strings.ReplaceAll(old, fmt.Sprintf("%dB%d", s, m), fmt.Sprintf("%dBW%d", s, m))
			old = strings.ReplaceAll(old, fmt.Sprintf("%dI%d", s, m), fmt.Sprintf("%dB%d", s, m))
		}
	}
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(old))); got != artifact {
		t.Errorf("got %s:\n%s", got, old)
	}
}

func build(t testing.TB, schedule string, size Size) *Order {
	t.Helper()
	o, err := Build(schedule, size)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var _ = errors.As
var _ = os.Open
