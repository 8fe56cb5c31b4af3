package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

func TestJobs(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		a := Job{ID: "a", State: "new", Doc: []byte("{}"), CreatedAt: now, UpdatedAt: now.Add(time.Second)}
		update(t, s, func(x *Tx) error {
			return errors.Join(x.InsertJob(a), x.InsertJob(Job{ID: "B", State: "new"}), x.InsertJob(Job{ID: "c", State: "done"}))
		})
		if err := s.Update(t.Context(), func(x *Tx) error { return x.InsertJob(a) }); !errors.Is(err, ErrExists) {
			t.Errorf("second insert: %v", err)
		}
		a.State, a.Doc = "steering", []byte("{1}")
		update(t, s, func(x *Tx) error {
			if _, err := x.LockJob("a"); err != nil {
				return err
			}
			return x.UpdateJob(a)
		})
		view(t, s, func(x *Tx) error {
			got, err := x.Job("a")
			if !reflect.DeepEqual(got, a) {
				t.Errorf("job %+v, want %+v", got, a)
			}
			all, err2 := x.Jobs("", "", 0)
			if got := ids(all); got != "B a c" {
				t.Errorf("jobs %s: want bytewise order", got)
			}
			some, err3 := x.Jobs("", "B", 1)
			if ids(some) != "a" {
				t.Errorf("after B: %s", ids(some))
			}
			done, err4 := x.Jobs("done", "", 9)
			if ids(done) != "c" {
				t.Errorf("done: %s", ids(done))
			}
			n, err5 := x.CountJobs()
			if !reflect.DeepEqual(n, map[string]int{"new": 1, "done": 1, "steering": 1}) {
				t.Error(n)
			}
			return errors.Join(err, err2, err3, err4, err5)
		})
		for what, err := range map[string]error{
			"Job":       s.View(t.Context(), func(x *Tx) error { _, err := x.Job("x"); return err }),
			"LockJob":   s.Update(t.Context(), func(x *Tx) error { _, err := x.LockJob("x"); return err }),
			"UpdateJob": s.Update(t.Context(), func(x *Tx) error { return x.UpdateJob(Job{ID: "x"}) }),
			"DeleteJob": s.Update(t.Context(), func(x *Tx) error { return x.DeleteJob("x") }),
			"SetPart":   s.Update(t.Context(), func(x *Tx) error { return x.SetPart("x", "p", []byte{}) }),
			"PutRanks":  s.Update(t.Context(), func(x *Tx) error { return x.PutRanks("x", 1, []Rank{{}}) }),
			"AddReport": s.Update(t.Context(), func(x *Tx) error { return x.AddReport("x", 1, nil) }),
			"AddSched":  s.Update(t.Context(), func(x *Tx) error { return x.AddSchedule(Schedule{Job: "x"}) }),
			"AddEvent":  s.Update(t.Context(), func(x *Tx) error { return x.AddEvent("x", now, "", "") }),
			"Latest":    s.View(t.Context(), func(x *Tx) error { _, err := x.LatestSchedule("x"); return err }),
			"Token":     s.View(t.Context(), func(x *Tx) error { _, err := x.TokenByHash([]byte("x")); return err }),
			"DelToken":  s.Update(t.Context(), func(x *Tx) error { return x.DeleteToken("x") }),
			"Blob":      s.View(t.Context(), func(x *Tx) error { _, err := x.Blob("x"); return err }),
		} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s of what is not there: %v", what, err)
			}
		}
	})
}

func ids(jobs []Job) string {
	var s []string
	for _, j := range jobs {
		s = append(s, j.ID)
	}
	return strings.Join(s, " ")
}

