package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// hub holds what this replica knows of each job: its newest schedule, encoded for delivery, and who waits for the next.
type hub struct {
	s    *Server
	mu   sync.Mutex
	jobs map[string]*seen
}

// seen is what the hub knows of a job. Its view is replaced, never changed.
type seen struct {
	mu      sync.Mutex // one load at a time
	view    *view
	changes int64 // counts news; view is of the one that loaded says
	loaded  int64
	waiters chan struct{} // closed when the view is replaced
	// moved is when something was last heard of the job; iterations are iterS long, the last came at paced.
	moved, paced time.Time
	iterS        float64
}

// view is a job and its newest schedule, as of one moment.
type view struct {
	job     *control.Job
	row     store.Job
	sched   store.Schedule
	shown   shown
	places  []control.Place
	encoded [][][]byte // by group and pipeline rank: the rank's schedule without its rank
	// older are the newest versions, encoded: what is the same in one of them need not be told again.
	older map[int64]*edition
}

// edition is a version of the schedule, encoded.
type edition struct {
	body    *control.Body
	encoded [][][]byte
}

// same says whether a place has the same schedule in two editions.
func (e *edition) same(f *edition, p control.Place) bool {
	return bytes.Equal(e.encoded[e.body.GroupOf(p.DP)][p.PP], f.encoded[f.body.GroupOf(p.DP)][p.PP])
}

func newHub(s *Server) *hub {
	return &hub{s: s, jobs: map[string]*seen{}}
}

func (h *hub) seen(id string) *seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.jobs[id]
	if e == nil {
		e = &seen{changes: 1, waiters: make(chan struct{}), moved: time.Now()}
		h.jobs[id] = e
	}
	return e
}

// news tells that a job has changed.
func (h *hub) news(id string) {
	e := h.seen(id)
	h.mu.Lock()
	e.changes++
	close(e.waiters)
	e.waiters = make(chan struct{})
	h.mu.Unlock()
}

func (h *hub) moved(id string) {
	e := h.seen(id)
	h.mu.Lock()
	e.moved = time.Now()
	h.mu.Unlock()
}

// pace takes the time of an iteration that a rank has just reported.
func (h *hub) pace(id string, timeS float64) {
	e := h.seen(id)
	h.mu.Lock()
	e.paced, e.iterS = time.Now(), timeS
	h.mu.Unlock()
}

// ahead returns how many iterations a job may have come beyond the newest reported one: by the time since, no more
// than its ranks pass between two reports and back, and all those if nothing is known.
func (h *hub) ahead(j *control.Job) int64 {
	e := h.seen(j.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	most := int64(2 * j.ReportEvery())
	if j.Iteration < 0 {
		return 0
	}
	if !(e.iterS > 0) {
		return most
	}
	const delivery = 0.05 // s until a schedule has reached its ranks
	return min(most+int64(math.Ceil(delivery/e.iterS)), int64(math.Ceil((time.Since(e.paced).Seconds()+delivery)/e.iterS)))
}

// run follows the store's news until ctx ends.
func (h *hub) run(ctx context.Context) error {
	news, cancel := h.s.store.Subscribe()
	defer cancel()
	if err := h.all(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case id, ok := <-news:
			if !ok {
				return nil
			}
			if id == "" {
				if err := h.all(ctx); err != nil && !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
					return err
				}
				continue
			}
			h.moved(id)
			h.news(id)
		case <-tick.C: // reports of replicas that died
			h.undriven(ctx)
		}
	}
}

// all looks at every job: after a start, and when news may have been missed.
func (h *hub) all(ctx context.Context) error {
	h.mu.Lock()
	ids := make([]string, 0, len(h.jobs))
	for id := range h.jobs {
		ids = append(ids, id)
	}
	h.mu.Unlock()
	for _, id := range ids {
		h.news(id)
	}
	h.undriven(ctx)
	return nil
}

func (h *hub) undriven(ctx context.Context) {
	var ids []string
	err := h.s.store.View(ctx, func(tx *store.Tx) (err error) {
		ids, err = tx.JobsWithReports(1000)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			h.s.log.Warn("looking for reports that wait", "error", err)
		}
		return
	}
	for _, id := range ids {
		h.s.touch(id)
	}
}

