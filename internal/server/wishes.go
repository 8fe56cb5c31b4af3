package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// AddStraggler takes word of a slow GPU, and returns when the schedules that answer it are published.
func (s *Server) AddStraggler(ctx context.Context, id string, st api.Straggler) (api.Job, error) {
	if (st.Rank == nil) == (st.GPU == "") {
		return api.Job{}, &api.Error{Status: 422, Code: "straggler", Detail: "name the straggler by rank or by gpu_id, one of them"}
	}
	s.rehearse(ctx, id, func(j *control.Job) error {
		return s.store.View(ctx, func(tx *store.Tx) error { return s.setStraggler(tx, j, st) })
	})
	job, err := s.change(ctx, id, func(tx *store.Tx, j *control.Job) error { return s.setStraggler(tx, j, st) })
	if err == nil {
		s.metrics.stragglers.WithLabelValues(sourceLabel(st.Source)).Inc()
	}
	return job, err
}

func (s *Server) setStraggler(tx *store.Tx, j *control.Job, st api.Straggler) error {
	places, err := s.hub.places(tx, j)
	if err != nil {
		return err
	}
	rank := -1
	if st.Rank != nil {
		rank = *st.Rank
	} else {
		ranks, err := tx.Ranks(j.ID, j.Generation, nil)
		if err != nil {
			return err
		}
		for _, r := range ranks {
			var a api.Rank
			if err := json.Unmarshal(r.Doc, &a); err != nil {
				return fmt.Errorf("reading a stored rank: %w", err)
			}
			if a.GPU == st.GPU {
				rank = r.Rank
			}
		}
		if rank < 0 {
			return &api.Error{Status: 404, Code: "unknown-gpu", Detail: fmt.Sprintf("job %s has no GPU %q", j.ID, st.GPU)}
		}
	}
	if rank < 0 || rank >= len(places) {
		return &api.Error{Status: 422, Code: "rank", Detail: fmt.Sprintf("rank %d: job %s has ranks 0 … %d", rank, j.ID, j.Spec.WorldSize-1)}
	}
	if j.Missing > 0 {
		return &api.Error{Status: 409, Code: "ranks-missing", Detail: fmt.Sprintf("job %s still waits for %d ranks to register", j.ID, j.Missing)}
	}
	return j.SetStraggler(st, places[rank], rank)
}

// sourceLabel bounds the values that a metric's label takes.
func sourceLabel(source string) string {
	switch source {
	case "":
		return "operator"
	case "operator", "scheduler", "agent", "power":
		return source
	}
	return "other"
}

// SetGoal takes an operator's wish.
func (s *Server) SetGoal(ctx context.Context, id string, g api.Goal) (api.Job, error) {
	s.rehearse(ctx, id, func(j *control.Job) error { return j.SetGoal(g) })
	return s.change(ctx, id, func(_ *store.Tx, j *control.Job) error { return j.SetGoal(g) })
}

// Pause sends all ranks to maximum clock until Resume; Finish ends the job; Measure proves its saving on itself.
func (s *Server) Pause(ctx context.Context, id string) (api.Job, error) {
	return s.change(ctx, id, func(_ *store.Tx, j *control.Job) error { return j.Pause("by an operator") })
}

// Resume goes on where Pause stopped.
func (s *Server) Resume(ctx context.Context, id string) (api.Job, error) {
	return s.change(ctx, id, func(tx *store.Tx, j *control.Job) error {
		if err := loadParts(tx, j); err != nil {
			return err
		}
		return j.Resume()
	})
}

// Finish ends a job.
func (s *Server) Finish(ctx context.Context, id string) (api.Job, error) {
	return s.change(ctx, id, func(tx *store.Tx, j *control.Job) error {
		reports, err := tx.TakeReports(id, reportsAtOnce) // the last ones count
		if err != nil {
			return err
		}
		if len(reports) > 0 && j.Missing == 0 {
			after, err := s.take(tx, j, reports)
			if err != nil {
				return err
			}
			tx.Committed(after)
		}
		j.Finish()
		return nil
	})
}

// Measure proves on the job itself what its plan saves.
func (s *Server) Measure(ctx context.Context, id string, r api.MeasureRequest) (api.Job, error) {
	return s.change(ctx, id, func(_ *store.Tx, j *control.Job) error { return j.Measure(r) })
}

func (s *Server) change(ctx context.Context, id string, f func(*store.Tx, *control.Job) error) (api.Job, error) {
	if _, err := s.mutate(ctx, id, f); err != nil {
		return api.Job{}, err
	}
	return s.Job(ctx, id)
}
