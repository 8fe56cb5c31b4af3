package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/profile"
)

// Query says which schedules a rank, or a node, asks for.
type Query struct {
	Ranks      []int         // none: all
	Generation int           // 0: the newest
	Version    int64         // the newest one that is known
	Wait       time.Duration // how long to wait for a newer one
}

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

// RegisterRanks registers ranks of a job. Doing so again changes nothing, or starts a new generation where another
// process of a rank registers.
func (s *Server) RegisterRanks(ctx context.Context, id string, r api.RankRegistration) (api.RankRegistered, error) {
	j, err := s.mutate(ctx, id, func(tx *store.Tx, j *control.Job) error { return s.register(tx, j, r) })
	if err != nil {
		return api.RankRegistered{}, err
	}
	return api.RankRegistered{Generation: j.Generation, MissingCount: j.Missing}, nil
}

func (s *Server) register(tx *store.Tx, j *control.Job, r api.RankRegistration) error {
	if j.Ended() {
		return &api.Error{Status: 409, Code: "job-state", Detail: fmt.Sprintf("job %s is %s: register it anew", j.ID, j.State)}
	}
	seen := map[int]bool{}
	var numbers []int
	for i := range r.Ranks {
		if err := j.CheckRank(r.Ranks[i]); err != nil {
			return err
		}
		if seen[r.Ranks[i].Rank] {
			return &api.Error{Status: 422, Code: "rank", Detail: fmt.Sprintf("rank %d is in the request twice", r.Ranks[i].Rank)}
		}
		seen[r.Ranks[i].Rank] = true
		numbers = append(numbers, r.Ranks[i].Rank)
	}
	switch {
	case r.Generation != 0 && r.Generation < j.Generation:
		return olderGeneration(j.ID, r.Generation, j.Generation)
	case r.Generation > j.Generation+1:
		return &api.Error{Status: 422, Code: "generation", Detail: fmt.Sprintf("generation %d of job %s: the newest is %d, the next is %d", r.Generation, j.ID, j.Generation, j.Generation+1)}
	case r.Generation == j.Generation+1:
		j.NewGeneration("ranks registered for it")
	default:
		here, err := tx.Ranks(j.ID, j.Generation, numbers)
		if err != nil {
			return err
		}
		known := map[int]store.Rank{}
		for _, k := range here {
			known[k.Rank] = k
		}
		for _, n := range r.Ranks {
			k, ok := known[n.Rank]
			restarted := ok && (k.Session != n.Session || n.Session == "" && j.Missing == 0 && r.Generation == 0)
			if restarted && n.Session == "" && sameRank(k, n) && j.Iteration < 0 {
				restarted = false // nothing has run yet: a repeat
			}
			if restarted {
				j.NewGeneration(fmt.Sprintf("rank %d has started again", n.Rank))
				break
			}
		}
	}
	rows := make([]store.Rank, 0, len(r.Ranks))
	for _, n := range r.Ranks {
		doc, err := json.Marshal(n)
		if err != nil {
			return err
		}
		rows = append(rows, store.Rank{Rank: n.Rank, Session: n.Session, Doc: doc})
	}
	if err := tx.PutRanks(j.ID, j.Generation, rows); err != nil {
		return err
	}
	count, err := tx.CountRanks(j.ID, j.Generation)
	if err != nil {
		return err
	}
	was := j.Missing
	j.Missing = j.Spec.WorldSize - count
	if j.Missing > 0 || was == 0 {
		return nil
	}
	all, err := tx.Ranks(j.ID, j.Generation, nil)
	if err != nil {
		return err
	}
	ranks := make([]api.Rank, len(all))
	for i, a := range all {
		if err := json.Unmarshal(a.Doc, &ranks[i]); err != nil {
			return fmt.Errorf("reading a stored rank: %w", err)
		}
	}
	if j.Generation > 1 {
		if err := tx.DeleteRanks(j.ID, j.Generation); err != nil {
			return err
		}
	}
	if err := loadParts(tx, j); err != nil {
		return err
	}
	j.TakeGPU(ranks)
	if err := s.warm(tx, j); err != nil {
		return err
	}
	j.Ready(ranks)
	return nil
}

func sameRank(k store.Rank, n api.Rank) bool {
	doc, err := json.Marshal(n)
	return err == nil && bytes.Equal(doc, k.Doc)
}

func olderGeneration(id string, got, newest int) error {
	return &api.Error{Status: http.StatusConflict, Code: "older-generation", Detail: fmt.Sprintf("generation %d of job %s is over: the newest is %d; register again", got, id, newest)}
}