// get returns what is known of a job now, from the store if it has changed. An *api.Error says that there is none.
func (h *hub) get(ctx context.Context, id string) (*view, error) {
	e := h.seen(id)
	current := func() (v *view, changes int64, ok bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return e.view, e.changes, e.view != nil && e.loaded == e.changes
	}
	if v, _, ok := current(); ok {
		return v, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v, changes, ok := current()
	if ok {
		return v, nil
	}
	var next *view
	err := h.s.store.View(ctx, func(tx *store.Tx) (err error) {
		next, err = h.load(tx, id, v)
		return err
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			delete(h.jobs, id)
		}
		return nil, unknown(id, err)
	}
	e.view, e.loaded = next, changes
	return next, nil
}

func (h *hub) load(tx *store.Tx, id string, before *view) (*view, error) {
	row, err := tx.Job(id)
	if err != nil {
		return nil, err
	}
	j, err := decodeJob(row)
	if err != nil {
		return nil, err
	}
	v := &view{job: j, row: row, older: map[int64]*edition{}}
	if before != nil && before.job.Generation == j.Generation {
		v.places = before.places
	}
	if j.Version == 0 {
		return v, nil
	}
	if before != nil && before.sched.Version == j.Version && before.row.CreatedAt.Equal(row.CreatedAt) {
		v.sched, v.shown, v.encoded, v.older = before.sched, before.shown, before.encoded, before.older
		return v, nil
	}
	if v.sched, err = tx.LatestSchedule(id); err != nil {
		return nil, fmt.Errorf("newest schedule of job %s: %w", id, err)
	}
	if v.shown, err = h.s.loadShown(tx, v.sched); err != nil {
		return nil, err
	}
	const keep = 16
	if before != nil && before.row.CreatedAt.Equal(row.CreatedAt) {
		for version, e := range before.older {
			if version > v.sched.Version-keep && !j.Ended() {
				v.older[version] = e
			}
		}
	}
	for _, g := range v.shown.Body.Groups {
		var ranks [][]byte
		for _, r := range g.Ranks {
			text, err := json.Marshal(r)
			if err != nil {
				return nil, err
			}
			_, tail, _ := bytes.Cut(text, []byte(`,`)) // {"rank":0,…
			ranks = append(ranks, tail)
		}
		v.encoded = append(v.encoded, ranks)
	}
	v.older[v.sched.Version] = &edition{v.shown.Body, v.encoded}
	return v, nil
}

// places returns where each rank of the job's generation is.
func (h *hub) places(tx *store.Tx, j *control.Job) ([]control.Place, error) {
	e := h.seen(j.ID)
	h.mu.Lock()
	v := e.view
	h.mu.Unlock()
	if v != nil && v.job.Generation == j.Generation && v.places != nil {
		return v.places, nil
	}
	ranks, err := tx.Ranks(j.ID, j.Generation, nil)
	if err != nil {
		return nil, err
	}
	places, err := placesOf(ranks, j.Spec.WorldSize)
	if err != nil || len(ranks) < j.Spec.WorldSize {
		return places, err
	}
	h.mu.Lock()
	if e.view != nil && e.view.job.Generation == j.Generation {
		next := *e.view
		next.places = places
		e.view = &next
	}
	h.mu.Unlock()
	return places, nil
}

func placesOf(ranks []store.Rank, world int) ([]control.Place, error) {
	places := make([]control.Place, world)
	for _, r := range ranks {
		var a api.Rank
		if err := json.Unmarshal(r.Doc, &a); err != nil {
			return nil, fmt.Errorf("reading a stored rank: %w", err)
		}
		if r.Rank < world {
			places[r.Rank] = control.Place{DP: a.DP, PP: a.PP, Lead: a.TP == 0 && a.CP == 0}
		}
	}
	return places, nil
}

// following returns the jobs whose frontier is hash, as far as this replica has looked at them.
func (h *hub) following(hash string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for id, e := range h.jobs {
		if e.view != nil && e.view.job.Frontier == hash {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// waiting returns a channel that is closed with the next news of a job. Take it before get.
func (h *hub) waiting(id string) <-chan struct{} {
	e := h.seen(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.waiters
}

// forget drops what is known of a deleted job and wakes who waits.
func (h *hub) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.jobs[id]; e != nil {
		close(e.waiters)
		e.waiters = make(chan struct{})
		delete(h.jobs, id)
	}
}

// silence returns for how long nothing was heard of a job.
func (h *hub) silence(id string) time.Duration {
	e := h.seen(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(e.moved)
}

// extraTime returns the time that profiling cost the jobs this replica has looked at, in s.
func (h *hub) extraTime() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := 0.0
	for _, e := range h.jobs {
		if e.view != nil {
			sum += e.view.job.Tried.ExtraS
		}
	}
	return sum
}
