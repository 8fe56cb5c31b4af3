package zeus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
)

// Service is what the routes call. Its errors are *api.Error where the client is to hear of them. All methods are safe
// for concurrent use.
type Service interface {
	PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error)
	Job(ctx context.Context, id string) (api.Job, error)
	RegisterRanks(ctx context.Context, job string, r api.RankRegistration) (api.RankRegistered, error)
	// Rank returns a rank as it registered in the newest generation, or an *api.Error with status 404.
	Rank(ctx context.Context, job string, rank int) (api.Rank, error)
	// Schedules with a Version of 0 returns each rank's whole schedule. It returns early, with an unchanged version,
	// when Wait is over.
	Schedules(ctx context.Context, job string, q api.ScheduleQuery) (api.Schedules, error)
	Report(ctx context.Context, job string, r api.Reports) (api.Accepted, error)
}

// Config says what a Handler works with. The zero value of all but Service will do.
type Config struct {
	Service Service
	// Schedule and Microbatches are those of jobs whose metadata names none: 1f1b and 8.
	Schedule     string
	Microbatches int
	// PlanWait is how long a GET waits for a frontier that is being computed, since today's client asks only once: 5 s;
	// negative: not at all.
	PlanWait time.Duration
	// RetryFor is how long a GET tries again where the service is unavailable, since Zeus's client ends the training at
	// the first failure: 30 s; negative: not at all.
	RetryFor time.Duration
	// Done is closed when the server stops: GETs that wait are answered with maximum clocks then. Nil: never.
	Done <-chan struct{}
	Log  *slog.Logger
	// Random makes ids unique: crypto/rand's. Now dates them, in UTC.
	Random io.Reader
	Now    func() time.Time
}

// Handler answers the four routes, at its own root: mount it at / or, behind http.StripPrefix, at /zeus/TOKEN. It holds
// no goroutine of its own, and a request ends with its context.
type Handler struct {
	Config
	orders orders
	served served
}

// New returns a handler, or an error where the default schedule does not exist or the default microbatches are none.
func New(c Config) (*Handler, error) {
	if c.Service == nil {
		return nil, errors.New("zeus: no service")
	}
	if c.Schedule == "" {
		c.Schedule = "1f1b"
	}
	if c.Microbatches == 0 {
		c.Microbatches = 8
	}
	if c.PlanWait == 0 {
		c.PlanWait = 5 * time.Second
	}
	if c.RetryFor == 0 {
		c.RetryFor = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := checkDefaults(c.Schedule, c.Microbatches); err != nil {
		return nil, err
	}
	return &Handler{Config: c}, nil
}

// The routes, each with its one method.
var routes = []struct {
	path, method string
	serve        func(*Handler, http.ResponseWriter, *http.Request, string) error
}{
	{"/register_job", http.MethodPost, (*Handler).registerJob},
	{"/register_rank/", http.MethodPost, (*Handler).registerRank},
	{"/schedule/", http.MethodGet, (*Handler).schedule},
	{"/result/", http.MethodPost, (*Handler).result},
}

// Serves says whether a path, without the token's part, is one of the four routes.
func Serves(path string) bool {
	for _, r := range routes {
		if path == r.path || strings.HasSuffix(r.path, "/") && strings.HasPrefix(path, r.path) {
			return true
		}
	}
	return false
}

// ServeHTTP answers a request. Errors are JSON in the form of Zeus's server: {"detail": text}, or for what is wrong
// with a request {"detail": [{"loc", "msg", "type"}]}.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A base URL that ends in a slash makes two of them.
	path := "/" + strings.TrimLeft(r.URL.Path, "/")
	for _, route := range routes {
		job, ok := strings.CutPrefix(path, route.path)
		if !ok || strings.HasSuffix(route.path, "/") == (job == "") {
			continue
		}
		if r.Method != route.method {
			w.Header().Set("Allow", route.method)
			writeError(w, &api.Error{Status: http.StatusMethodNotAllowed, Detail: fmt.Sprintf("%s: the method is %s", route.path, route.method)})
			return
		}
		var err error
		if job != "" && !jobID.MatchString(job) {
			err = unknownJob(job)
		} else {
			err = route.serve(h, w, r, job)
		}
		if err != nil {
			h.fail(w, r, route.path, job, err)
		}
		return
	}
	writeError(w, &api.Error{Status: http.StatusNotFound, Detail: "no such route; Zeus's are /register_job, /register_rank/{job_id}, /schedule/{job_id} and /result/{job_id}"})
}

var jobID = regexp.MustCompile(api.JobIDPattern)

func unknownJob(id string) error {
	return &api.Error{Status: http.StatusNotFound, Code: "unknown-job", Detail: fmt.Sprintf("job %s is not known: register it with POST /register_job", excerpt.Quoted(id, 128))}
}

// fail answers with an error. What is not meant for the client is logged, and said to be internal.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, route, job string, err error) {
	if r.Context().Err() != nil {
		return // nobody is there to read it
	}
	var refused *api.Error
	var invalid *invalid
	switch {
	case errors.As(err, &invalid):
		h.Log.Warn("zeus: request refused", "route", route, "job", job, "error", err)
		writeJSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": invalid.details})
		return
	case errors.As(err, &refused):
		h.Log.Warn("zeus: request refused", "route", route, "job", job, "status", refused.Status, "error", err)
	default:
		h.Log.Error("zeus: request failed", "route", route, "job", job, "error", err)
		refused = &api.Error{Status: http.StatusInternalServerError, Detail: "internal error; the server's log says more"}
	}
	writeError(w, refused)
}

func writeError(w http.ResponseWriter, err *api.Error) {
	if err.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(1))
	}
	writeJSON(w, err.Status, map[string]string{"detail": err.Detail})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"detail":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that went away is no error of ours
}
