package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/profile"
)

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
