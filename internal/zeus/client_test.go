package zeus

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/zeus/zeustest"
)

// TestRealClient trains with the client from PyPI, below a token and at the root: at maximum clocks while there is no
// plan, and by the plan where one is known.
func TestRealClient(t *testing.T) {
	zeustest.Python(t)
	s := newService()
	h := newHandler(t, s)
	// Not through a ServeMux: it would redirect a path with two slashes, and the client does not follow.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, rest, ok := SplitToken(r.URL.Path); ok && token == "perseus_t" {
			r.URL.Path = rest
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()

	training := zeustest.Training{
		URL: server.URL, PP: 2, DP: 2, TP: 1, Microbatches: 3, Steps: 2,
		Metadata: "schedule=1f1b;microbatches=3;model_key=tiny", Clocks: []int{210, 1395, 1410, 900},
	}
	ranks := zeustest.Run(t, training)
	for _, r := range ranks {
		if r.Error != "" || r.Job != ranks[0].Job || len(r.Schedule) != 6 {
			t.Fatalf("rank %d: %+v", r.Rank, r)
		}
		for i, op := range r.Schedule {
			if op.MHz != 1410 {
				t.Errorf("rank %d, op %d: %+v", r.Rank, i, op)
			}
		}
		if locks := r.Locks(); !slices.Equal(locks, []int{1410}) {
			t.Errorf("rank %d: locked to %v", r.Rank, locks)
		}
	}

	// The same with a plan, which is there when the last rank has registered.
	training.URL += "/zeus/perseus_t/"
	s.then = api.Characterizing
	plan := func(rank int, first ...int) api.RankSchedule {
		return api.RankSchedule{
			Rank: rank, Mode: api.Planned, Instructions: []string{"forward", "backward"},
			Instruction: first, Stage: make([]int, 6), FrequencyMHz: []int{900, 900, 1395, 210, 0, 1395},
		}
	}
	s.onComplete = func() {
		s.publish(api.Running, plan(0, 0, 0, 1, 0, 1, 1), plan(1, 0, 0, 1, 0, 1, 1), plan(2, 0, 1, 0, 1, 0, 1), plan(3, 0, 1, 0, 1, 0, 1))
	}
	for _, r := range zeustest.Run(t, training) {
		if r.Error != "" {
			t.Fatalf("rank %d: %s", r.Rank, r.Error)
		}
		// The client locks the top clock first, then makes one call for each change.
		if locks, want := r.Locks(), []int{1410, 900, 1395, 210, 1410, 1395, 900, 1395, 210, 1410, 1395}; !slices.Equal(locks, want) {
			t.Errorf("rank %d: locked to %v, want %v", r.Rank, locks, want)
		}
	}

	// The client's own word when a job is refused.
	training.Metadata = "schedule=none"
	s.onComplete = nil
	if r := zeustest.Run(t, training)[0]; !strings.Contains(r.Error, "status code 422") || !strings.Contains(r.Error, "job_metadata") {
		t.Errorf("rank 0: %+v", r)
	}
}
