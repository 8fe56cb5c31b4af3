package pipeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
)

// golden is a reference order; each file's field "source" says where it is from.
type golden struct {
	Schedule     string
	Ranks        int
	Chunks       int
	Microbatches int
	Stages       int
	Placement    string
	Group        int  `json:"group_size"`
	ForwardOnly  bool `json:"forward_only"`
	Order        [][]string
}

func TestOrdersEqualTheReferences(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shareddata.Shared(t, "schedules"), "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("only %d reference orders: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want golden
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			o, err := Build(want.Schedule, Size{want.Ranks, want.Chunks, want.Microbatches, want.Group})
			if err != nil {
				t.Fatal(err)
			}
			if o.Schedule != want.Schedule || o.Stages != want.Stages || o.Placement.String() != want.Placement || o.ForwardOnly() != want.ForwardOnly {
				t.Errorf("got %s, %d stages, %v, forward only %v", o.Schedule, o.Stages, o.Placement, o.ForwardOnly())
			}
			for r, got := range o.ToActions() {
				if !reflect.DeepEqual(got, want.Order[r]) {
					t.Errorf("rank %d\n got %s\nwant %s", r, strings.Join(got, " "), strings.Join(want.Order[r], " "))
				}
			}
			if err := o.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
