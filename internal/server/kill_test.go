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

func (r remote) Schedules(ctx context.Context, id string, q api.ScheduleQuery) (api.Schedules, error) {
	s, _, err := r.Client.Schedules(ctx, id, q)
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
	// The trainer says what it is about to do, or in which state its job is; the killer, once it has started a server,
	// takes one of these moments, those that it has taken least often first, and kills within the next milliseconds.
	moments := make(chan string)
	mark := func(what string) {
		select {
		case moments <- what:
		default:
		}
	}
	killed := make(chan struct{})
	rare := func(what string) {
		select {
		case moments <- what:
		case <-killed:
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	stop := make(chan struct{})
	go func() {
		defer close(killed)
		for n := 0; n < kills; {
			select {
			case <-stop:
				return
			case what := <-moments:
				least := seen[what]
				for _, m := range seen {
					least = min(least, m)
				}
				if seen[what] > least+1 && rng.IntN(200) > 0 {
					continue
				}
				seen[what]++
				time.Sleep(time.Duration(rng.IntN(5000)) * time.Microsecond)
				p.kill()
				p.start()
				n++
			}
		}
	}()
	rounds := 0
	for done := false; !done; rounds++ {
		select {
		case <-killed:
			done = true
			continue
		default:
		}
		c := connect()
		tr := newTrainer(t, remote{c}, fmt.Sprint("job-", rounds), api.JobSpec{PP: 3, DP: 2, Microbatches: 6, ReportEvery: 3})
		rare("write: job")
		if _, err := c.PutJob(ctx, tr.id, tr.spec); err != nil {
			t.Fatal(err)
		}
		rare("state: registered")
		if j := tr.job(); j.State != api.Registered {
			t.Fatalf("an acknowledged job is %s", j.State)
		}
		rare("write: ranks")
		tr.register()
		look := func() api.Job {
			j := tr.job()
			state := "state: " + string(j.State)
			if j.Measurement != nil && !j.Measurement.Done {
				state += ", being measured"
			}
			mark(state)
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
				rare("write: straggler")
				if _, err := c.AddStraggler(ctx, tr.id, api.Straggler{Rank: &rank, Slowdown: 1.2}); err != nil {
					t.Fatal(err)
				}
				if j := tr.job(); len(j.Stragglers) != 1 {
					t.Fatal("an acknowledged straggler was lost")
				}
				straggler = true
			}
			if running(j) && straggler && !measured && j.Version > 0 && tr.iteration > 60 {
				rare("write: measure")
				_, err := c.Measure(ctx, tr.id, api.MeasureRequest{Blocks: 8, Iterations: 5})
				measured = err == nil
			}
			if measured && j.Measurement != nil && j.Measurement.Done {
				break
			}
			mark("write: reports")
			tr.run()
		}
		acked := tr.acked
		rare("write: pause")
		if _, err := c.Pause(ctx, tr.id); err != nil {
			t.Fatal(err)
		}
		if j := look(); j.State != api.Paused {
			t.Fatalf("an acknowledged pause was lost: %s", j.State)
		}
		rare("write: resume")
		if _, err := c.Resume(ctx, tr.id); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Pause(ctx, tr.id); err != nil {
			t.Fatal(err)
		}
		rare("write: finish")
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
	<-killed
	total := 0
	var lines []string
	for what, n := range seen {
		total += n
		lines = append(lines, fmt.Sprintf("%-32s %d", what, n))
	}
	if total < kills {
		t.Errorf("killed %d times, wanted %d", total, kills)
	}
	slices.Sort(lines)
	t.Logf("%d jobs, %d kills:\n%s", rounds, total, strings.Join(lines, "\n"))
}
