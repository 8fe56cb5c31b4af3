package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/store"
)

// problems names what the codes of refusals stand for: the title of their problem+json.
var problems = map[string]string{
	"blocking-power":   "The power of a waiting GPU is missing",
	"generation":       "There is no such generation",
	"goal":             "No plan can have this goal",
	"internal":         "The server failed",
	"job-exists":       "The job exists with another description",
	"job-id":           "This cannot be a job's id",
	"job-spec":         "The job's description contradicts itself",
	"job-state":        "The job's state does not allow it",
	"measuring":        "The job is being measured",
	"no-frontier":      "There is no frontier yet",
	"no-profile":       "There is no profile yet",
	"older-generation": "The generation is over",
	"profile":          "The profile is wrong",
	"rank":             "There is no such rank",
	"ranks-missing":    "Ranks are missing",
	"scope":            "The token's scope does not allow it",
	"stopping":         "The server is shutting down",
	"straggler":        "The straggler's description contradicts itself",
	"token":            "A valid token is needed",
	"time":             "Not a time",
	"unavailable":      "The database is not available",
	"unknown-gpu":      "There is no such GPU",
	"unknown-job":      "There is no such job",
	"version":          "There is no such version",
}

// retryAfterS is when to try again while the database is away.
const retryAfterS = "2"

// asProblem turns an error of the service into the answer that its client gets.
func (s *Server) asProblem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		p := problem(refused)
		if refused.Status == http.StatusServiceUnavailable {
			return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {retryAfterS}})
		}
		return p
	case errors.Is(err, store.ErrUnavailable):
		s.log.Warn("database unavailable", "error", err)
		return huma.ErrorWithHeaders(problem(&api.Error{Status: 503, Code: "unavailable", Detail: "the database is not available: try again soon"}), http.Header{"Retry-After": {retryAfterS}})
	case ctx.Err() != nil: // the client has gone
		return problem(&api.Error{Status: 499, Code: "internal", Detail: "the request was given up"})
	}
	s.log.Error("a request failed", "error", err)
	return problem(&api.Error{Status: 500, Code: "internal", Detail: "the server failed; its log says why"})
}

func problem(e *api.Error) *huma.ErrorModel {
	return &huma.ErrorModel{Type: "urn:perseus:" + e.Code, Title: problems[e.Code], Status: e.Status, Detail: e.Detail}
}

// writeProblem answers outside of the described API.
func writeProblem(w http.ResponseWriter, e *api.Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfterS)
	}
	w.WriteHeader(e.Status)
	writeJSON(w, problem(e))
}

func writeJSON(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }
