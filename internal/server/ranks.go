package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

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
