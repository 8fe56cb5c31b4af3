package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/store/pgtest"
)

func TestOpenTellsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("remember the milk, and more than sixteen bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, database, want string }{
		{"nothing", "", "name a file"},
		{"directory", dir, "is not a file"},
		{"no directory", filepath.Join(dir, "no", "p.db"), "make it first"},
		{"another file", notes, "notes.txt\" is not a SQLite database; name another file"},
		{"bad URL", "postgres://u:secret@host:port/db", "URL is not one of PostgreSQL"},
		{"bad escape", "postgres://u:sec%ret@host/db", "URL is not one of PostgreSQL"},
		{"nobody there", "postgres://u:secret@127.0.0.1:1/db", "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.database, Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec%ret") {
				t.Errorf("error %q, want %q and no password", err, c.want)
			}
			if (c.name == "nobody there") != errors.Is(err, ErrUnavailable) {
				t.Errorf("%v: whether to try again is told wrongly", err)
			}
		})
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	for what, query := range map[string]string{
		"its schema":         `INSERT INTO perseus_schema (version_id, is_applied) VALUES (99, $1)`,
		"its queue's schema": `INSERT INTO river_migration (line, version) SELECT 'main', 99 WHERE $1`,
	} {
		each(t, func(t *testing.T, database string) {
			s, err := Open(t.Context(), database, Options{})
			if err != nil {
				t.Fatal(err)
			}
			update(t, s, func(x *Tx) error { _, err := x.exec("", query, true); return err })
			s.Close()
			s, err = Open(t.Context(), database, Options{})
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), what+" has version 99") || !strings.Contains(err.Error(), "a newer perseus wrote it") || errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
}

func TestFileIsForItsOwnerAndSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	update(t, s, func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) })
	for _, pragma := range []struct{ name, want string }{{"journal_mode", "wal"}, {"synchronous", "2"}, {"foreign_keys", "1"}, {"busy_timeout", "10000"}} {
		var got string
		update(t, s, func(x *Tx) error { return x.one("", []any{&got}, "PRAGMA "+pragma.name) })
		if got != pragma.want {
			t.Errorf("%s is %s, want %s", pragma.name, got, pragma.want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(*Tx) error { return nil }); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Update after Close: %v", err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Ready after Close: %v", err)
	}
	view(t, open(t, path), func(x *Tx) error { _, err := x.Job("a"); return err })
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < len(whole); i++ {
		whole[i] = 0xa5
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(t.Context(), path, Options{}); err == nil {
		s.Close()
		t.Fatal("opened")
	}
	if !strings.Contains(err.Error(), "damaged; restore it from a backup") || !strings.Contains(err.Error(), "p.db") {
		t.Error(err)
	}
}

func TestFullDiskStoresNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "p.db"))
	update(t, s, func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) })
	var pages int
	update(t, s, func(x *Tx) error {
		err := x.one("", []any{&pages}, `PRAGMA page_count`)
		var limit int
		return errors.Join(err, x.one("", []any{&limit}, fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)))
	})
	big := make([]byte, 1<<20)
	err := s.Update(t.Context(), func(x *Tx) error {
		return errors.Join(x.SetPart("a", "p", []byte("small")), x.SetPart("a", "big", big))
	})
	if !errors.Is(err, ErrFull) || !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no space is left") || !strings.Contains(err.Error(), "p.db") {
		t.Errorf("on a full disk: %v", err)
	}
	view(t, s, func(x *Tx) error {
		b, err := x.Part("a", "p")
		if b != nil {
			t.Error("a part is there")
		}
		return err
	})
	update(t, s, func(x *Tx) error {
		var limit int
		return x.one("", []any{&limit}, `PRAGMA max_page_count = 1000000`)
	})
	update(t, s, func(x *Tx) error { return x.SetPart("a", "big", big) })
}

