package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/perseus-energy/perseus/internal/wire"
)

// ServeMetrics answers /metrics on l until ctx ends. It closes l.
func (a *Agent) ServeMetrics(ctx context.Context, l net.Listener) error {
	registry := prometheus.NewRegistry()
	for _, m := range []struct {
		name, help string
		value      func(Stats) int64
	}{
		{"connections_total", "Connections of training processes.", func(s Stats) int64 { return s.Connections }},
		{"refused_total", "Connections and requests that were refused.", func(s Stats) int64 { return s.Refused }},
		{"dropped_total", "Connections that were closed for what they sent.", func(s Stats) int64 { return s.Dropped }},
		{"events_total", "Events of training processes.", func(s Stats) int64 { return s.Events }},
		{"events_lost_total", "Events that training processes could not send.", func(s Stats) int64 { return s.EventsLost }},
		{"clock_requests_total", "Calls that set or unlock a clock.", func(s Stats) int64 { return s.Requests }},
		{"clock_failures_total", "Those that failed.", func(s Stats) int64 { return s.Failures }},
		{"reports_total", "Reports that the server took.", func(s Stats) int64 { return s.Reports }},
		{"reports_lost_total", "Reports that it did not.", func(s Stats) int64 { return s.ReportsLost }},
	} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "perseus", Subsystem: "agent", Name: m.name, Help: m.help},
			func() float64 { return float64(m.value(a.Stats())) }))
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "perseus", Subsystem: "agent", Name: "leases", Help: "GPUs that are leased."},
		func() float64 { return float64(a.Stats().Leases) }))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Ask sends a wire.Drain or wire.Resume to the agent that listens on a socket, and returns the ids of the GPUs that are
// drained then.
func Ask(ctx context.Context, socket string, message any) ([]string, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unixpacket", socket)
	if err != nil {
		return nil, fmt.Errorf("reach the agent: %w", err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	packet, err := wire.Encode(message)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(packet); err != nil {
		return nil, fmt.Errorf("ask the agent: %w", err)
	}
	buffer := make([]byte, wire.MaxPacket)
	n, err := c.Read(buffer)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask the agent: %w", err), ctx.Err())
	}
	reply, err := wire.ParseReply(buffer[:n])
	if err != nil {
		return nil, fmt.Errorf("the agent: %w", err)
	}
	d, ok := reply.(*wire.Drained)
	if !ok {
		return nil, fmt.Errorf("the agent answered with a %T", reply)
	}
	return d.Drained, nil
}
