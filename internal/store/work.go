package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// attempts is how often work is tried before it is given up; between them lie about 1, 16, 81 and 256 s.
const attempts = 5

// quiet is River's logger where its work is our caller's.
var quiet = slog.New(slog.DiscardHandler)

// unfinished are the states of work that may still be done.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
}

// workArgs is what River keeps of a piece of work.
type workArgs struct {
	KindName string `json:"kind"    river:"unique"`
	Key      string `json:"key"     river:"unique"`
	Payload  []byte `json:"payload"`
}

// Kind is the same for all of them, so one worker takes them all and those of an unknown kind fail with an error of ours.
func (workArgs) Kind() string { return "perseus" }

// Enqueue queues work of a kind once this transaction is committed. While work of the same kind and key waits or runs, it does nothing.
func (t *Tx) Enqueue(kind, key string, payload []byte) error {
	_, err := t.s.queue.InsertTx(t.ctx, t.tx, workArgs{KindName: kind, Key: key, Payload: payload}, &river.InsertOpts{
		MaxAttempts: attempts, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished},
	})
	if err != nil {
		return t.fail(fmt.Sprintf("queueing %s of %q", kind, key), err)
	}
	return nil
}

// Work does the queued work, at most concurrency pieces at a time, until ctx ends; then it ends the contexts of those that run, waits
// for them, and returns nil. What was stopped so goes back into the queue, as does what ran in a process that died, so work must be
// idempotent. What fails is tried again, five times in all. It may be called once in the life of a Store.
func (s *Store) Work(ctx context.Context, workers map[string]func(ctx context.Context, key string, payload []byte) error, concurrency int) error {
	if s.worked.Swap(true) {
		return errors.New("Work was called before; a Store works once")
	}
	bundle := river.NewWorkers()
	if err := river.AddWorkerSafely(bundle, &worker{s: s, stop: ctx, by: workers}); err != nil {
		return fmt.Errorf("setting up the workers: %w", err)
	}
	return s.engine.work(ctx, &river.Config{
		Logger: slog.New(riverLog{s.log.Handler()}), Workers: bundle,
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: max(1, concurrency)}},
		JobTimeout: -1, MaxAttempts: attempts, RescueStuckJobsAfter: 1000 * time.Hour, // the engines rescue by knowing who is alive
	})
}

// runRiver runs a client until ctx ends and its work has ended. While the database is away it tries to start one again.
func (s *Store) runRiver(ctx context.Context, driver riverdriver.Driver[*sql.Tx], cfg *river.Config) error {
	for ctx.Err() == nil {
		client, err := river.NewClient(driver, cfg)
		if err != nil {
			return fmt.Errorf("setting up the queue: %w", err)
		}
		if err := client.Start(ctx); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("cannot start the work of the queue; trying again", "error", err)
			}
			pause(ctx, reconnect)
			continue
		}
		<-client.Stopped()
	}
	return nil
}

type worker struct {
	river.WorkerDefaults[workArgs]
	s    *Store
	stop context.Context
	by   map[string]func(ctx context.Context, key string, payload []byte) error
}

// Work runs one piece. River recovers from its panics.
func (w *worker) Work(ctx context.Context, job *river.Job[workArgs]) error {
	do := w.by[job.Args.KindName]
	if do == nil {
		return fmt.Errorf("no worker for work of kind %q", job.Args.KindName)
	}
	err := do(ctx, job.Args.Key, job.Args.Payload)
	if err != nil && w.stop.Err() != nil {
		return river.JobSnooze(0) // back into the queue, not counted as an attempt
	}
	return err
}

// riverLog passes on River's warnings and errors.
type riverLog struct{ slog.Handler }

// Enabled is false below warnings.
func (h riverLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// WithAttrs keeps the threshold.
func (h riverLog) WithAttrs(a []slog.Attr) slog.Handler { return riverLog{h.Handler.WithAttrs(a)} }

// WithGroup keeps the threshold.
func (h riverLog) WithGroup(name string) slog.Handler { return riverLog{h.Handler.WithGroup(name)} }