// Whatever fails in the transaction that calls share, each of them is told.
func TestFailedBatchFailsAllOfIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "p.db"))
	release, entered := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.Update(context.Background(), func(*Tx) error { close(entered); <-release; return nil })
	}()
	<-entered
	var together []*request
	for i := range 3 {
		r := &request{done: make(chan struct{}), fn: func(x *Tx) error {
			if i == 1 { // what SQLite itself does when the disk is full at a bad moment
				_, err := x.tx.Exec("ROLLBACK")
				return errors.Join(err, errTest)
			}
			return x.InsertJob(Job{ID: fmt.Sprint(i)})
		}}
		together = append(together, r)
		s.engine.(*sqliteEngine).queue <- r
	}
	close(release)
	if err := receive(t, first, "the first call"); err != nil {
		t.Errorf("the call of the transaction before failed: %v", err)
	}
	for i, r := range together {
		receive(t, r.done, "a call")
		if r.err == nil {
			t.Errorf("call %d succeeded", i)
		}
	}
	view(t, s, func(x *Tx) error {
		all, err := x.Jobs("", "", 0)
		if len(all) != 0 {
			t.Errorf("jobs %s are there", ids(all))
		}
		return err
	})
	update(t, s, func(x *Tx) error { return x.InsertJob(Job{ID: "later"}) })
}

func TestReplicas(t *testing.T) {
	url := databases["postgres"](t)
	a, b := open(t, url), open(t, url)
	news, stop := b.Subscribe()
	defer stop()
	update(t, a, func(x *Tx) error { x.Publish("a"); return x.InsertJob(Job{ID: "a", Doc: []byte("0")}) })
	if id := receive(t, news, "news of the other replica"); id != "a" {
		t.Errorf("told of %q", id)
	}

	// Read, add one, write: with the lock none is lost.
	const each = 50
	done := make(chan error, 2)
	for _, s := range []*Store{a, b} {
		go func() {
			var failed error
			for range each {
				failed = errors.Join(failed, s.Update(context.Background(), func(x *Tx) error {
					j, err := x.LockJob("a")
					if err != nil {
						return err
					}
					var n int
					fmt.Sscan(string(j.Doc), &n)
					j.Doc = fmt.Append(nil, n+1)
					return x.UpdateJob(j)
				}))
			}
			done <- failed
		}()
	}
	for range 2 {
		if err := receive(t, done, "the replicas"); err != nil {
			t.Error(err)
		}
	}
	view(t, a, func(x *Tx) error {
		j, err := x.Job("a")
		if string(j.Doc) != fmt.Sprint(2*each) {
			t.Errorf("counted to %s, want %d", j.Doc, 2*each)
		}
		return err
	})

	// A report does not wait for the lock.
	update(t, a, func(x *Tx) error {
		if _, err := x.LockJob("a"); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return b.Update(ctx, func(x *Tx) error { return x.AddReport("a", 1, nil) })
	})
}

// Two transactions that lock two jobs in opposite order: PostgreSQL undoes one, which is tried again.
func TestDeadlockIsTriedAgain(t *testing.T) {
	s := open(t, databases["postgres"](t))
	update(t, s, func(x *Tx) error { return errors.Join(x.InsertJob(Job{ID: "a"}), x.InsertJob(Job{ID: "b"})) })
	done := make(chan error, 2)
	var locked [2]chan struct{}
	locked[0], locked[1] = make(chan struct{}), make(chan struct{})
	for i, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			runs := 0
			done <- s.Update(context.Background(), func(x *Tx) error {
				runs++
				if _, err := x.LockJob(order[0]); err != nil {
					return err
				}
				if runs == 1 {
					close(locked[i])
					<-locked[1-i]
				}
				_, err := x.LockJob(order[1])
				return err
			})
		}()
	}
	for range 2 {
		if err := receive(t, done, "the transactions"); err != nil {
			t.Error(err)
		}
	}
}

func TestPostgresRestarts(t *testing.T) {
	server := pgtest.New(t)
	s := open(t, server.URL)
	news, stop := s.Subscribe()
	defer stop()
	update(t, s, func(x *Tx) error { return x.InsertJob(Job{ID: "a"}) })
	done := make(chan string, 9)
	begin(t, s, workers{"sum": func(_ context.Context, key string, _ []byte) error { done <- key; return nil }})
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(x *Tx) error { return x.AddReport("a", 1, nil) }); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Update while PostgreSQL is down: %v", err)
	}
	if err := s.View(t.Context(), func(x *Tx) error { _, err := x.Job("a"); return err }); !errors.Is(err, ErrUnavailable) {
		t.Errorf("View while PostgreSQL is down: %v", err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Ready while PostgreSQL is down: %v", err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(x *Tx) error { return errors.Join(x.AddReport("a", 1, nil), x.Enqueue("sum", "a", nil)) })
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if id := receive(t, news, "the reconnection"); id != "" {
		t.Errorf("told of %q, want a hint that some was missed", id)
	}
	if key := receive(t, done, "work after the restart"); key != "a" {
		t.Error(key)
	}
}