func TestWhatAJobHas(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		update(t, s, func(x *Tx) error {
			return errors.Join(
				x.InsertJob(Job{ID: "a"}), x.InsertJob(Job{ID: "b"}),
				x.SetPart("a", "spec", []byte("1")), x.SetPart("a", "spec", []byte("2")), x.SetPart("a", "gone", []byte("3")), x.SetPart("a", "gone", nil),
				x.SetPart("a", "empty", []byte{}),
				x.PutRanks("a", 1, []Rank{{0, "s", nil}}), x.PutRanks("a", 2, []Rank{{5, "s", []byte("x")}, {1, "s", nil}, {2, "s", nil}, {9, "s", nil}}),
				x.PutRanks("a", 2, []Rank{{1, "t", []byte("y")}}), x.DeleteRanks("a", 2),
				x.AddReport("a", 2, []byte("first")), x.AddReport("a", 2, []byte("second")), x.AddReport("a", 3, nil), x.AddReport("b", 1, []byte("other")),
				x.AddSchedule(Schedule{"a", 1, 2, 100, "why", "hash", now}), x.AddSchedule(Schedule{Job: "a", Version: 3}), x.AddSchedule(Schedule{Job: "a", Version: 2}),
				x.AddEvent("a", now, "k", "one\x00\xff"), x.AddEvent("b", now, "k", "b"), x.AddEvent("a", now, "k", "two"),
			)
		})
		if err := s.Update(t.Context(), func(x *Tx) error { return x.AddSchedule(Schedule{Job: "a", Version: 3}) }); !errors.Is(err, ErrExists) {
			t.Errorf("schedule twice: %v", err)
		}
		view(t, s, func(x *Tx) error {
			check(t, "part", "2")(text(x.Part("a", "spec")))
			empty, err := x.Part("a", "empty")
			if empty == nil || err != nil {
				t.Errorf("empty part: %v, %v", empty, err)
			}
			if gone, err := x.Part("a", "gone"); gone != nil || err != nil {
				t.Errorf("deleted part: %v, %v", gone, err)
			}
			check(t, "all ranks", "[{1 t [121]} {2 s []} {5 s [120]} {9 s []}]")(text(x.Ranks("a", 2, nil)))
			check(t, "some ranks", "[{1 t [121]} {2 s []} {9 s []}]")(text(x.Ranks("a", 2, []int{9, 2, 1, 2, 7})))
			check(t, "no ranks asked", "[]")(text(x.Ranks("a", 2, []int{})))
			check(t, "rank count", "4")(text(x.CountRanks("a", 2)))
			check(t, "old ranks", "0")(text(x.CountRanks("a", 1)))
			check(t, "with reports", "[a b]")(text(x.JobsWithReports(5)))
			check(t, "schedules", "2")(func() (string, error) { l, err := x.Schedules("a", 1, 9); return fmt.Sprint(len(l)), err }())
			first, err := x.Schedules("a", 0, 1)
			if err != nil || len(first) != 1 || first[0] != (Schedule{"a", 1, 2, 100, "why", "hash", now}) {
				t.Errorf("schedule %+v, %v", first, err)
			}
			latest, err := x.LatestSchedule("a")
			if latest.Version != 3 || err != nil {
				t.Errorf("latest %+v, %v", latest, err)
			}
			events, err := x.Events("a", 0, 0)
			if err != nil || len(events) != 2 || events[0] != (Event{1, "a", now, "k", "one\ufffd\ufffd"}) || events[1].ID != 2 {
				t.Errorf("events %+v, %v", events, err)
			}
			return nil
		})
		update(t, s, func(x *Tx) error {
			seen, err2 := x.Reports("a", 2)
			r, err := x.TakeReports("a", 2)
			if !reflect.DeepEqual(r, seen) || err2 != nil {
				t.Errorf("reports %+v, taken %+v, %v", seen, r, err2)
			}
			if len(r) != 2 || string(r[0].Body) != "first" || string(r[1].Body) != "second" || r[0].Generation != 2 {
				t.Errorf("reports %+v", r)
			}
			return errors.Join(err, x.DeleteSchedules("a", 3))
		})
		update(t, s, func(x *Tx) error {
			r, err := x.TakeReports("a", 0)
			if len(r) != 1 || r[0].Generation != 3 {
				t.Errorf("reports %+v", r)
			}
			return errors.Join(err, x.DeleteJob("a"), x.InsertJob(Job{ID: "a"}))
		})
		view(t, s, func(x *Tx) error {
			check(t, "parts", "[]")(text(x.Part("a", "spec")))
			check(t, "ranks", "[]")(text(x.Ranks("a", 2, nil)))
			check(t, "with reports", "[b]")(text(x.JobsWithReports(5)))
			check(t, "schedules", "[]")(text(x.Schedules("a", 0, 9)))
			check(t, "events", "[]")(text(x.Events("a", 0, 9)))
			return nil
		})
	})
}

func text[T any](v T, err error) (string, error) {
	if b, ok := any(v).([]byte); ok && len(b) > 0 {
		return string(b), err
	}
	return fmt.Sprint(v), err
}

