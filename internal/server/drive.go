package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
		r, err := s.ready(ctx, id)
		if err != nil {
			return err
		}
		limit := len(r.reports)
		_, err = s.mutateFrom(ctx, id, func(tx *store.Tx, row store.Job) (*control.Job, error) {
			if limit == 0 {
				return s.decode(row)
			}
			reports, err := tx.TakeReports(id, limit)
			if err != nil {
				return nil, err
			}
			return s.took(tx, row, reports, &r)
		})
		if err != nil || limit < reportsAtOnce {
			return err
		}
	}
	return nil
}

// ready is a job with its next reports taken in, before that is made durable: while others may write.
type ready struct {
	row     store.Job
	reports []store.Report
	job     *control.Job
	parts   map[string][]byte
	after   func() // once it is durable
}

func (s *Server) ready(ctx context.Context, id string) (r ready, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if r.row, err = tx.Job(id); err != nil {
			return unknown(id, err)
		}
		if r.reports, err = tx.Reports(id, reportsAtOnce); err != nil || len(r.reports) == 0 {
			return err
		}
		if r.job, err = s.decode(r.row); err != nil {
			return err
		}
		r.after, err = s.take(tx, r.job, r.reports)
		return err
	})
	if err == nil && r.job != nil {
		r.parts, err = r.job.Parts()
	}
	return r, err
}

// took returns a job that has taken reports: what was made ready if it still is right, and made anew otherwise.
func (s *Server) took(tx *store.Tx, row store.Job, reports []store.Report, r *ready) (*control.Job, error) {
	same := func(a, b store.Report) bool { return a.ID == b.ID }
	if r.job == nil || !bytes.Equal(row.Doc, r.row.Doc) || !slices.EqualFunc(reports, r.reports, same) {
		j, err := s.decode(row)
		if err != nil || len(reports) == 0 {
			return j, err
		}
		after, err := s.take(tx, j, reports)
		tx.Committed(after)
		return j, err
	}
	j := r.job
	r.job = nil // it is changed from here on: a transaction that is tried again makes its own
	tx.Committed(r.after)
	for name, data := range r.parts {
		if err := tx.SetPart(j.ID, name, data); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// take gives reports to a job. What it returns is to be done once that is durable.
func (s *Server) take(tx *store.Tx, j *control.Job, reports []store.Report) (after func(), err error) {
	if err := loadParts(tx, j); err != nil {
		return nil, err
	}
	places, err := s.hub.places(tx, j)
	if err != nil {
		return nil, err
	}
	j.At(places)
	before := j.Iteration
	for _, r := range reports {
		var body api.Reports
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return nil, fmt.Errorf("reading a stored report: %w", err)
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
	after = func() {}
	if passed := j.Iteration - before; passed > 0 {
		s.hub.moved(j.ID)
		if j.Plan != nil && j.Kind == control.KindPlan {
			plan := *j.Plan
			after = func() { s.metrics.saved(j.Spec.DP, plan, passed) }
		}
	}
	j.Ahead(s.hub.ahead(j))
	j.Advance()
	return after, nil
}

func loadParts(tx *store.Tx, j *control.Job) error {
	return j.LoadParts(func(name string) ([]byte, error) { return tx.Part(j.ID, name) })
}

// mutate changes a job in one transaction: f decides, then what follows from it is done and all is saved. Plans that
// are missing are made between transactions. It returns the job as it then is.
func (s *Server) mutate(ctx context.Context, id string, f func(*store.Tx, *control.Job) error) (*control.Job, error) {
	return s.mutateFrom(ctx, id, func(tx *store.Tx, row store.Job) (*control.Job, error) {
		j, err := s.decode(row)
		if err != nil {
			return nil, err
		}
		return j, f(tx, j)
	})
}

// mutateFrom is mutate where begin returns the job as it was decided to be.
func (s *Server) mutateFrom(ctx context.Context, id string, begin func(*store.Tx, store.Job) (*control.Job, error)) (*control.Job, error) {
	for range plansMax {
		var j *control.Job
		var want *control.Want
		err := s.store.Update(ctx, func(tx *store.Tx) error {
			row, err := tx.LockJob(id)
			if err != nil {
				return unknown(id, err)
			}
			if j, err = begin(tx, row); err != nil {
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
			begin = func(_ *store.Tx, row store.Job) (*control.Job, error) {
				j, wrong := s.decode(row)
				if wrong == nil {
					j.Fail("no plan could be made: " + err.Error())
				}
				return j, wrong
			}
			continue
		}
		begin = func(_ *store.Tx, row store.Job) (*control.Job, error) { return s.decode(row) }
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
	j, err := s.decode(v.row)
	if err != nil {
		return
	}
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

// decode returns a stored job that knows how far its ranks may have come by now.
func (s *Server) decode(row store.Job) (*control.Job, error) {
	j, err := decodeJob(row)
	if err == nil {
		j.Ahead(s.hub.ahead(j))
	}
	return j, err
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
