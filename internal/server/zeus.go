package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/store"
)

// zeusService is the server as package zeus asks for it.
type zeusService struct{ *Server }

// Rank returns a rank as it registered in the newest generation.
func (z zeusService) Rank(ctx context.Context, job string, rank int) (out api.Rank, err error) {
	v, err := z.hub.get(ctx, job)
	if err != nil {
		return out, err
	}
	err = z.store.View(ctx, func(tx *store.Tx) error {
		list, err := tx.Ranks(job, v.job.Generation, []int{rank})
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return &api.Error{Status: 404, Code: "rank", Detail: fmt.Sprintf("rank %d of job %s has not registered", rank, job)}
		}
		return json.Unmarshal(list[0].Doc, &out)
	})
	return out, err
}
