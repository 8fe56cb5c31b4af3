package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/token"
	"github.com/perseus-energy/perseus/internal/zeus"
)

// route says who may use a route.
type route struct {
	method, path string
	scopes       []token.Scope
}

// routes lists the scopes of which each described route needs one.
var routes = []route{
	{"POST", "/v1/jobs", forRanks},
	{"GET", "/v1/jobs", forReaders},
	{"PUT", "/v1/jobs/{job}", forRanks},
	{"GET", "/v1/jobs/{job}", forBoth},
	{"DELETE", "/v1/jobs/{job}", forPeople},
	{"PUT", "/v1/jobs/{job}/ranks", forRanks},
	{"PUT", "/v1/jobs/{job}/profile", forPeople},
	{"GET", "/v1/jobs/{job}/profile", forReaders},
	{"GET", "/v1/jobs/{job}/frontier", forReaders},
	{"GET", "/v1/jobs/{job}/schedules", forBoth},
	{"POST", "/v1/jobs/{job}/reports", forRanks},
	{"POST", "/v1/jobs/{job}/stragglers", forRanks},
	{"PUT", "/v1/jobs/{job}/goal", forPeople},
	{"POST", "/v1/jobs/{job}/pause", forPeople},
	{"POST", "/v1/jobs/{job}/resume", forPeople},
	{"POST", "/v1/jobs/{job}/finish", forRanks},
	{"POST", "/v1/jobs/{job}/measure", forPeople},
	{"GET", "/v1/jobs/{job}/events", forReaders},
}

// JobPath is the id of a job in a path.
type JobPath struct {
	Job string `path:"job" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$" doc:"The job's id."`
}

type jobAnswer struct{ Body api.Job }

// Handler answers all requests.
func (s *Server) Handler() (http.Handler, error) {
	r := chi.NewMux()
	r.Use(s.recovered, s.metrics.measured, s.guarded, middleware.Compress(5, "text/csv"))
	config := huma.DefaultConfig("Perseus", s.config.Version)
	config.Info.Description = "The control plane of Perseus: profiles training jobs, plans the clock of each op, answers stragglers."
	config.OpenAPI.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "/openapi", "/docs", ""
	config.CreateHooks = nil // no $schema links in answers
	config.Transformers = append(config.Transformers, terse)
	a := humachi.New(r, config)
	s.describeJobs(a)
	s.describeDelivery(a)
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.store.Ready(ctx); err != nil {
			writeProblem(w, unavailable(err))
			return
		}
		fmt.Fprintln(w, "ready")
	})
	r.Method("GET", "/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	z, err := zeus.New(zeus.Config{Service: zeusService{s}, Schedule: s.config.ZeusSchedule, Microbatches: s.config.ZeusMicrobatches, Done: s.stopped.Done(), Log: s.log})
	if err != nil {
		return nil, err
	}
	for _, p := range []string{"POST /register_job", "POST /register_rank/{job}", "GET /schedule/{job}", "POST /result/{job}"} {
		method, path, _ := strings.Cut(p, " ")
		r.Method(method, path, z)
	}
	var h http.Handler = r
	h = http.NewCrossOriginProtection().Handler(h)
	if s.config.Tracing != nil {
		h = s.config.Tracing(h)
	}
	return headed(h), nil
}

// recovered answers 500 where a handler panics, and says so in the log.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.log.Error("a handler panicked", "path", r.URL.Path, "panic", fmt.Sprint(p))
				writeProblem(w, &api.Error{Status: 500, Code: "internal", Detail: "the server failed; its log says why"})
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func operation(method, path, id, summary string, bodyMax int64, errors ...int) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, MaxBodyBytes: bodyMax,
		RejectUnknownQueryParameters: true, Security: []map[string][]string{{"token": {}}, {}},
		Errors: append(errors, 400, 401, 403, 413, 415, 500, 503), BodyReadTimeout: 30 * time.Second,
		Responses: map[string]*huma.Response{"431": {Description: "Headers of more than 32 KiB.", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}}},
	}
}

const smallBody = 64 << 10

