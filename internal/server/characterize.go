package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/internal/store"
	"github.com/perseus-energy/perseus/parallel"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

const workCharacterize = "characterize"

// task is what a frontier is computed from: equal tasks have equal frontiers.
type task struct {
	Profile      string        `json:"profile"`
	BlockingW    float64       `json:"blocking_w"`
	Schedule     string        `json:"schedule,omitempty"`
	ScheduleCSV  string        `json:"schedule_csv,omitempty"`
	PP           int           `json:"pp"`
	Chunks       int           `json:"chunks"`
	Microbatches int           `json:"microbatches"`
	GPUs         int           `json:"gpus"`
	Caps         []control.Cap `json:"caps,omitempty"`
}

func taskOf(j *control.Job, e control.Characterize) task {
	return task{
		Profile: j.Profile, BlockingW: j.BlockingPowerW, Schedule: j.Spec.Schedule, ScheduleCSV: j.Spec.ScheduleCSV,
		PP: j.Spec.PP, Chunks: j.Spec.Chunks, Microbatches: j.Spec.Microbatches, GPUs: j.Spec.TP * j.Spec.CP,
		Caps: e.Caps,
	}
}

// done is a task's result: the frontier's hash and what it is in short, or why there is none.
type done struct {
	Hash     string       `json:"hash,omitempty"`
	Frontier api.Frontier `json:"frontier"`
	Error    string       `json:"error,omitempty"`
}

// order has the frontier of a job computed, or takes it from the store if an equal job had it before.
func (s *Server) order(tx *store.Tx, j *control.Job, e control.Characterize) error {
	if j.Profile == "" {
		return nil
	}
	payload, err := json.Marshal(taskOf(j, e))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(payload)
	inputs := hex.EncodeToString(sum[:])
	if e.Caps == nil {
		j.Inputs = inputs
	}
	text, err := tx.Ref("frontier", inputs)
	if err != nil {
		return err
	}
	if text != "" {
		s.metrics.frontierCache.WithLabelValues("hit").Inc()
		return s.frontierDone(tx, j, e, text)
	}
	s.metrics.frontierCache.WithLabelValues("miss").Inc()
	waits, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := tx.SetRef("waiting", inputs+"/"+j.ID, string(waits)); err != nil {
		return err
	}
	return tx.Enqueue(workCharacterize, inputs, payload)
}

func (s *Server) frontierDone(tx *store.Tx, j *control.Job, e control.Characterize, text string) error {
	var d done
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("reading a stored result: %w", err)
	}
	switch {
	case e.Caps != nil:
		j.CappedReady(e.Caps, d.Hash, d.Frontier.MinTimeS, d.Error)
	case d.Error != "":
		j.Fail("no frontier: " + d.Error)
	default:
		j.FrontierReady(d.Hash, d.Frontier)
	}
	return nil
}

// characterize computes the frontier of a task and tells the jobs that wait for it. Repeating it is harmless.
func (s *Server) characterize(ctx context.Context, inputs string, payload []byte) error {
	var t task
	if err := json.Unmarshal(payload, &t); err != nil {
		return fmt.Errorf("reading a characterizing task: %w", err)
	}
	var have string
	var csv []byte
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		if have, err = tx.Ref("frontier", inputs); err != nil || have != "" {
			return err
		}
		csv, err = tx.Blob(t.Profile)
		return err
	})
	if err != nil {
		return err
	}
	var d done
	var blob []byte
	if have == "" {
		began := time.Now()
		s.computed.Add(1)
		f, err := compute(ctx, t, csv)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			d.Error = err.Error()
		default:
			if blob, err = packed(f); err != nil {
				return err
			}
			d.Frontier = inShort(f)
		}
		s.metrics.characterized(time.Since(began))
	}
	var waiting map[string]string
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		if have == "" {
			if blob != nil {
				hash, err := tx.PutBlob(blob)
				if err != nil {
					return err
				}
				d.Hash, d.Frontier.Hash = hash, hash
				if err := tx.SetRef("frontier-blob", inputs, hash); err != nil {
					return err
				}
			}
			text, err := json.Marshal(d)
			if err != nil {
				return err
			}
			have = string(text)
			if err := tx.SetRef("frontier", inputs, have); err != nil {
				return err
			}
		}
		var err error
		waiting, err = tx.Refs("waiting", inputs+"/", 1<<16)
		return err
	})
	if err != nil {
		return err
	}
	for key, text := range waiting {
		var e control.Characterize
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return fmt.Errorf("reading who waits for a frontier: %w", err)
		}
		id := strings.Split(key, "/")[1]
		_, err := s.mutate(ctx, id, func(tx *store.Tx, j *control.Job) error {
			if err := tx.DeleteRef("waiting", key); err != nil {
				return err
			}
			if e.Caps == nil && j.Inputs != inputs {
				return nil
			}
			if err := loadParts(tx, j); err != nil {
				return err
			}
			return s.frontierDone(tx, j, e, have)
		})
		if err != nil && !isUnknown(err) {
			return err
		}
	}
	return nil
}

func isUnknown(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Code == "unknown-job"
}

func compute(ctx context.Context, t task, csv []byte) (*frontierfile.File, error) {
	p, err := profile.Read(bytes.NewReader(csv), "profile", profile.Options{})
	if err != nil {
		return nil, err
	}
	j, err := control.New("task", api.JobSpec{
		PP: t.PP, WorldSize: t.PP, Schedule: t.Schedule, ScheduleCSV: t.ScheduleCSV, Chunks: t.Chunks, Microbatches: t.Microbatches,
	}, control.Standard())
	if err != nil {
		return nil, err
	}
	order, err := j.Order()
	if err != nil {
		return nil, err
	}
	blocking, err := unit.ParsePower(strconv.FormatFloat(t.BlockingW, 'f', 6, 64))
	if err != nil {
		return nil, fmt.Errorf("blocking power: %w", err)
	}
	spec := jobs.Spec{Grid: jobs.GridSpec{
		Degrees: parallel.Degrees{TP: t.GPUs, CP: 1, EP: 1, ETP: t.GPUs, DP: 1, PP: t.PP}, World: t.PP * t.GPUs,
	}}
	for _, c := range t.Caps {
		spec.Caps = append(spec.Caps, frontierfile.Cap{Rank: c.PP * t.GPUs, MHz: int32(c.MHz)})
	}
	job, _, err := spec.Job(p, order, []unit.Power{blocking})
	if err != nil {
		return nil, err
	}
	opt := characterize.Options{}
	if order.Ops() > 1<<15 {
		opt.Points = 50
	}
	return characterize.Run(ctx, job, opt)
}

func packed(f *frontierfile.File) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := f.WriteTo(z); err != nil {
		return nil, fmt.Errorf("packing a frontier: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing a frontier: %w", err)
	}
	return b.Bytes(), nil
}

func inShort(f *frontierfile.File) api.Frontier {
	h := &f.Header
	return api.Frontier{
		Points: len(f.Points), MinTimeS: h.TMin.Seconds(), MaxTimeS: h.TMax.Seconds(), LeastEnergyTimeS: h.LeastEnergyTime.Seconds(),
		MaxClockTimeS: h.MaxClockTime.Seconds(), MaxClockEnergyJ: h.MaxClockEnergy.Joules(),
	}
}
