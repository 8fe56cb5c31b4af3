package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// reportsAtOnce bounds the reports of one transaction.
const reportsAtOnce = 1024

// schedulesKept is how many versions of a job's schedule are kept.
const schedulesKept = 16

// shown is a schedule as it is stored.
type shown struct {
	ReportEvery int           `json:"report_every"`
	State       api.State     `json:"state"`
	Body        *control.Body `json:"body"`
}

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
			s.metrics.saved(j, j.Iteration-before)
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
	for range 16 {
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
		if len(effects) > 0 {
			continue
		}
		if !j.Due {
			return nil, nil
		}
		if want = j.Deploy(s.plans.get); want != nil {
			return want, nil
		}
		s.likely(j)
	}
}

func (s *Server) do(tx *store.Tx, j *control.Job, e control.Effect) error {
	switch e := e.(type) {
	case control.Note:
		s.log.Info("job", "job", j.ID, "kind", e.Kind, "text", e.Text)
		s.metrics.noted(e)
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
		s.metrics.published(e.Reason)
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

// profiled keeps the profile of a campaign, for this job and for later ones of the same model on the same GPUs.
func (s *Server) profiled(tx *store.Tx, j *control.Job, csv []byte) error {
	hash, err := tx.PutBlob(csv)
	if err != nil {
		return err
	}
	j.Profile = hash
	if err := tx.SetRef("profile", j.ID, hash); err != nil {
		return err
	}
	if j.Spec.ModelKey == "" || j.GPU == "" {
		return nil
	}
	stages := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(csv)), "\n")[1:] {
		stage, _, _ := strings.Cut(line, ",")
		stages[stage] = append(stages[stage], line)
	}
	for stage, lines := range stages {
		h, err := tx.PutBlob([]byte(strings.Join(lines, "\n") + "\n"))
		if err != nil {
			return err
		}
		if err := tx.SetRef("stage", warmKey(j, stage), h); err != nil {
			return err
		}
	}
	return tx.SetRef("blocking", warmKey(j, ""), fmt.Sprint(j.BlockingPowerW))
}

func warmKey(j *control.Job, stage string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", j.Spec.ModelKey, j.GPU, stage))
	return hex.EncodeToString(sum[:])
}

// warm gives a job the profile that an earlier one measured, if all its stages have one.
func (s *Server) warm(tx *store.Tx, j *control.Job) error {
	if j.Spec.ModelKey == "" || j.GPU == "" || j.Profile != "" || j.Campaign != nil {
		return nil
	}
	power, err := tx.Ref("blocking", warmKey(j, ""))
	if err != nil || power == "" {
		return err
	}
	o, err := j.Order()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("stage,instruction,frequency,time,energy\n")
	for stage := range o.Stages {
		hash, err := tx.Ref("stage", warmKey(j, fmt.Sprint(stage)))
		if err != nil || hash == "" {
			return err
		}
		lines, err := tx.Blob(hash)
		if err != nil {
			return err
		}
		b.Write(lines)
	}
	hash, err := tx.PutBlob([]byte(b.String()))
	if err != nil {
		return err
	}
	if err := tx.SetRef("profile", j.ID, hash); err != nil {
		return err
	}
	var w float64
	if _, err := fmt.Sscan(power, &w); err != nil || math.IsNaN(w) {
		return fmt.Errorf("stored blocking power %q: %w", power, err)
	}
	j.Warm(hash, w)
	return nil
}
