package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Open(ctx, filepath.Join(t.TempDir(), "p.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	news, stop := s.Subscribe()
	defer stop()
	if err := s.Update(ctx, func(x *Tx) error {
		if err := x.InsertJob(Job{ID: "a", State: "new", CreatedAt: time.Now()}); err != nil {
			return err
		}
		x.Publish("a")
		return errors.Join(x.AddReport("a", 1, []byte("x")), x.AddEvent("a", time.Now(), "k", "t"), x.Enqueue("hi", "a", []byte("p")), x.Enqueue("hi", "a", nil))
	}); err != nil {
		t.Fatal(err)
	}
	if id := <-news; id != "a" {
		t.Fatal(id)
	}
	if err := s.Update(ctx, func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) }); !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	got := make(chan string, 2)
	done := make(chan error)
	go func() {
		done <- s.Work(ctx, map[string]func(context.Context, string, []byte) error{"hi": func(_ context.Context, key string, p []byte) error {
			got <- key + string(p)
			return nil
		}}, 2)
	}()
	if g := <-got; g != "ap" {
		t.Fatal(g)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.View(context.Background(), func(x *Tx) error {
		e, err := x.Events("a", 0, 0)
		if len(e) != 1 {
			t.Error(e)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