// describeJobs describes what jobs and people ask and say.
func (s *Server) describeJobs(a huma.API) {
	jobPut := func(ctx context.Context, id string, spec api.JobSpec) (*jobAnswer, error) {
		job, err := s.PutJob(ctx, id, spec)
		return &jobAnswer{job}, s.asProblem(ctx, err)
	}
	huma.Register(a, operation("PUT", "/v1/jobs/{job}", "put-job", "Register a job under an id that its launcher knows", 2<<20, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.JobSpec
		},
		) (*jobAnswer, error) {
			return jobPut(ctx, in.Job, in.Body)
		})
	huma.Register(a, operation("POST", "/v1/jobs", "create-job", "Register a job under an id that the server makes", 2<<20, 409, 422),
		func(ctx context.Context, in *struct{ Body api.JobSpec }) (*jobAnswer, error) {
			return jobPut(ctx, newID(), in.Body)
		})
	huma.Register(a, operation("GET", "/v1/jobs", "list-jobs", "A page of jobs, by id", 0, 422),
		func(ctx context.Context, in *struct {
			State string `query:"state" enum:"registered,profiling,characterizing,running,paused,stale,finished,failed" doc:"Only jobs in this state."`
			After string `query:"after" maxLength:"128" doc:"Only jobs whose ids come after."`
			Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		},
		) (*struct{ Body api.JobList }, error) {
			list, err := s.Jobs(ctx, api.State(in.State), in.After, in.Limit)
			return &struct{ Body api.JobList }{list}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("GET", "/v1/jobs/{job}", "get-job", "A job", 0, 404, 422),
		func(ctx context.Context, in *JobPath) (*jobAnswer, error) {
			job, err := s.Job(ctx, in.Job)
			return &jobAnswer{job}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("DELETE", "/v1/jobs/{job}", "delete-job", "Forget a job and all that belongs to it", 0, 404, 422),
		func(ctx context.Context, in *JobPath) (*struct{}, error) {
			return nil, s.asProblem(ctx, s.DeleteJob(ctx, in.Job))
		})
	huma.Register(a, operation("PUT", "/v1/jobs/{job}/ranks", "register-ranks", "Register ranks: those of a node, or all", 32<<20, 404, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.RankRegistration
		},
		) (*struct{ Body api.RankRegistered }, error) {
			done, err := s.RegisterRanks(ctx, in.Job, in.Body)
			return &struct{ Body api.RankRegistered }{done}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("POST", "/v1/jobs/{job}/reports", "report", "Report what ranks measured; durable when answered", 16<<20, 404, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.Reports
		},
		) (*struct{ Body api.Accepted }, error) {
			done, err := s.Report(ctx, in.Job, in.Body)
			return &struct{ Body api.Accepted }{done}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("POST", "/v1/jobs/{job}/stragglers", "add-straggler", "Tell of a slow GPU, now or to come", smallBody, 404, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.Straggler
		},
		) (*jobAnswer, error) {
			job, err := s.AddStraggler(ctx, in.Job, in.Body)
			return &jobAnswer{job}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("PUT", "/v1/jobs/{job}/goal", "set-goal", "Wish for a slowdown, a time, a power or least energy; nothing: the fastest", smallBody, 404, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.Goal
		},
		) (*jobAnswer, error) {
			job, err := s.SetGoal(ctx, in.Job, in.Body)
			return &jobAnswer{job}, s.asProblem(ctx, err)
		})
	huma.Register(a, operation("POST", "/v1/jobs/{job}/measure", "measure", "Prove on the job what its plan saves", smallBody, 404, 409, 422),
		func(ctx context.Context, in *struct {
			JobPath
			Body api.MeasureRequest
		},
		) (*jobAnswer, error) {
			job, err := s.Measure(ctx, in.Job, in.Body)
			return &jobAnswer{job}, s.asProblem(ctx, err)
		})
	for _, v := range []struct {
		verb, summary string
		do            func(context.Context, string) (api.Job, error)
	}{
		{"pause", "Train at maximum clock until resumed", s.Pause},
		{"resume", "Go on where pause stopped", s.Resume},
		{"finish", "End the job", s.Finish},
	} {
		huma.Register(a, operation("POST", "/v1/jobs/{job}/"+v.verb, v.verb, v.summary, smallBody, 404, 409, 422),
			func(ctx context.Context, in *JobPath) (*jobAnswer, error) {
				job, err := v.do(ctx, in.Job)
				return &jobAnswer{job}, s.asProblem(ctx, err)
			})
	}
}

type bytesAnswer struct {
	ContentType string `header:"Content-Type"`
	ETag        string `header:"ETag"`
	Status      int
	Body        []byte
}

