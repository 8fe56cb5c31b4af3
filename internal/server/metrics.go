package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/control"
	"github.com/perseus-energy/perseus/internal/store"
)

// metrics are for Prometheus. Their labels come from fixed lists: never a job, never a rank.
type metrics struct {
	registry      *prometheus.Registry
	requests      *prometheus.CounterVec
	requestTime   *prometheus.HistogramVec
	reports       prometheus.Counter
	schedules     *prometheus.CounterVec
	stragglers    *prometheus.CounterVec
	trips         prometheus.Counter
	characterizeT prometheus.Histogram
	frontierCache *prometheus.CounterVec
	longPolls     prometheus.Gauge
	commitTime    prometheus.Histogram
	batch         prometheus.Histogram
	savedJ        prometheus.Counter
}

func newMetrics(version string) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perseus_" + name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "perseus_" + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.requests = counter("http_requests_total", "HTTP requests answered.", "route", "method", "code")
	m.requestTime = histogram("http_request_seconds", "Time to answer, long-polls included.", prometheus.DefBuckets, "route")
	m.reports = counter("reports_total", "Reports of ranks that were made durable.").WithLabelValues()
	m.schedules = counter("schedules_published_total", "Versions of schedules published.", "reason")
	m.stragglers = counter("stragglers_total", "Stragglers that were told of or detected.", "source")
	m.trips = counter("guardrail_trips_total", "Jobs sent back to maximum clock for being slower than planned.").WithLabelValues()
	m.characterizeT = histogram("characterize_seconds", "Time to compute a frontier.", prometheus.ExponentialBuckets(0.01, 3, 10)).WithLabelValues().(prometheus.Histogram)
	m.frontierCache = counter("frontier_cache_total", "Frontiers asked for, by whether an equal job had it before.", "result")
	m.commitTime = histogram("store_commit_seconds", "Time of a write transaction, to its durable end.", prometheus.ExponentialBuckets(0.0005, 2, 14)).WithLabelValues().(prometheus.Histogram)
	m.batch = histogram("store_batch_size", "Writes that share a transaction.", prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues().(prometheus.Histogram)
	m.savedJ = counter("energy_saved_joules_total", "Energy that plans saved against maximum clock, by the profile.").WithLabelValues()
	m.longPolls = prometheus.NewGauge(prometheus.GaugeOpts{Name: "perseus_long_polls", Help: "Requests that wait for a schedule."})
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perseus_build_info", Help: "Always 1."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.longPolls, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) commit(batch int, seconds float64) {
	m.batch.Observe(float64(batch))
	m.commitTime.Observe(seconds)
}

func (m *metrics) characterized(d time.Duration) { m.characterizeT.Observe(d.Seconds()) }

func (m *metrics) noted(n control.Note) {
	switch {
	case n.Kind == "guardrail":
		m.trips.Inc()
	case n.Kind == "straggler" && strings.HasSuffix(n.Text, "(detected)"):
		m.stragglers.WithLabelValues("detected").Inc()
	}
}

func (m *metrics) published(reason string) {
	kind, _, _ := strings.Cut(reason, ":")
	switch word, _, _ := strings.Cut(kind, " "); word {
	case "profiling", "plan", "straggler", "guardrail", "measuring", "paused", "stale":
		m.schedules.WithLabelValues(word).Inc()
	default:
		m.schedules.WithLabelValues("other").Inc()
	}
}

// saved counts what iterations by the plan in force saved, over all pipelines.
func (m *metrics) saved(pipelines int, p api.Plan, iterations int64) {
	if share := p.SavingPercent / 100; share > 0 && share < 1 {
		m.savedJ.Add(p.EnergyJ * share / (1 - share) * float64(pipelines) * float64(iterations))
	}
}

// watch adds the metrics that are looked up when they are asked for.
func (m *metrics) watch(s *Server) { m.registry.MustRegister(jobCounts{s}) }

type jobCounts struct{ s *Server }

var (
	jobsDesc  = prometheus.NewDesc("perseus_jobs", "Jobs by state.", []string{"state"}, nil)
	extraDesc = prometheus.NewDesc("perseus_profiling_extra_seconds_total", "Time that profiling cost the jobs that are kept.", nil, nil)
)

func (jobCounts) Describe(c chan<- *prometheus.Desc) { c <- jobsDesc; c <- extraDesc }

func (jc jobCounts) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var counts map[string]int
	err := jc.s.store.View(ctx, func(tx *store.Tx) (err error) {
		counts, err = tx.CountJobs()
		return err
	})
	if err != nil {
		c <- prometheus.NewInvalidMetric(jobsDesc, err)
		return
	}
	for _, state := range []api.State{api.Registered, api.Profiling, api.Characterizing, api.Running, api.Paused, api.Stale, api.Finished, api.Failed} {
		c <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(counts[string(state)]), string(state))
	}
	c <- prometheus.MustNewConstMetric(extraDesc, prometheus.CounterValue, jc.s.hub.extraTime())
}

// measured counts and times requests by route.
func (m *metrics) measured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(rec, r)
		route := "other"
		if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" && c.RoutePattern() != "/*" {
			route = c.RoutePattern()
		}
		method := r.Method
		switch method {
		case http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead:
		default:
			method = "other"
		}
		trace.SpanFromContext(r.Context()).SetName(method + " " + route)
		m.requests.WithLabelValues(route, method, strconv.Itoa(rec.code)).Inc()
		m.requestTime.WithLabelValues(route).Observe(time.Since(began).Seconds())
	})
}

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Flush sends what was written so far: chi's compression asks for it by this method.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
