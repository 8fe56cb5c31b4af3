package zeus

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/perseus-energy/perseus/internal/api"
)

// The bounds of package api.
const (
	maxDegree    = 4096
	maxWorld     = 65536
	maxFrequency = 10000
)

// jobInfo is Zeus's JobInfo. Pointers tell what is missing from what is 0.
type jobInfo struct {
	JobID       string  `json:"job_id"`
	PPDegree    *int    `json:"pp_degree"`
	DPDegree    *int    `json:"dp_degree"`
	TPDegree    *int    `json:"tp_degree"`
	WorldSize   *int    `json:"world_size"`
	JobMetadata *string `json:"job_metadata"`
}

// rankInfo is Zeus's RankInfo.
type rankInfo struct {
	Rank                 *int   `json:"rank"`
	DPRank               *int   `json:"dp_rank"`
	PPRank               *int   `json:"pp_rank"`
	TPRank               *int   `json:"tp_rank"`
	AvailableFrequencies *[]int `json:"available_frequencies"`
}

// registerJob makes a job of its own for each request, however alike two are.
func (h *Handler) registerJob(w http.ResponseWriter, r *http.Request, _ string) error {
	var info jobInfo
	if err := readBody(r, maxBody, &info); err != nil {
		return err
	}
	spec, err := h.spec(&info)
	if err != nil {
		return err
	}
	id, err := h.newID(&spec)
	if err != nil {
		return err
	}
	job, err := h.Service.PutJob(r.Context(), id, spec)
	if err != nil {
		return err
	}
	h.Log.Info("zeus: job registered", "job", job.ID, "name", spec.Name, "world_size", spec.WorldSize,
		"schedule", spec.Schedule, "microbatches", spec.Microbatches, "model_key", spec.ModelKey)
	writeJSON(w, http.StatusOK, job.ID)
	return nil
}

// spec returns the job that a client registers, or what is wrong with it.
func (h *Handler) spec(info *jobInfo) (api.JobSpec, error) {
	var bad invalid
	if info.JobID != "" {
		bad.add("job_id", "must be absent or empty: the server makes the id")
	}
	spec := api.JobSpec{
		PP:        bad.integer("pp_degree", info.PPDegree, 1, maxDegree),
		DP:        bad.integer("dp_degree", info.DPDegree, 1, maxWorld),
		TP:        bad.integer("tp_degree", info.TPDegree, 1, maxDegree),
		CP:        1,
		EP:        1,
		WorldSize: bad.integer("world_size", info.WorldSize, 1, maxWorld),
		Metadata:  map[string]string{"client": "zeus"},
	}
	if product := int64(spec.PP) * int64(spec.DP) * int64(spec.TP); len(bad.details) == 0 && product != int64(spec.WorldSize) {
		bad.add("world_size", "%d: pp_degree · dp_degree · tp_degree is %d", spec.WorldSize, product)
	}
	var said settings
	if info.JobMetadata != nil {
		var err error
		if said, err = parseMetadata(*info.JobMetadata); err != nil {
			bad.add("job_metadata", "%v", err)
		}
		spec.Metadata["job_metadata"] = *info.JobMetadata
	}
	if err := bad.orNil(); err != nil {
		return spec, err
	}
	spec.Name, spec.ModelKey, spec.GPU, spec.BlockingPowerW = said.Name, said.ModelKey, said.GPU, said.BlockingPowerW
	spec.Schedule, spec.Microbatches, spec.Chunks = said.Schedule, said.Microbatches, said.Chunks
	if spec.Schedule == "" {
		spec.Schedule = h.Schedule
	}
	if spec.Microbatches == 0 {
		spec.Microbatches = h.Microbatches
	}
	order, err := h.orders.of(&spec)
	if err != nil {
		bad.add("job_metadata", "%v", err)
		return spec, bad.orNil()
	}
	spec.Schedule, spec.Chunks = order.Schedule, order.Size.Chunks
	return spec, nil
}

// newID returns an id that no other job has: Zeus's own have a resolution of one second.
func (h *Handler) newID(spec *api.JobSpec) (string, error) {
	var random [8]byte
	if _, err := io.ReadFull(h.Random, random[:]); err != nil {
		return "", fmt.Errorf("making a job id: %w", err)
	}
	return fmt.Sprintf("zeus-%s-dp%d-pp%d-tp%d-%s", h.Now().UTC().Format("20060102-150405"),
		spec.DP, spec.PP, spec.TP, hex.EncodeToString(random[:])), nil
}

// registerRank registers one rank in the newest generation of its job.
func (h *Handler) registerRank(w http.ResponseWriter, r *http.Request, job string) error {
	var info rankInfo
	if err := readBody(r, maxBody, &info); err != nil {
		return err
	}
	known, err := h.Service.Job(r.Context(), job)
	if err != nil {
		return err
	}
	rank, err := newRank(&info, &known.Spec)
	if err != nil {
		return err
	}
	if _, err := h.Service.RegisterRanks(r.Context(), job, api.RankRegistration{Ranks: []api.Rank{rank}}); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, nil)
	return nil
}

// newRank returns the rank that a client registers, or what is wrong with it.
func newRank(info *rankInfo, spec *api.JobSpec) (api.Rank, error) {
	var bad invalid
	rank := api.Rank{
		Rank:     bad.integer("rank", info.Rank, 0, spec.WorldSize-1),
		DP:       bad.integer("dp_rank", info.DPRank, 0, max(spec.DP, 1)-1),
		PP:       bad.integer("pp_rank", info.PPRank, 0, spec.PP-1),
		GPUModel: spec.GPU,
	}
	// A job that was not registered by Zeus's client may have context parallelism, which the client counts as tensor
	// parallelism.
	tp := max(spec.TP, 1)
	both := bad.integer("tp_rank", info.TPRank, 0, tp*max(spec.CP, 1)-1)
	rank.TP, rank.CP = both%tp, both/tp
	switch {
	case info.AvailableFrequencies == nil:
		bad.missing("available_frequencies")
	case len(*info.AvailableFrequencies) > 1024:
		bad.add("available_frequencies", "%d of them: at most 1024 are taken", len(*info.AvailableFrequencies))
	default:
		rank.FrequencyMHz = *info.AvailableFrequencies
		for _, f := range rank.FrequencyMHz {
			if f < 1 || f > maxFrequency {
				bad.add("available_frequencies", "%d: must be MHz, from 1 to %d", f, maxFrequency)
				break
			}
		}
	}
	return rank, bad.orNil()
}