// Schedules returns what ranks are to do, as JSON of api.Schedules, and its version. It waits as the query says.
func (s *Server) schedules(ctx context.Context, id string, q Query) (text []byte, version int64, generation int, err error) {
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
func (s *Server) Schedules(ctx context.Context, id string, q Query) (out api.Schedules, err error) {
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
func (v *view) encode(q Query) []byte {
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

// Report takes the reports of a node. They are durable when it returns; what they change follows.
func (s *Server) Report(ctx context.Context, id string, r api.Reports) (api.Accepted, error) {
	v, err := s.hub.get(ctx, id)
	if err != nil {
		return api.Accepted{}, err
	}
	switch {
	case r.Generation < v.job.Generation:
		return api.Accepted{}, olderGeneration(id, r.Generation, v.job.Generation)
	case r.Generation > v.job.Generation:
		return api.Accepted{}, &api.Error{Status: 422, Code: "generation", Detail: fmt.Sprintf("generation %d of job %s: the newest is %d", r.Generation, id, v.job.Generation)}
	case v.job.Missing > 0:
		return api.Accepted{}, &api.Error{Status: 409, Code: "ranks-missing", Detail: fmt.Sprintf("job %s still waits for %d ranks to register", id, v.job.Missing)}
	}
	for _, rank := range r.Ranks {
		if rank.Rank < 0 || rank.Rank >= v.job.Spec.WorldSize {
			return api.Accepted{}, &api.Error{Status: 422, Code: "rank", Detail: fmt.Sprintf("rank %d: job %s has ranks 0 … %d", rank.Rank, id, v.job.Spec.WorldSize-1)}
		}
		if rank.Version > v.job.Version {
			return api.Accepted{}, &api.Error{Status: 422, Code: "version", Detail: fmt.Sprintf("rank %d reports schedule version %d; the newest is %d", rank.Rank, rank.Version, v.job.Version)}
		}
		if math.IsNaN(rank.TimeS) {
			return api.Accepted{}, &api.Error{Status: 422, Code: "time", Detail: "time_s is not a number"}
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return api.Accepted{}, err
	}
	err = s.store.Update(ctx, func(tx *store.Tx) error { return unknown(id, tx.AddReport(id, r.Generation, body)) })
	if err != nil {
		return api.Accepted{}, err
	}
	s.metrics.reports.Add(float64(len(r.Ranks)))
	s.touch(id)
	return api.Accepted{Version: v.job.Version}, nil
}

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
			if err := s.take(tx, j, reports); err != nil {
				return err
			}
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

// PutProfile takes a profile's CSV in place of a campaign.
func (s *Server) PutProfile(ctx context.Context, id string, csv []byte, blockingW float64) (api.Job, error) {
	p, err := profile.Read(bytes.NewReader(csv), "profile", profile.Options{MaxBytes: maxProfile})
	if err != nil {
		return api.Job{}, &api.Error{Status: 422, Code: "profile", Detail: err.Error()}
	}
	return s.change(ctx, id, func(tx *store.Tx, j *control.Job) error {
		o, err := j.Order()
		if err != nil {
			return err
		}
		if p.Stages() != o.Stages {
			return &api.Error{Status: 422, Code: "profile", Detail: fmt.Sprintf("the profile has %d stages, job %s has %d", p.Stages(), id, o.Stages)}
		}
		for stage := range o.Stages {
			for _, name := range o.Instructions() {
				if _, err := p.Options(stage, name); err != nil {
					return &api.Error{Status: 422, Code: "profile", Detail: err.Error()}
				}
			}
		}
		if blockingW <= 0 && j.BlockingPowerW <= 0 {
			return &api.Error{Status: 422, Code: "blocking-power", Detail: "blocking_power_w is missing: what one GPU draws while it waits, in W; perseus doctor and a campaign measure it"}
		}
		if j.Ended() {
			return &api.Error{Status: 409, Code: "job-state", Detail: fmt.Sprintf("job %s is %s", id, j.State)}
		}
		hash, err := tx.PutBlob(csv)
		if err != nil {
			return err
		}
		if err := tx.SetRef("profile", id, hash); err != nil {
			return err
		}
		if err := loadParts(tx, j); err != nil {
			return err
		}
		j.SetProfile(hash, blockingW, "uploaded")
		return nil
	})
}

const maxProfile = 16 << 20

// Profile returns the CSV of a job's profile.
func (s *Server) Profile(ctx context.Context, id string) ([]byte, error) {
	return s.blobOf(ctx, id, func(j *control.Job) string { return j.Profile }, "profile")
}

// Frontier returns a job's frontier file, compressed.
func (s *Server) Frontier(ctx context.Context, id string) ([]byte, error) {
	return s.blobOf(ctx, id, func(j *control.Job) string { return j.Frontier }, "frontier")
}

func (s *Server) blobOf(ctx context.Context, id string, hash func(*control.Job) string, what string) (data []byte, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Job(id)
		if err != nil {
			return unknown(id, err)
		}
		j, err := decodeJob(row)
		if err != nil {
			return err
		}
		if hash(j) == "" {
			return &api.Error{Status: 404, Code: "no-" + what, Detail: fmt.Sprintf("job %s has no %s yet: it is %s", id, what, j.State)}
		}
		data, err = tx.Blob(hash(j))
		return err
	})
	return data, err
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

// mindDeadlines marks jobs of which nothing is heard. It counts on the monotonic clock from its own start on.
func (s *Server) mindDeadlines(ctx context.Context) error {
	every := max(s.config.RankDeadline/10, 20*time.Millisecond)
	tick := time.NewTicker(min(every, 30*time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, state := range []api.State{api.Registered, api.Profiling, api.Characterizing, api.Running} {
			after := ""
			for {
				list, err := s.Jobs(ctx, state, after, 500)
				if err != nil {
					if ctx.Err() == nil {
						s.log.Warn("looking for silent jobs failed", "error", err)
					}
					break
				}
				for i := range list.Jobs {
					s.mindDeadline(ctx, &list.Jobs[i])
				}
				if after = list.Next; after == "" {
					break
				}
			}
		}
	}
}

func (s *Server) mindDeadline(ctx context.Context, job *api.Job) {
	if s.hub.silence(job.ID) <= s.config.RankDeadline {
		return
	}
	_, err := s.mutate(ctx, job.ID, func(tx *store.Tx, j *control.Job) error {
		missing, err := missingRanks(tx, j)
		if err != nil {
			return err
		}
		if j.Missing == 0 {
			places, err := s.hub.places(tx, j)
			if err != nil {
				return err
			}
			missing = j.Lagging(places)
		}
		j.Silent(missing, strings.TrimSuffix(s.config.RankDeadline.String(), "0s"))
		return nil
	})
	if err != nil && ctx.Err() == nil && !isUnknown(err) {
		s.log.Warn("marking a silent job failed", "job", job.ID, "error", err)
	}
}
