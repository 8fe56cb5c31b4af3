package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
)

// child is set in the environment of a process that is only a server.
const child = "PERSEUS_TEST_SERVE"

func TestMain(m *testing.M) {
	if database := os.Getenv(child); database != "" {
		if err := serveChild(database, os.Getenv("PERSEUS_TEST_LISTEN")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serveChild(database, listen string) error {
	ctx := context.Background()
	debug.SetMemoryLimit(MemoryLimit)
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s, err := New(ctx, Config{Database: database, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	fmt.Println("ready", l.Addr())
	return s.Serve(ctx, l, nil)
}

// process is a server in a process of its own, which can be killed.
type process struct {
	t        testing.TB
	database string
	listen   string
	cmd      *exec.Cmd
	log      string
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), child+"="+p.database, "PERSEUS_TEST_LISTEN="+p.listen)
	logFile, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer logFile.Close()
	p.cmd.Stderr = logFile
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		text, _ := os.ReadFile(p.log)
		p.t.Fatalf("the server did not start: %v\n%s", err, text[max(0, len(text)-2000):])
	}
	p.listen = strings.TrimSpace(strings.TrimPrefix(line, "ready "))
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// remote is a server behind HTTP.
type remote struct{ *client.Client }

func (r remote) Schedules(ctx context.Context, id string, q Query) (api.Schedules, error) {
	s, _, err := r.Client.Schedules(ctx, id, client.Query{Ranks: q.Ranks, Generation: q.Generation, Version: q.Version, Wait: q.Wait})
	return s, err
}

// TestKilled kills the server at random moments while jobs go through their whole lives, and starts it again each time.
// PERSEUS_KILLS sets how often. Nothing acknowledged may be lost, and no rank told two schedules for one iteration:
// the trainer checks that itself.
func TestKilled(t *testing.T) {
	kills := 10
	if n, err := strconv.Atoi(os.Getenv("PERSEUS_KILLS")); err == nil {
		kills = n
	} else if testing.Short() {
		t.Skip("-short")
	}
	dir := t.TempDir()
	p := &process{t: t, database: filepath.Join(dir, "perseus.db"), listen: "127.0.0.1:0", log: filepath.Join(dir, "log")}
	p.start()
	defer func() { p.kill() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	connect := func() *client.Client {
		c, err := client.New(client.Config{Server: "http://" + p.listen})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var mu sync.Mutex
	state, seen := "none", map[string]int{}
	stop := make(chan struct{})
	rng := rand.New(rand.NewPCG(1, 2))
	killed := make(chan int, 1)
	go func() {
		n := 0
		defer func() { killed <- n }()
		for n < kills {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+rng.IntN(400)) * time.Millisecond):
			}
			mu.Lock()
			seen[state]++
			mu.Unlock()
			p.kill()
			p.start()
			n++
		}
	}()
	rounds := 0
	for done := false; !done; rounds++ {
		select {
		case n := <-killed:
			killed <- n
			done = n >= kills
			continue
		default:
		}
		c := connect()
		tr := newTrainer(t, remote{c}, fmt.Sprint("job-", rounds), api.JobSpec{PP: 3, DP: 2, Microbatches: 6, ReportEvery: 3})
		tr.register()
		look := func() api.Job {
			j := tr.job()
			mu.Lock()
			state = string(j.State)
			if j.Measurement != nil && !j.Measurement.Done {
				state += ", measured"
			}
			mu.Unlock()
			if j.Generation != tr.generation || j.MissingRanksCount != 0 {
				t.Fatalf("ranks were lost: generation %d of %d, %d missing", j.Generation, tr.generation, j.MissingRanksCount)
			}
			return j
		}
		straggler, measured := false, false
		for range 1500 {
			j := look()
			if running(j) && !straggler {
				rank := 0
				if _, err := c.AddStraggler(ctx, tr.id, api.Straggler{Rank: &rank, Slowdown: 1.2}); err != nil {
					t.Fatal(err)
				}
				if j := tr.job(); len(j.Stragglers) != 1 {
					t.Fatal("an acknowledged straggler was lost")
				}
				straggler = true
			}
			if running(j) && straggler && !measured && j.Version > 0 && tr.iteration > 60 {
				_, err := c.Measure(ctx, tr.id, api.MeasureRequest{Blocks: 8, Iterations: 5})
				measured = err == nil
			}
			if measured && j.Measurement != nil && j.Measurement.Done {
				break
			}
			tr.run()
		}
		acked := tr.acked
		if _, err := c.Pause(ctx, tr.id); err != nil {
			t.Fatal(err)
		}
		if j := look(); j.State != api.Paused {
			t.Fatalf("an acknowledged pause was lost: %s", j.State)
		}
		if _, err := c.Finish(ctx, tr.id); err != nil {
			t.Fatal(err)
		}
		if j := tr.job(); j.Iteration < acked || j.State != api.Finished || !measured {
			b, _ := json.Marshal(j)
			t.Errorf("iteration %d was acknowledged, measured %v, the job says %s", acked, measured, b)
		}
		c.Close()
	}
	close(stop)
	n := <-killed
	if n < kills {
		t.Errorf("killed %d times, wanted %d", n, kills)
	}
	var lines []string
	for s, n := range seen {
		lines = append(lines, fmt.Sprintf("%-24s %d", s, n))
	}
	slices.Sort(lines)
	t.Logf("%d jobs, %d kills in states:\n%s", rounds, n, strings.Join(lines, "\n"))
}
