package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// Schedules returns what ranks are to do, as JSON of api.Schedules, and its version. It waits as the query says.
func (s *Server) schedules(ctx context.Context, id string, q api.ScheduleQuery) (text []byte, version int64, generation int, err error) {
	deadline := time.NewTimer(min(q.Wait, s.config.LongestWait))
	defer deadline.Stop()
	s.metrics.longPolls.Set(float64(s.waiters.Add(1)))
	defer func() { s.metrics.longPolls.Set(float64(s.waiters.Add(-1))) }()
	for {
		news := s.hub.waiting(id)
		v, err := s.hub.get(ctx, id)
		if err != nil {
			return nil, 0, 0, err
		}
		if q.Generation != 0 && q.Generation != v.job.Generation {
			if q.Generation > v.job.Generation {
				return nil, 0, 0, &api.Error{Status: 422, Code: "generation", Detail: fmt.Sprintf("generation %d of job %s: the newest is %d", q.Generation, id, v.job.Generation)}
			}
			return nil, 0, 0, olderGeneration(id, q.Generation, v.job.Generation)
		}
		for _, r := range q.Ranks {
			if r < 0 || r >= v.job.Spec.WorldSize {
				return nil, 0, 0, &api.Error{Status: 422, Code: "rank", Detail: fmt.Sprintf("rank %d: job %s has ranks 0 … %d", r, id, v.job.Spec.WorldSize-1)}
			}
		}
		ready := v.job.Version > q.Version && v.job.Missing == 0
		if ready && v.places == nil {
			if v, err = s.withPlaces(ctx, id, v); err != nil {
				return nil, 0, 0, err
			}
		}
		if ready || q.Wait <= 0 {
			return v.encode(q), max(v.job.Version, 0), v.job.Generation, nil
		}
		select {
		case <-news:
		case <-deadline.C:
			return v.encode(q), v.job.Version, v.job.Generation, nil
		case <-s.stopped.Done():
			return nil, 0, 0, &api.Error{Status: 503, Code: "stopping", Detail: "the server is shutting down"}
		case <-ctx.Done():
			return nil, 0, 0, ctx.Err()
		}
	}
}

// Schedules is what ranks are to do, after waiting as the query says.
func (s *Server) Schedules(ctx context.Context, id string, q api.ScheduleQuery) (out api.Schedules, err error) {
	text, _, _, err := s.schedules(ctx, id, q)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

func (s *Server) withPlaces(ctx context.Context, id string, v *view) (*view, error) {
	next := *v
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		next.places, err = s.hub.places(tx, v.job)
		return err
	})
	return &next, err
}

// encode returns the JSON of an api.Schedules with those of the ranks asked for whose schedule differs from the
// version that the query names. As long as ranks are missing, and where nothing is new, there are none.
func (v *view) encode(q api.ScheduleQuery) []byte {
	var b bytes.Buffer
	head, _ := json.Marshal(struct {
		Generation         int       `json:"generation"`
		Version            int64     `json:"version"`
		EffectiveIteration int64     `json:"effective_iteration"`
		Reason             string    `json:"reason"`
		State              api.State `json:"state"`
		ReportEvery        int       `json:"report_every"`
	}{v.job.Generation, v.job.Version, max(0, v.sched.EffectiveIteration), v.sched.Reason, v.job.State, max(1, v.shown.ReportEvery)})
	b.Write(head[:len(head)-1])
	b.WriteString(`,"ranks":[`)
	if v.job.Version > q.Version && v.job.Missing == 0 && v.places != nil {
		known, now := v.older[q.Version], v.older[v.sched.Version]
		first := true
		write := func(rank int) {
			p := v.places[rank]
			group := v.shown.Body.GroupOf(p.DP)
			if known != nil && known.same(now, p) {
				return
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			fmt.Fprintf(&b, `{"rank":%d,`, rank)
			b.Write(v.encoded[group][p.PP])
		}
		if len(q.Ranks) == 0 {
			for rank := range v.places {
				write(rank)
			}
		}
		for _, rank := range q.Ranks {
			write(rank)
		}
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

// shown is a schedule as it is stored.
type shown struct {
	ReportEvery int           `json:"report_every"`
	State       api.State     `json:"state"`
	Body        *control.Body `json:"body"`
}

func (s *Server) scheduleAt(tx *store.Tx, job string, version int64) (shown, error) {
	list, err := tx.Schedules(job, version-1, 1)
	if err != nil {
		return shown{}, err
	}
	if len(list) == 0 || list[0].Version != version {
		return shown{}, fmt.Errorf("job %s has no schedule version %d", job, version)
	}
	return s.loadShown(tx, list[0])
}

// loadShown returns a schedule as it is stored. It is shared: nobody may change it.
func (s *Server) loadShown(tx *store.Tx, sched store.Schedule) (shown, error) {
	if sh, ok := s.shown.get(sched.Body); ok {
		return sh, nil
	}
	text, err := tx.Blob(sched.Body)
	if err != nil {
		return shown{}, fmt.Errorf("schedule version %d of job %s: %w", sched.Version, sched.Job, err)
	}
	var sh shown
	if err := json.Unmarshal(text, &sh); err != nil {
		return shown{}, fmt.Errorf("schedule version %d of job %s: %w", sched.Version, sched.Job, err)
	}
	s.shown.put(sched.Body, sh)
	return sh, nil
}