func check(t *testing.T, what, want string) func(string, error) {
	return func(got string, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", what, got, err, want)
		}
	}
}

func TestBlobsRefsAndTokens(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		clock := atomic.Int64{}
		s.now = func() time.Time { return now.Add(time.Duration(clock.Load())) }
		var kept, scheduled, loose string
		update(t, s, func(x *Tx) (err error) {
			kept, err = x.PutBlob([]byte("kept"))
			scheduled, _ = x.PutBlob([]byte("scheduled"))
			loose, _ = x.PutBlob(nil)
			again, _ := x.PutBlob([]byte("kept"))
			if again != kept {
				t.Error("the same data have two hashes")
			}
			return errors.Join(
				err, x.InsertJob(Job{ID: "a"}), x.AddSchedule(Schedule{Job: "a", Version: 1, Body: scheduled}),
				x.SetRef("k", "p/a", "old"), x.SetRef("k", "p/a", kept), x.SetRef("k", "p/b", "v"), x.SetRef("k", "q", "v"), x.SetRef("l", "p/c", "v"), x.SetRef("k", "p/z", "v"),
				x.DeleteRef("k", "p/z"), x.DeleteRef("k", "never"),
				x.PutToken(Token{"1", "n", "rank", []byte("h"), now, time.Time{}}),
			)
		})
		for what, k := range map[string]Token{"name": {"2", "n", "", []byte("i"), now, now}, "hash": {"2", "m", "", []byte("h"), now, now}} {
			if err := s.Update(t.Context(), func(x *Tx) error { return x.PutToken(k) }); !errors.Is(err, ErrExists) {
				t.Errorf("token of the same %s: %v", what, err)
			}
		}
		view(t, s, func(x *Tx) error {
			check(t, "ref", kept)(x.Ref("k", "p/a"))
			check(t, "no ref", "")(x.Ref("k", "x"))
			check(t, "refs", fmt.Sprint(map[string]string{"p/a": kept, "p/b": "v"}))(text(x.Refs("k", "p/", 9)))
			check(t, "refs", fmt.Sprint(map[string]string{"p/a": kept}))(text(x.Refs("k", "", 1)))
			got, err := x.TokenByHash([]byte("h"))
			if !reflect.DeepEqual(got, Token{"1", "n", "rank", []byte("h"), now, time.Time{}}) || err != nil {
				t.Errorf("token %+v, %v", got, err)
			}
			all, err := x.Tokens()
			if len(all) != 1 || err != nil {
				t.Errorf("tokens %v, %v", all, err)
			}
			return nil
		})
		sweep := func(want string) {
			t.Helper()
			if err := s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			there := ""
			view(t, s, func(x *Tx) error {
				for _, h := range []string{kept, scheduled, loose} {
					if _, err := x.Blob(h); err == nil {
						there += "+"
					} else if errors.Is(err, ErrNotFound) {
						there += "-"
					} else {
						t.Error(err)
					}
				}
				return nil
			})
			if there != want {
				t.Errorf("after the sweep %s are there, want %s", there, want)
			}
		}
		sweep("+++")
		clock.Store(int64(23 * time.Hour))
		update(t, s, func(x *Tx) error { _, err := x.PutBlob(nil); return err }) // makes it young
		clock.Store(int64(25 * time.Hour))
		sweep("+++")
		clock.Store(int64(48 * time.Hour))
		sweep("++-")
		update(t, s, func(x *Tx) error { return errors.Join(x.DeleteToken("n"), x.DeleteRef("k", "p/a"), x.DeleteJob("a")) })
		sweep("---")
		update(t, s, func(x *Tx) error {
			h, err := x.PutBlob([]byte("x"))
			_, err2 := x.exec("", `UPDATE blobs SET data = $1 WHERE hash = $2`, []byte("y"), h)
			if _, err := x.Blob(h); err == nil || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("a changed blob: %v", err)
			}
			return errors.Join(err, err2)
		})
	})
}

