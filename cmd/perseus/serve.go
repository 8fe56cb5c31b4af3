package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/server"
	"github.com/perseus-energy/perseus/internal/store"
)

type serveCommand struct {
	Listen   string `default:"127.0.0.1:7787" placeholder:"HOST:PORT" help:"Where to answer (${default}). Port 0 takes a free one. Beyond this machine every request needs a token: perseus token create."`
	Database string `default:"perseus.db" env:"PERSEUS_DATABASE" placeholder:"FILE|URL" help:"A SQLite file, made if it is not there (${default}), or postgres://… for several replicas. A URL with a password belongs in PERSEUS_DATABASE, where other users do not see it."`

	RequireToken bool   `group:"Who may ask:" help:"Ask for a token on this machine's own addresses too."`
	TLSCert      string `name:"tls-cert" group:"Who may ask:" file:"" placeholder:"FILE" help:"Certificate chain in PEM: serve HTTPS."`
	TLSKey       string `name:"tls-key" group:"Who may ask:" file:"" placeholder:"FILE" help:"Its key in PEM."`
	TLSClientCA  string `name:"tls-client-ca" group:"Who may ask:" file:"" placeholder:"FILE" help:"Let only clients connect that have a certificate of these authorities (mTLS)."`

	ProfilingBudget  percentage    `group:"Jobs that leave it open:" default:"5%" placeholder:"5%" help:"Most extra time for profiling, as a share of 1,000 iterations (${default})."`
	GuardrailPercent float64       `group:"Jobs that leave it open:" default:"1" placeholder:"P" help:"Back to maximum clock where iterations take this much longer than planned, in percent (${default})."`
	GuardrailWindow  int           `group:"Jobs that leave it open:" default:"20" min:"1" placeholder:"N" help:"… over this many iterations (${default})."`
	RankDeadline     time.Duration `group:"Jobs that leave it open:" default:"10m" placeholder:"TIME" help:"A job is stale when nothing is heard of it for this long (${default})."`
	ReportEvery      int           `group:"Jobs that leave it open:" default:"10" min:"1" placeholder:"N" help:"Running ranks report every N-th iteration (${default})."`
	ZeusSchedule     string        `group:"Jobs that leave it open:" default:"1f1b" placeholder:"NAME" help:"Pipeline schedule of Zeus jobs that name none (${default})."`
	ZeusMicrobatches int           `group:"Jobs that leave it open:" default:"8" min:"1" placeholder:"M" help:"Microbatches of Zeus jobs that name none (${default})."`

	OTLPEndpoint string `name:"otlp-endpoint" group:"What it tells:" placeholder:"URL" help:"Send OpenTelemetry traces there, as to http://localhost:4318."`
	logFlags
}

// Help is the text of perseus serve --help.
func (serveCommand) Help() string {
	return `Runs the control plane: it profiles jobs while they train, computes their frontiers, tells each GPU which clock to run each op at, and answers stragglers. It keeps everything in one SQLite file; nothing else has to be set up. An acknowledged report is on disk. Stop it with ^C or SIGTERM, and start it again, at any time: jobs train on meanwhile.

Look at jobs with perseus jobs; the API is described at /openapi.json, and /docs lets you try it; Prometheus scrapes /metrics.

Examples:

    perseus serve
    perseus serve --listen 0.0.0.0:7787 --database /var/lib/perseus/perseus.db --tls-cert C.pem --tls-key K.pem
    PERSEUS_DATABASE=postgres://perseus:…@db/perseus perseus serve --listen 0.0.0.0:7787`
}

func (*serveCommand) grace() time.Duration { return 5 * time.Second }

// Run serves until it is stopped.
func (c *serveCommand) Run(w *world) (err error) {
	if (c.TLSCert == "") != (c.TLSKey == "") || c.TLSClientCA != "" && c.TLSCert == "" {
		return input(errors.New("--tls-cert and --tls-key belong together, and --tls-client-ca needs both"))
	}
	if c.RankDeadline < time.Second {
		return input(fmt.Errorf("--rank-deadline %v: at least 1s is needed", c.RankDeadline))
	}
	log := c.logger(w)
	tlsConfig, err := server.TLS{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA}.Config(log)
	if err != nil {
		return input(err)
	}
	config := server.Config{
		Database: c.Database, RankDeadline: c.RankDeadline, RequireToken: c.RequireToken,
		Defaults: control.Defaults{
			ReportEvery: c.ReportEvery, ProfilingBudget: c.ProfilingBudget.ratio().Float(),
			GuardrailPercent: c.GuardrailPercent, GuardrailWindow: c.GuardrailWindow,
		},
		ZeusSchedule: c.ZeusSchedule, ZeusMicrobatches: c.ZeusMicrobatches, Version: versionName(), Logger: log,
	}
	if c.OTLPEndpoint != "" {
		traces, err := tracing(w.ctx, c.OTLPEndpoint)
		if err != nil {
			return input(err)
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 2*time.Second)
			defer cancel()
			_ = traces.Shutdown(ctx)
		}()
		config.Tracing = func(h http.Handler) http.Handler {
			return otelhttp.NewHandler(h, "perseus", otelhttp.WithTracerProvider(traces)) // the server names the spans
		}
	}
	l, err := (&net.ListenConfig{}).Listen(w.ctx, "tcp", c.Listen)
	if err != nil {
		return input(fmt.Errorf("--listen %s: %w", c.Listen, err))
	}
	if w.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(server.MemoryLimit)
	}
	// Plans that are made ahead of time keep two threads busy: requests shall not wait for these.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	s, err := server.New(w.ctx, config)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer func() { err = errors.Join(err, closeSoon(s)) }()
	scheme := "http"
	if tlsConfig != nil {
		scheme = "https"
	}
	log.Info("serving", "url", scheme+"://"+l.Addr().String(), "database", database(c.Database))
	return s.Serve(w.ctx, l, tlsConfig)
}

// closeSoon closes a server. A plan of a large job that is being made ahead of time may take longer than an operator
// waits: then the end of the process ends it. What is durable was so before.
func closeSoon(s *server.Server) error {
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(time.Second):
		return nil
	}
}

// database names a database without its user and password, wherever the URL has them.
func database(name string) string {
	if !store.IsPostgres(name) {
		return name
	}
	u, err := url.Parse(name)
	if err != nil {
		return "postgres://…"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// tracing returns what sends traces to an OpenTelemetry collector at a URL.
func tracing(ctx context.Context, endpoint string) (*trace.TracerProvider, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--otlp-endpoint %q: expected a URL such as http://localhost:4318", endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // where a collector listens, by the OTLP specification
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, err
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter)), nil
}
