package zeus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
)

// longPoll is how long one question to the service waits for news. The service wakes it; the end of a wait is only a
// second look.
const longPoll = 20 * time.Second

// schedule answers with one iteration of a rank as soon as all ranks have registered. Where the time for that is over,
// it answers with maximum clocks: better a training without steering than one that waits for ever.
func (h *Handler) schedule(w http.ResponseWriter, r *http.Request, job string) error {
	rank, err := strconv.Atoi(r.URL.Query().Get("rank"))
	if err != nil || rank < 0 || rank >= maxWorld {
		return &invalid{[]detail{{[]string{"query", "rank"}, fmt.Sprintf("%q: must be a rank, a whole number from 0", shorten(r.URL.Query().Get("rank"), 32)), "type_error.integer"}}}
	}
	ctx := r.Context()
	known, err := h.complete(ctx, job, rank)
	if err != nil {
		return err
	}
	var self api.Rank
	if err := h.again(ctx, func() (err error) { self, err = h.Service.Rank(ctx, job, rank); return err }); err != nil {
		return err
	}
	now, err := h.newest(ctx, job, rank)
	if err != nil {
		return err
	}
	ops, err := h.steps(&known.Spec, &self, &now)
	if err != nil {
		return err
	}
	if now.State == api.Stale {
		h.Log.Warn("zeus: ranks are missing: this one trains at maximum clock", "job", job, "rank", rank, "missing", known.MissingRanks)
	}
	h.served.put(job, rank, servedRank{generation: now.Generation, version: now.Version, steps: ops}, known.Iteration)

	frequencies := make([][2]any, len(ops.mhz))
	for i := range frequencies {
		frequencies[i] = [2]any{ops.name(i), ops.mhz[i]}
	}
	writeJSON(w, http.StatusOK, struct {
		Rank        int      `json:"rank"`
		Frequencies [][2]any `json:"frequencies"`
	}{rank, frequencies})
	return nil
}

// complete returns the job once no rank is missing, or its deadline for them is over.
func (h *Handler) complete(ctx context.Context, job string, rank int) (known api.Job, err error) {
	for version := int64(0); ; {
		err := h.again(ctx, func() (err error) { known, err = h.Service.Job(ctx, job); return err })
		if err != nil {
			return known, err
		}
		if rank >= known.Spec.WorldSize {
			return known, &invalid{[]detail{{[]string{"query", "rank"}, fmt.Sprintf("%d: the job's ranks are 0 to %d", rank, known.Spec.WorldSize-1), "value_error"}}}
		}
		if known.State != api.Registered {
			return known, nil
		}
		// Nothing but the wake-up is of interest here: the answer is made of the job above and what is asked for later.
		var s api.Schedules
		err = h.again(ctx, func() (err error) {
			s, err = h.Service.Schedules(ctx, job, api.ScheduleQuery{Ranks: []int{rank}, Version: version, Wait: longPoll})
			return err
		})
		if err != nil {
			return known, err
		}
		version = max(version, s.Version)
		if s.State != api.Registered {
			continue
		}
		if h.stopping() {
			h.Log.Warn("zeus: the server stops while ranks are missing: this one trains at maximum clock", "job", job, "rank", rank)
			return known, nil
		}
		// A service that has no time to wait must not be asked without end.
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return known, err
		}
	}
}

// newest returns the schedule in force for a rank. While a frontier is being computed it waits for that, up to
// PlanWait.
func (h *Handler) newest(ctx context.Context, job string, rank int) (s api.Schedules, err error) {
	q := api.ScheduleQuery{Ranks: []int{rank}}
	ask := func() error {
		return h.again(ctx, func() (err error) { s, err = h.Service.Schedules(ctx, job, q); return err })
	}
	if err := ask(); err != nil || s.State != api.Characterizing || h.PlanWait < 0 {
		return s, err
	}
	for end := time.Now().Add(h.PlanWait); s.State == api.Characterizing; {
		q.Version, q.Wait = s.Version, time.Until(end)
		if q.Wait <= 0 || h.stopping() {
			break
		}
		if err := ask(); err != nil {
			return s, err
		}
		if s.State == api.Characterizing {
			if err := pause(ctx, min(100*time.Millisecond, max(0, time.Until(end)))); err != nil {
				return s, err
			}
		}
	}
	// The last answer holds only what is newer than the one before.
	q.Version, q.Wait = 0, 0
	return s, ask()
}

// again does what may find the service unavailable for a while, until it does not, or RetryFor is over.
func (h *Handler) again(ctx context.Context, do func() error) error {
	var end time.Time
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := do()
		var refused *api.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
			return err
		}
		if end.IsZero() {
			end = time.Now().Add(h.RetryFor)
		}
		if time.Until(end) < wait {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (h *Handler) stopping() bool {
	select {
	case <-h.Done:
		return true
	default:
		return false
	}
}

// pause waits for d, or returns the error of a context that ends sooner.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// steps returns what a rank is to do as Zeus's client wants it: exactly one iteration, whatever the mode. A clock of 0,
// which the client would take for the one before, becomes the rank's top clock.
func (h *Handler) steps(spec *api.JobSpec, self *api.Rank, s *api.Schedules) (*steps, error) {
	top := 0
	for _, f := range self.FrequencyMHz {
		top = max(top, f)
	}
	clock := func(mhz int) int {
		if mhz == 0 {
			return top
		}
		return mhz
	}
	var own api.RankSchedule // maximum clock, where the service says nothing
	for _, r := range s.Ranks {
		if r.Rank == self.Rank {
			own = r
		}
	}
	ops := &steps{}
	if own.Mode == api.Planned {
		for i, n := range own.Instruction {
			if n < 0 || n >= len(own.Instructions) || i >= len(own.FrequencyMHz) || i >= len(own.Stage) {
				return nil, fmt.Errorf("the schedule of rank %d is broken at op %d", self.Rank, i)
			}
			ops.add(own.Instructions[n], own.Stage[i], clock(own.FrequencyMHz[i]))
		}
		return ops, nil
	}
	order, err := h.orders.of(spec)
	if err != nil {
		return nil, fmt.Errorf("the order of rank %d: %w", self.Rank, err)
	}
	if self.PP < 0 || self.PP >= len(order.Ranks) {
		return nil, fmt.Errorf("rank %d has pp_rank %d of %d", self.Rank, self.PP, len(order.Ranks))
	}
	for _, a := range order.Ranks[self.PP] {
		name := a.Kind.Instruction()
		ops.add(name, int(a.Stage), clock(own.Uniform[name])) // without Uniform: 0
	}
	return ops, nil
}
