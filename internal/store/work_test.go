package store

import (
	"context"
	"errors"
	"testing"
)

func TestWork(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		done := make(chan string, 9)
		update(t, s, func(x *Tx) error {
			return errors.Join(x.Enqueue("sum", "a", []byte("1")), x.Enqueue("sum", "a", []byte("2")), x.Enqueue("other", "a", []byte("3")))
		})
		stop := begin(t, s, workers{
			"sum":   func(_ context.Context, key string, p []byte) error { done <- "sum " + key + string(p); return nil },
			"other": func(_ context.Context, key string, p []byte) error { done <- "other " + key + string(p); return nil },
		})
		got := map[string]bool{receive(t, done, "work"): true, receive(t, done, "work"): true}
		if !got["sum a1"] || !got["other a3"] {
			t.Errorf("did %v", got)
		}
		update(t, s, func(x *Tx) error { return x.Enqueue("sum", "b", nil) })
		if d := receive(t, done, "work"); d != "sum b" {
			t.Errorf("did %s: work of one key was done twice", d)
		}
		stop()
		if err := s.Work(t.Context(), nil, 1); err == nil {
			t.Error("Work worked twice")
		}
	})
}

func TestStoppedWorkIsDoneLater(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		first := open(t, database)
		update(t, first, func(x *Tx) error { return x.Enqueue("sum", "a", nil) })
		started := make(chan struct{}, 9)
		stop := begin(t, first, workers{"sum": func(ctx context.Context, _ string, _ []byte) error {
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}})
		receive(t, started, "the first process to begin")
		stop()
		second := open(t, database)
		begin(t, second, workers{"sum": func(context.Context, string, []byte) error { started <- struct{}{}; return nil }})
		receive(t, started, "the second process to begin")
	})
}

func TestWorkOfAKilledProcessIsDoneByAnother(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		update(t, s, func(x *Tx) error { return x.Enqueue("sum", "a", nil) })
		startWorker(t, database)()
		done := make(chan struct{}, 9)
		begin(t, s, workers{"sum": func(context.Context, string, []byte) error { done <- struct{}{}; return nil }})
		receive(t, done, "the work that the killed process had begun")
	})
}
