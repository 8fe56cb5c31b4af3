package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/round"
)

// Bounds of what is kept ready.
const (
	plannersMax = 8
	plansMax    = 128
	shownMax    = 128
)

// plans keeps frontiers loaded and plans made, the newest used. What it forgets it can make again.
type plans struct {
	blob     func(ctx context.Context, hash string) ([]byte, error)
	made     *recent[*plan.Plan]
	refined  *recent[bool]
	planners *recent[*planner]
}

type planner struct {
	once sync.Once
	p    *plan.Planner
	err  error
}

func newPlans(blob func(context.Context, string) ([]byte, error)) *plans {
	return &plans{blob: blob, made: newRecent[*plan.Plan](plansMax), refined: newRecent[bool](plansMax), planners: newRecent[*planner](plannersMax)}
}

// get returns a plan that is there, or nil.
func (p *plans) get(w control.Want) *plan.Plan {
	made, _ := p.made.get(w.String())
	return made
}

// make makes a plan by the fast pass. The first of a frontier loads it.
func (p *plans) make(ctx context.Context, w control.Want) error {
	return p.with(ctx, w, round.Fast)
}

// better makes a plan with more work, and says whether it uses less energy than the one that was there.
func (p *plans) better(ctx context.Context, w control.Want) (bool, error) {
	if _, refined := p.refined.get(w.String()); refined {
		return false, nil
	}
	before := p.get(w)
	if err := p.with(ctx, w, round.Normal); err != nil {
		return false, err
	}
	p.refined.put(w.String(), true)
	after := p.get(w)
	return before != nil && after != nil && float64(after.WaitEnergy) < float64(before.WaitEnergy)*(1-1e-5), nil
}

func (p *plans) with(ctx context.Context, w control.Want, effort round.Effort) error {
	pl := p.planners.getOrPut(w.Frontier, func() *planner { return new(planner) })
	pl.once.Do(func() { pl.p, pl.err = p.load(context.WithoutCancel(ctx), w.Frontier) }) // for all who wait for it
	if pl.err != nil {
		p.planners.drop(w.Frontier)
		return pl.err
	}
	r := w.Request
	r.Effort = effort
	planner := pl.p
	if effort != round.Fast {
		planner = planner.Alone()
	}
	made, err := planner.Make(r)
	var wish *plan.Error
	if errors.As(err, &wish) && r.Goal != plan.Fastest {
		// A wish that no plan can answer: the fastest is the nearest.
		made, err = planner.Make(plan.Request{Goal: plan.Fastest, Effort: effort})
		if err == nil {
			made.Feasible, made.Note = false, wish.Reason
		}
	}
	if err != nil {
		return fmt.Errorf("planning for %s: %w", w.Request.Goal, err)
	}
	p.made.put(w.String(), made)
	return nil
}

func (p *plans) load(ctx context.Context, hash string) (*plan.Planner, error) {
	text, err := p.blob(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("loading frontier %.12s: %w", hash, err)
	}
	f, err := frontierfile.Read(bytes.NewReader(text), "frontier")
	if err != nil {
		return nil, fmt.Errorf("loading frontier %.12s: %w", hash, err)
	}
	return plan.New(f)
}

func (s *Server) frontierBlob(ctx context.Context, hash string) (text []byte, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		text, err = tx.Blob(hash)
		return err
	})
	return text, err
}

// likely has plans made with more work, ahead of time: the one in force, and those for stragglers to come.
func (s *Server) likely(j *control.Job) {
	for _, w := range j.Likely() {
		select {
		case s.refine <- w:
		default:
			return
		}
	}
}

// refineWants makes the plans that likely asked for, one at a time, and tells the jobs that run by a worse one.
func (s *Server) refineWants(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case w := <-s.refine:
			var better bool
			var err error
			finished := make(chan struct{})
			s.planning.Go(func() { // planning cannot be interrupted: Close waits for it
				defer close(finished)
				background()
				better, err = s.plans.better(ctx, w)
			})
			select {
			case <-ctx.Done():
				return nil
			case <-finished:
			}
			if err != nil && ctx.Err() == nil {
				s.log.Warn("refining a plan failed", "error", err)
			}
			if better {
				for _, id := range s.hub.following(w.Frontier) {
					_, err := s.mutate(ctx, id, func(_ *store.Tx, j *control.Job) error {
						if j.Wanted().String() == w.String() {
							j.Better()
						}
						return nil
					})
					if err != nil && ctx.Err() == nil && !isUnknown(err) {
						s.log.Warn("taking a refined plan failed", "job", id, "error", err)
					}
				}
			}
		}
	}
}
