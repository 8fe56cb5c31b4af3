package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// PutJob registers a job. The same spec again changes nothing; another one is refused with 409, unless the job has
// ended: then it starts anew.
func (s *Server) PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error) {
	fresh, err := control.New(id, spec, s.config.Defaults)
	if err != nil {
		return api.Job{}, err
	}
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		row, err := tx.LockJob(id)
		now := time.Now()
		if err == nil {
			j, err := decodeJob(row)
			if err != nil {
				return err
			}
			same := reflect.DeepEqual(j.Spec, fresh.Spec)
			switch {
			case same && !j.Ended():
				return nil
			case j.State == api.Finished || j.State == api.Failed:
				j.Restart(fresh)
				if _, err := s.settle(tx, j); err != nil {
					return err
				}
				return s.save(tx, row, j)
			case j.Missing > 0 || same:
				return &api.Error{Status: 409, Code: "job-exists", Detail: fmt.Sprintf("job %s is registered with other degrees, schedule or metadata: finish or delete it first, or take another id", id)}
			}
			return &api.Error{Status: 409, Code: "job-exists", Detail: fmt.Sprintf("job %s runs with other degrees, schedule or metadata: finish or delete it first, or take another id", id)}
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		doc, err := json.Marshal(fresh)
		if err != nil {
			return err
		}
		row = store.Job{ID: id, State: string(fresh.State), Doc: doc, CreatedAt: now, UpdatedAt: now}
		if err := tx.InsertJob(row); err != nil {
			return err
		}
		if _, err := s.settle(tx, fresh); err != nil {
			return err
		}
		tx.Publish(id)
		return nil
	})
	if err != nil {
		if errors.Is(err, store.ErrExists) { // another replica was faster
			return s.Job(ctx, id)
		}
		return api.Job{}, err
	}
	s.hub.news(id)
	return s.Job(ctx, id)
}

// Job returns a job.
func (s *Server) Job(ctx context.Context, id string) (api.Job, error) {
	v, err := s.hub.get(ctx, id)
	if err != nil {
		return api.Job{}, err
	}
	var missing []int
	if v.job.Missing > 0 {
		err = s.store.View(ctx, func(tx *store.Tx) error {
			missing, err = missingRanks(tx, v.job)
			return err
		})
		if err != nil {
			return api.Job{}, err
		}
	}
	return asJob(v.row, v.job, missing), nil
}

func missingRanks(tx *store.Tx, j *control.Job) ([]int, error) {
	ranks, err := tx.Ranks(j.ID, j.Generation, nil)
	if err != nil {
		return nil, err
	}
	here := make([]bool, j.Spec.WorldSize)
	for _, r := range ranks {
		if r.Rank < len(here) {
			here[r.Rank] = true
		}
	}
	var out []int
	for r, ok := range here {
		if !ok {
			out = append(out, r)
		}
	}
	return out, nil
}

func asJob(row store.Job, j *control.Job, missing []int) api.Job {
	out := api.Job{
		ID: j.ID, State: j.State, Reason: j.Reason, Generation: j.Generation, Spec: j.Spec,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
		MissingRanks: missing[:min(100, len(missing))], MissingRanksCount: j.Missing, Version: j.Version,
		Iteration: max(0, j.Iteration), Profiling: j.Progress(), Frontier: j.Landmarks, Plan: j.Plan, Goal: j.Goal,
		Measurement: j.Measured, UnplannedCount: j.Unplanned,
	}
	for _, st := range j.Stragglers {
		out.Stragglers = append(out.Stragglers, st.Straggler)
	}
	return out
}

// Jobs returns a page of jobs.
func (s *Server) Jobs(ctx context.Context, state api.State, after string, limit int) (api.JobList, error) {
	list := api.JobList{Jobs: []api.Job{}}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		rows, err := tx.Jobs(string(state), after, limit+1)
		if err != nil {
			return err
		}
		if len(rows) > limit {
			rows = rows[:limit]
			list.Next = rows[limit-1].ID
		}
		for _, row := range rows {
			j, err := decodeJob(row)
			if err != nil {
				return err
			}
			list.Jobs = append(list.Jobs, asJob(row, j, nil))
		}
		return nil
	})
	return list, err
}

// DeleteJob forgets a job and all that belongs to it.
func (s *Server) DeleteJob(ctx context.Context, id string) error {
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.DeleteJob(id); err != nil {
			return unknown(id, err)
		}
		if err := tx.DeleteRef("profile", id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		tx.Publish(id)
		return nil
	})
	if err == nil {
		s.hub.forget(id)
	}
	return err
}

// Events returns a job's history after an event, oldest first.
func (s *Server) Events(ctx context.Context, id string, after int64, limit int) (out []api.Event, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Job(id); err != nil {
			return unknown(id, err)
		}
		list, err := tx.Events(id, after, limit)
		for _, e := range list {
			out = append(out, api.Event{ID: e.ID, At: e.At.UTC(), Kind: e.Kind, Text: e.Text})
		}
		return err
	})
	return out, err
}

// newID makes the id of a job that named none.
func newID() string { return "job-" + strings.ToLower(rand.Text()) }
