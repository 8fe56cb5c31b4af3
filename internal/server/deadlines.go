package server

import (
	"context"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

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
