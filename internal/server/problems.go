package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
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
	"request":          "The request is not as the API describes it",
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
		s.unavailable.Do(func() { s.log.Warn("requests are answered 503", "error", err) })
		return huma.ErrorWithHeaders(problem(unavailable(err)), http.Header{"Retry-After": {retryAfterS}})
	case ctx.Err() != nil: // the client has gone
		return problem(&api.Error{Status: 499, Code: "internal", Detail: "the request was given up"})
	}
	s.log.Error("a request failed", "error", err)
	return problem(&api.Error{Status: 500, Code: "internal", Detail: "the server failed; its log says why"})
}

// unavailable is the refusal where the store is.
func unavailable(err error) *api.Error {
	e := &api.Error{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: "the database is not available: try again soon"}
	if errors.Is(err, store.ErrFull) {
		e.Detail = "no space is left for the database: its operator must free some"
	}
	return e
}

func problem(e *api.Error) *huma.ErrorModel {
	return &huma.ErrorModel{Type: "urn:perseus:" + e.Code, Title: problems[e.Code], Status: e.Status, Detail: e.Detail}
}

// Bounds of what a refusal repeats of a request, so that none makes an answer that is larger than itself.
const (
	mistakesShown = 10
	repeatedMax   = 200 // bytes
)

// terse shortens the mistakes that were found in a request, and gives them a type of the table.
func terse(_ huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok || e.Type != "" {
		return v, nil
	}
	short := *e
	short.Type, short.Title = "urn:perseus:request", problems["request"]
	short.Errors = nil
	for i, d := range e.Errors {
		if i == mistakesShown {
			short.Errors = append(short.Errors, &huma.ErrorDetail{Message: fmt.Sprintf("and %d more", len(e.Errors)-i)})
			break
		}
		d := &huma.ErrorDetail{Message: excerpt.Of(d.Message, repeatedMax), Location: excerpt.Of(d.Location, repeatedMax), Value: d.Value}
		switch value := d.Value.(type) {
		case string:
			d.Value = excerpt.Of(value, repeatedMax)
		case []byte:
			d.Value = excerpt.Of(string(value), repeatedMax)
		case nil, bool, float64, int, int64, json.Number:
		default: // an object or a list
			d.Value = nil
		}
		short.Errors = append(short.Errors, d)
	}
	return &short, nil
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
