package agent_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/perseus-energy/perseus/internal/agent"
	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/internal/wire"
)

// BenchmarkLoad drives 8 GPUs with a thousand ops a second each, every one at another clock than the one before, in real
// time. It reports the share of one core that the process takes, clients included, and what it keeps in memory.
func BenchmarkLoad(b *testing.B) {
	var boards []*emulated.Board
	up := newServer()
	var schedules []api.RankSchedule
	for i := range 8 {
		boards = append(boards, board(b, i, 0, 100*ms, agent.Monotonic.Now))
		_, r := alternating(50, ms*2/3, 1200, 900)
		r.Rank = i
		schedules = append(schedules, r)
	}
	up.publish(0, 10, schedules...)
	a, err := agent.New(agent.Config{Open: openOf(boards...), Uplink: up, Switching: "fine"})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = a.Run(b.Context()) }()
	var sessions []*agent.Session
	for i := range 8 {
		s, err := a.Attach(b.Context(), hello(i))
		if err != nil {
			b.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	sequence := uint64(0)
	send := func(k wire.Kind, op int) {
		sequence++
		for _, s := range sessions {
			s.Send(wire.Event{Kind: k, Instruction: uint8(op % 2), Microbatch: uint32(op / 2), Sequence: sequence, TimeNs: uint64(agent.Monotonic.Now().UnixNano())})
		}
	}
	begun, used := time.Now(), cpu()
	tick := time.NewTicker(ms)
	defer tick.Stop()
	for b.Loop() {
		send(wire.StepBegin, 0)
		for op := range 100 {
			send(wire.OpBegin, op)
			<-tick.C
			send(wire.OpEnd, op)
		}
		send(wire.StepEnd, 0)
	}
	wall := time.Since(begun)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(100*float64(cpu()-used)/float64(wall), "%core")
	b.ReportMetric(float64(a.Stats().Requests)/wall.Seconds(), "calls/s")
	b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/1e6, "MB")
}
