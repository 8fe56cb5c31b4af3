package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/client"
)

// BenchmarkLoad has a job of 10,000 ranks, on nodes of 8, wait for a server in a process of its own. It tells how long a
// straggler's answer takes to reach all of them, how many reports of ranks a second are made durable and how long one
// request of a node then takes, and what memory the server has.
func BenchmarkLoad(b *testing.B) {
	const pp, dp, node = 8, 1250, 8
	dir := b.TempDir()
	p := &process{t: b, database: filepath.Join(dir, "perseus.db"), listen: "127.0.0.1:0", log: filepath.Join(dir, "log")}
	p.start()
	defer p.kill()
	began := time.Now()
	c, err := client.New(client.Config{Server: "http://" + p.listen, Connections: 4096, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ctx := b.Context()
	check := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	_, err = c.PutJob(ctx, "big", api.JobSpec{PP: pp, DP: dp, WorldSize: pp * dp, Microbatches: 96, NoProfiling: true, BlockingPowerW: 70})
	check(err)
	for first := 0; first < pp*dp; first += node {
		reg := api.RankRegistration{}
		for r := first; r < first+node; r++ {
			reg.Ranks = append(reg.Ranks, api.Rank{Rank: r, PP: r % pp, DP: r / pp, Session: "s", GPU: fmt.Sprint("GPU-", r), FrequencyMHz: testClocks})
		}
		_, err := c.RegisterRanks(ctx, "big", reg)
		check(err)
	}
	tr := newTrainer(b, nil, "big", api.JobSpec{PP: pp, Microbatches: 96})
	var csv strings.Builder
	csv.WriteString("stage,instruction,frequency,time,energy\n")
	for stage := range pp {
		for _, name := range []string{"forward", "backward"} {
			for _, mhz := range testClocks {
				s, j := tr.model(stage, name, mhz)
				fmt.Fprintf(&csv, "%d,%s,%d,%.9f,%.9f\n", stage, name, mhz, s, j)
			}
		}
	}
	b.Log("registered after", time.Since(began))
	_, err = c.PutProfile(ctx, "big", strings.NewReader(csv.String()), 70)
	check(err)
	for {
		j, err := c.Job(ctx, "big")
		check(err)
		if j.State == api.Running && j.Plan != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(5 * time.Second) // plans are refined meanwhile
	b.Log("running after", time.Since(began))
	var reach, decide []float64
	var rss int64
	version := int64(0)
	for n := 0; b.Loop(); n++ {
		j, err := c.Job(ctx, "big")
		check(err)
		version = j.Version
		var wg sync.WaitGroup
		var last atomic.Int64
		for first := 0; first < pp*dp; first += node {
			ranks := make([]int, node)
			for i := range ranks {
				ranks[i] = first + i
			}
			wg.Go(func() {
				if v := fetchRaw(b, p.listen, ranks, version); v <= version {
					b.Errorf("version %d after %d", v, version)
				}
				now := time.Now().UnixNano()
				for {
					l := last.Load()
					if now <= l || last.CompareAndSwap(l, now) {
						return
					}
				}
			})
		}
		for metric(b, p.listen, "perseus_long_polls") < pp*dp/node {
			time.Sleep(20 * time.Millisecond)
		}
		rss = max(rss, resident(b, p.cmd.Process.Pid))
		rank := 8 * (n + 1)
		t0 := time.Now()
		_, err = c.AddStraggler(ctx, "big", api.Straggler{Rank: &rank, Slowdown: 1.1 + 0.05*float64(n%8)})
		check(err)
		decide = append(decide, time.Since(t0).Seconds())
		wg.Wait()
		reach = append(reach, time.Unix(0, last.Load()).Sub(t0).Seconds())
		rss = max(rss, resident(b, p.cmd.Process.Pid))
	}
	b.StopTimer()
	b.Log("broadcasts after", time.Since(began), reach, decide)
	// report sends that of a node, the number-th of all.
	report := func(number int64) error {
		first := int(number*node) % (pp * dp)
		reports := api.Reports{Generation: 1}
		for r := first; r < first+node; r++ {
			rep := api.RankReport{Rank: r, Version: version, Iteration: number, Iterations: 1, TimeS: 3, EnergyJ: 600}
			for _, name := range []string{"forward", "backward"} {
				s, j := tr.model(r%pp, name, 1400)
				rep.Ops = append(rep.Ops, api.OpReport{Stage: r % pp, Instruction: name, FrequencyMHz: 1400, TimeS: []float64{s}, EnergyJ: []float64{j}})
			}
			reports.Ranks = append(reports.Ranks, rep)
		}
		_, err := c.Report(ctx, "big", reports)
		return err
	}
	const workers, seconds, offered = 16, 5, 5000
	var sent atomic.Int64
	var wg sync.WaitGroup
	// As many as there is room for: that is how many a second it takes.
	end := time.Now().Add(seconds * time.Second)
	for range workers {
		wg.Go(func() {
			for time.Now().Before(end) {
				if err := report(sent.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	most := sent.Load() * node / seconds
	// So many a second, whether those before are answered or not: that is how long each takes.
	times := make([]float64, offered/node*seconds)
	began = time.Now()
	for i := range times {
		due := began.Add(time.Duration(i) * time.Second * node / offered)
		time.Sleep(time.Until(due))
		wg.Go(func() {
			if err := report(sent.Add(1)); err != nil {
				b.Error(err)
			}
			times[i] = time.Since(due).Seconds()
		})
	}
	wg.Wait()
	rss = max(rss, resident(b, p.cmd.Process.Pid))
	slices.Sort(times)
	slices.Sort(reach)
	slices.Sort(decide)
	b.ReportMetric(reach[len(reach)/2], "s-to-reach-all")
	b.ReportMetric(1000*decide[len(decide)/2], "ms-to-decide")
	b.ReportMetric(float64(most), "reports/s")
	b.ReportMetric(1000*times[len(times)*99/100], "p99-ms-at-5000/s")
	b.ReportMetric(float64(rss)/1e6, "MB")
}

func metric(b *testing.B, listen, name string) (v int) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+listen+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				b.Fatal(err)
			}
			return int(f)
		}
	}
	return 0
}

// fetchRaw waits for the schedules of ranks as a client does, and reads them without decoding: 1,250 nodes do that each
// on a machine of its own.
func fetchRaw(b *testing.B, listen string, ranks []int, version int64) int64 {
	var list strings.Builder
	for i, r := range ranks {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString(strconv.Itoa(r))
	}
	url := fmt.Sprintf("http://%s/v1/jobs/big/schedules?generation=1&wait_s=60&version=%d&ranks=%s", listen, version, list.String())
	req, err := http.NewRequestWithContext(b.Context(), "GET", url, nil)
	if err != nil {
		b.Error(err)
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer resp.Body.Close()
	head := make([]byte, 64)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		b.Error(err)
		return 0
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Error(err)
	}
	var generation int
	var got int64
	if _, err := fmt.Sscanf(string(head), `{"generation":%d,"version":%d,`, &generation, &got); err != nil {
		b.Error(err)
	}
	return got
}

// resident returns a process's resident memory in bytes.
func resident(b *testing.B, pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip(err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}

// BenchmarkStraggler is one straggler's way through the server, from its word to the published schedules: for 8 × 96
// on 128 ranks and on 1,024. Slowdowns differ each time, so every plan is made anew by the fast pass.
func BenchmarkStraggler(b *testing.B) {
	for _, dp := range []int{16, 128} {
		b.Run(fmt.Sprint(8*dp, " ranks"), func(b *testing.B) {
			const pp = 8
			s, _ := start(b, file(b), nil)
			tr := newTrainer(b, s, "job", api.JobSpec{PP: pp, DP: dp, Microbatches: 96, NoProfiling: true, BlockingPowerW: 70})
			tr.register()
			csv := []byte("stage,instruction,frequency,time,energy\n")
			for stage := range pp {
				for _, name := range []string{"forward", "backward"} {
					for _, mhz := range testClocks {
						t, j := tr.model(stage, name, mhz)
						csv = fmt.Appendf(csv, "%d,%s,%d,%.9f,%.9f\n", stage, name, mhz, t, j)
					}
				}
			}
			if _, err := s.PutProfile(b.Context(), "job", csv, 70); err != nil {
				b.Fatal(err)
			}
			for !running(tr.job()) {
				tr.settleBackground()
			}
			for len(s.refine) > 0 { // what is made ahead of time is not what is measured
				<-s.refine
			}
			n := 0
			for b.Loop() {
				n++
				rank := 0
				if _, err := s.AddStraggler(b.Context(), "job", api.Straggler{Rank: &rank, Slowdown: 1.05 + 0.0007*float64(n%600)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