func TestOnlyTheNewestEventsAreKept(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		update(t, s, func(x *Tx) error {
			_, err := x.exec("", `INSERT INTO jobs (id, state, doc, events, created_at, updated_at) VALUES ('a', '', '', 10001, 0, 0)`)
			_, err2 := x.exec("", `INSERT INTO events (job, id, at, kind, text) VALUES ('a', 1, 0, '', ''), ('a', 2, 0, '', ''), ('a', 3, 0, '', '')`)
			return errors.Join(err, err2, x.AddEvent("a", now, "k", "t"))
		})
		view(t, s, func(x *Tx) error {
			events, err := x.Events("a", 0, 0)
			if len(events) != 2 || events[0].ID != 3 || events[1].ID != 10002 {
				t.Errorf("events %+v", events)
			}
			return err
		})
	})
}

func TestErrorsAndPanicsUndo(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		if err := s.Update(t.Context(), func(x *Tx) error {
			return errors.Join(x.InsertJob(Job{ID: "a"}), x.Enqueue("sum", "a", nil), errTest)
		}); !errors.Is(err, errTest) {
			t.Errorf("error of fn: %v", err)
		}
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = s.Update(t.Context(), func(x *Tx) error {
				if err := x.InsertJob(Job{ID: "b"}); err != nil {
					return err
				}
				panic("boom")
			})
		}()
		view(t, s, func(x *Tx) error {
			all, err := x.Jobs("", "", 0)
			if len(all) > 0 {
				t.Errorf("jobs %s are there", ids(all))
			}
			var n int
			err2 := x.one("", []any{&n}, `SELECT count(*) FROM river_job`)
			if n != 0 {
				t.Error("work is queued")
			}
			return errors.Join(err, err2)
		})
		if err := s.View(t.Context(), func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) }); err == nil {
			t.Error("View wrote")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Update(ended, func(x *Tx) error { return x.InsertJob(Job{ID: "late"}) }); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context: %v", err)
		}
	})
}

func TestManyWritersAtOnce(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		var commits, calls atomic.Int64
		s, err := Open(t.Context(), database, Options{Observe: func(n int, _ float64) { commits.Add(1); calls.Add(int64(n)) }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		update(t, s, func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) })
		const n = 1000
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				err := s.Update(context.Background(), func(x *Tx) error {
					if err := x.AddReport("a", i, nil); err != nil || i%10 == 0 {
						return errors.Join(err, errTest)
					}
					return nil
				})
				if errors.Is(err, errTest) != (i%10 == 0) {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		update(t, s, func(x *Tx) error {
			r, err := x.TakeReports("a", 0)
			if len(r) != n*9/10 {
				t.Errorf("%d reports, want %d", len(r), n*9/10)
			}
			for _, r := range r {
				if r.Generation%10 == 0 {
					t.Errorf("report %d was undone, and is there", r.Generation)
				}
			}
			return err
		})
		t.Logf("%d calls in %d commits", calls.Load(), commits.Load())
	})
}

func TestPublishTellsAfterTheCommit(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		news, stop := s.Subscribe()
		defer stop()
		_ = s.Update(t.Context(), func(x *Tx) error { x.Publish("undone"); return errTest })
		release, entered := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- s.Update(context.Background(), func(x *Tx) error {
				x.Publish("a")
				close(entered)
				<-release
				return nil
			})
		}()
		<-entered
		select {
		case id := <-news:
			t.Errorf("told of %q before the commit", id)
		default:
		}
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if id := receive(t, news, "news"); id != "a" {
			t.Errorf("told of %q", id)
		}
		for range 3 {
			update(t, s, func(x *Tx) error { x.Publish("b"); x.Publish("b"); return nil })
		}
		update(t, s, func(x *Tx) error { x.Publish("c"); return nil })
		seen := 0
		for id := receive(t, news, "news"); id != "c"; id = receive(t, news, "news") {
			seen++
		}
		if seen < 1 || seen > 2 { // one may have been on its way
			t.Errorf("told %d times of b", seen)
		}
	})
}

// TestCommitted: what is to follow a commit follows it once, and nothing follows what was undone.
func TestCommitted(t *testing.T) {
	each(t, func(t *testing.T, database string) {
		s := open(t, database)
		done := 0
		update(t, s, func(x *Tx) error {
			x.Committed(func() {
				view(t, s, func(x *Tx) error { _, err := x.Job("a"); return err })
				done++
			})
			return x.InsertJob(Job{ID: "a"})
		})
		wrong := errors.New("wrong")
		err := s.Update(t.Context(), func(x *Tx) error {
			x.Committed(func() { done += 10 })
			return wrong
		})
		if done != 1 || !errors.Is(err, wrong) {
			t.Errorf("followed %d, %v", done, err)
		}
	})
}
