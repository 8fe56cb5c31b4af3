package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// reportsAtOnce bounds the reports of one transaction.
const reportsAtOnce = 1024

// schedulesKept is how many versions of a job's schedule are kept.
const schedulesKept = 16

// drive takes the reports of a job and does what follows, until there is nothing more to do.
func (s *Server) drive(ctx context.Context, id string) error {
	for range 1000 {
		var more bool
		_, err := s.mutate(ctx, id, func(tx *store.Tx, j *control.Job) error {
			reports, err := tx.TakeReports(id, reportsAtOnce)
			if err != nil {
				return err
			}
			more = len(reports) == reportsAtOnce
			if len(reports) > 0 {
				if err := s.take(tx, j, reports); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// take gives reports to a job.
func (s *Server) take(tx *store.Tx, j *control.Job, reports []store.Report) error {
	if err := loadParts(tx, j); err != nil {
		return err
	}
	places, err := s.hub.places(tx, j)
	if err != nil {
		return err
	}
	j.At(places)
	before := j.Iteration
	for _, r := range reports {
		var body api.Reports
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return fmt.Errorf("reading a stored report: %w", err)
		}
		if r.Generation != j.Generation {
			continue
		}
		for i := range body.Ranks {
			rank := &body.Ranks[i]
			if rank.Rank >= len(places) {
				continue
			}
			if err := j.Report(rank, places[rank.Rank]); err != nil {
				s.log.Debug("a report was left out", "job", j.ID, "rank", rank.Rank, "error", err)
				continue
			}
			if rank.Iteration >= j.Iteration {
				s.hub.pace(j.ID, rank.TimeS)
			}
		}
	}
	if j.Iteration > before {
		s.hub.moved(j.ID)
		if j.Plan != nil && j.Kind == control.KindPlan {
			plan, passed := *j.Plan, j.Iteration-before
			tx.Committed(func() { s.metrics.saved(j.Spec.DP, plan, passed) })
		}
	}
	j.Ahead(s.hub.ahead(j))
	j.Advance()
	return nil
}

func loadParts(tx *store.Tx, j *control.Job) error {
	return j.LoadParts(func(name string) ([]byte, error) { return tx.Part(j.ID, name) })
}

// mutate changes a job in one transaction: f decides, then what follows from it is done and all is saved. Plans that
// are missing are made between transactions. It returns the job as it then is.
func (s *Server) mutate(ctx context.Context, id string, f func(*store.Tx, *control.Job) error) (*control.Job, error) {
	for range plansMax {
		var j *control.Job
		var want *control.Want
		err := s.store.Update(ctx, func(tx *store.Tx) error {
			row, err := tx.LockJob(id)
			if err != nil {
				return unknown(id, err)
			}
			if j, err = decodeJob(row); err != nil {
				return err
			}
			j.Ahead(s.hub.ahead(j))
			if err := f(tx, j); err != nil {
				return err
			}
			if want, err = s.settle(tx, j); err != nil {
				return err
			}
			return s.save(tx, row, j)
		})
		if err != nil {
			return nil, err
		}
		s.hub.news(id)
		if want == nil {
			return j, nil
		}
		if err := s.plans.make(ctx, *want); errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return nil, err // Due is saved: the next drive makes it
		} else if err != nil {
			s.log.Error("making a plan failed", "job", id, "error", err)
			f = func(_ *store.Tx, j *control.Job) error {
				j.Fail("no plan could be made: " + err.Error())
				return nil
			}
			continue
		}
		f = func(*store.Tx, *control.Job) error { return nil }
	}
	return nil, fmt.Errorf("job %s: plans are missing again and again", id)
}

// rehearse makes the plans that a change of a job will need, on a copy, so that the change itself is one transaction. What
// fails here is left for the change to say.
func (s *Server) rehearse(ctx context.Context, id string, f func(*control.Job) error) {
	v, err := s.hub.get(ctx, id)
	if err != nil || v.job.State != api.Running {
		return
	}
	j, err := decodeJob(v.row)
	if err != nil {
		return
	}
	j.Ahead(s.hub.ahead(j))
	if f(j) != nil || !j.Due {
		return
	}
	for range 16 {
		want := j.Deploy(s.plans.get)
		if want == nil || s.plans.make(ctx, *want) != nil {
			return
		}
	}
}

// settle does the effects of a job, and of what they lead to. It returns a plan that is missing.
func (s *Server) settle(tx *store.Tx, j *control.Job) (*control.Want, error) {
	var want *control.Want
	for {
		effects := j.Effects()
		for _, e := range effects {
			if err := s.do(tx, j, e); err != nil {
				return nil, err
			}
		}
		switch {
		case len(effects) > 0:
		case want != nil || !j.Due:
			return want, nil
		default:
			if want = j.Deploy(s.plans.get); want == nil {
				s.likely(j)
			}
		}
	}
}

func (s *Server) do(tx *store.Tx, j *control.Job, e control.Effect) error {
	switch e := e.(type) {
	case control.Note:
		tx.Committed(func() {
			s.log.Info("job", "job", j.ID, "kind", e.Kind, "text", e.Text)
			s.metrics.noted(e)
		})
		return tx.AddEvent(j.ID, time.Now(), e.Kind, e.Text)
	case control.Profiled:
		return s.profiled(tx, j, e.CSV)
	case control.Characterize:
		return s.order(tx, j, e)
	case control.Publish:
		body := e.Body
		if body == nil {
			like, err := s.scheduleAt(tx, j.ID, e.Like)
			if err != nil {
				return err
			}
			body = like.Body
		}
		sh := shown{e.ReportEvery, e.State, body}
		text, err := json.Marshal(sh)
		if err != nil {
			return err
		}
		hash, err := tx.PutBlob(text)
		if err != nil {
			return err
		}
		s.shown.put(hash, sh)
		tx.Committed(func() { s.metrics.published(e.Reason) })
		// Ranks need the newest only, and a proof the plan that it repeats.
		if old := min(e.Version-schedulesKept, j.PlanVersion); old > 0 {
			if err := tx.DeleteSchedules(j.ID, old); err != nil {
				return err
			}
		}
		return tx.AddSchedule(store.Schedule{
			Job: j.ID, Version: e.Version, Generation: j.Generation, EffectiveIteration: e.From, Reason: e.Reason, Body: hash, CreatedAt: time.Now(),
		})
	}
	return fmt.Errorf("unknown effect %T", e)
}

func (s *Server) save(tx *store.Tx, row store.Job, j *control.Job) error {
	parts, err := j.Parts()
	if err != nil {
		return err
	}
	for name, data := range parts {
		if err := tx.SetPart(j.ID, name, data); err != nil {
			return err
		}
	}
	doc, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("saving job %s: %w", j.ID, err)
	}
	if row.State == string(j.State) && string(row.Doc) == string(doc) {
		return nil
	}
	row.State, row.Doc, row.UpdatedAt = string(j.State), doc, time.Now()
	if err := tx.UpdateJob(row); err != nil {
		return err
	}
	tx.Publish(j.ID)
	return nil
}

func decodeJob(row store.Job) (*control.Job, error) {
	j := new(control.Job)
	if err := json.Unmarshal(row.Doc, j); err != nil {
		return nil, fmt.Errorf("reading job %s from the store: %w", row.ID, err)
	}
	return j, nil
}

func unknown(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &api.Error{Status: 404, Code: "unknown-job", Detail: fmt.Sprintf("there is no job %q", id)}
	}
	return err
}