// describeDelivery describes what is handed out or taken as a whole: schedules, files, history.
func (s *Server) describeDelivery(a huma.API) {
	schedules := operation("GET", "/v1/jobs/{job}/schedules", "get-schedules", "What ranks are to do; waits for a newer version if asked to", 0, 404, 409, 422)
	schedules.Responses["200"] = &huma.Response{
		Description: "The ranks whose schedule differs from the version that was named.", Headers: map[string]*huma.Header{"ETag": {Schema: &huma.Schema{Type: "string"}}},
		Content: map[string]*huma.MediaType{"application/json": {Schema: huma.SchemaFromType(a.OpenAPI().Components.Schemas, reflect.TypeFor[api.Schedules]())}},
	}
	schedules.Responses["304"] = &huma.Response{Description: "Nothing is newer than If-None-Match."}
	huma.Register(a, schedules, func(ctx context.Context, in *struct {
		JobPath
		Ranks      []int  `query:"ranks" maxItems:"4096" doc:"Global ranks; none: all."`
		Generation int    `query:"generation" minimum:"0" maximum:"2147483647" doc:"0: the newest."`
		Version    int64  `query:"version" minimum:"0" doc:"The newest version that is known."`
		WaitS      int    `query:"wait_s" minimum:"0" maximum:"600" doc:"How long to wait for a newer one."`
		None       string `header:"If-None-Match" maxLength:"200"`
	},
	) (*bytesAnswer, error) {
		q := api.ScheduleQuery{Ranks: in.Ranks, Generation: in.Generation, Version: in.Version, Wait: time.Duration(in.WaitS) * time.Second}
		text, version, generation, err := s.schedules(ctx, in.Job, q)
		if err != nil {
			return nil, s.asProblem(ctx, err)
		}
		etag := `"` + strconv.Itoa(generation) + "." + strconv.FormatInt(version, 10) + `"`
		if in.None == etag {
			return &bytesAnswer{ETag: etag, Status: http.StatusNotModified}, nil
		}
		return &bytesAnswer{ContentType: "application/json", ETag: etag, Status: 200, Body: text}, nil
	})
	file := func(path, id, summary, kind string, get func(context.Context, string) ([]byte, error)) {
		op := operation("GET", path, id, summary, 0, 404, 422)
		op.Responses["200"] = &huma.Response{Description: summary, Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: "string", Format: "binary"}}}}
		huma.Register(a, op, func(ctx context.Context, in *JobPath) (*bytesAnswer, error) {
			data, err := get(ctx, in.Job)
			if err != nil {
				return nil, s.asProblem(ctx, err)
			}
			return &bytesAnswer{ContentType: kind, Status: 200, Body: data}, nil
		})
	}
	file("/v1/jobs/{job}/profile", "get-profile", "The job's profile", "text/csv", s.Profile)
	file("/v1/jobs/{job}/frontier", "get-frontier", "The job's frontier, perseus-frontier/1 compressed with gzip", "application/gzip", s.Frontier)
	put := operation("PUT", "/v1/jobs/{job}/profile", "put-profile", "Give a profile in place of a campaign", maxProfile, 404, 409, 422)
	huma.Register(a, put, func(ctx context.Context, in *struct {
		JobPath
		Blocking float64 `query:"blocking_power_w" minimum:"0" maximum:"10000" doc:"What one GPU draws while it waits, in W."`
		RawBody  []byte  `contentType:"text/csv"`
	},
	) (*jobAnswer, error) {
		job, err := s.PutProfile(ctx, in.Job, in.RawBody, in.Blocking)
		return &jobAnswer{job}, s.asProblem(ctx, err)
	})
	events := operation("GET", "/v1/jobs/{job}/events", "follow-events", "The job's history as it grows, as server-sent events", 0, 404, 422)
	events.Responses["200"] = &huma.Response{Description: "Each event's data is an Event.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: "string"}}}}
	huma.Register(a, events, func(ctx context.Context, in *struct {
		JobPath
		After int64  `query:"after" minimum:"0" doc:"Only events with a greater id."`
		Last  string `header:"Last-Event-ID" maxLength:"20"`
	},
	) (*huma.StreamResponse, error) {
		after := in.After
		if n, err := strconv.ParseInt(in.Last, 10, 64); err == nil && n > after {
			after = n
		}
		if _, err := s.Events(ctx, in.Job, after, 1); err != nil {
			return nil, s.asProblem(ctx, err)
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) { s.follow(hc, in.Job, after) }}, nil
	})
}

// follow writes a job's events until the client goes, the job is deleted, or the server stops.
func (s *Server) follow(hc huma.Context, job string, after int64) {
	hc.SetHeader("Content-Type", "text/event-stream")
	hc.SetHeader("Cache-Control", "no-store")
	_, w := humachi.Unwrap(hc)
	rc := http.NewResponseController(w)
	ctx := hc.Context()
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		news := s.hub.waiting(job)
		list, err := s.Events(ctx, job, after, 1000)
		if err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Now().Add(30 * time.Second))
		for _, e := range list {
			text, err := json.Marshal(e)
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(hc.BodyWriter(), "id: %d\ndata: %s\n\n", e.ID, text); err != nil {
				return
			}
			after = e.ID
		}
		if len(list) == 1000 {
			continue
		}
		if _, err := io.WriteString(hc.BodyWriter(), ": \n\n"); err != nil || rc.Flush() != nil {
			return
		}
		select {
		case <-news:
		case <-beat.C:
		case <-ctx.Done():
			return
		case <-s.stopped.Done():
			return
		}
	}
}
