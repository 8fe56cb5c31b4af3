package zeus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
)

// Limits of what a client may send, in bytes.
const (
	maxBody   = 64 << 10
	maxResult = 8 << 20
)

// detail is one fault of a request, in the form of Zeus's server: where, what, and of which kind.
type detail struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}

// invalid is a request that is answered with 422.
type invalid struct{ details []detail }

func (e *invalid) Error() string {
	texts := make([]string, len(e.details))
	for i, d := range e.details {
		texts[i] = strings.Join(d.Loc, ".") + ": " + d.Msg
	}
	return strings.Join(texts, "; ")
}

// add notes a fault of a field of the body.
func (e *invalid) add(field, format string, args ...any) {
	e.details = append(e.details, detail{[]string{"body", field}, fmt.Sprintf(format, args...), "value_error"})
}

// missing notes that a field is not there, or null.
func (e *invalid) missing(field string) {
	e.details = append(e.details, detail{[]string{"body", field}, "field required", "value_error.missing"})
}

// integer returns the value of a field that must be there and within bounds; otherwise it notes the fault.
func (e *invalid) integer(field string, v *int, low, high int) int {
	switch {
	case v == nil:
		e.missing(field)
		return low
	case *v < low || *v > high:
		e.add(field, "%d: must be from %d to %d", *v, low, high)
		return low
	}
	return *v
}

// orNil returns e where it holds a fault.
func (e *invalid) orNil() error {
	if len(e.details) == 0 {
		return nil
	}
	return e
}

// readBody decodes the one JSON object that is a request's body, of at most limit bytes. Fields that are not known are
// left alone, as Zeus's server does. It fails with 413 or 422.
func readBody(r *http.Request, limit int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return &api.Error{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the body could not be read: %v", err)}
	}
	if int64(len(text)) > limit {
		return &api.Error{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", limit)}
	}
	return decode(text, into)
}

// decode is readBody for a text.
func decode(text []byte, into any) error {
	fault := func(loc []string, msg, typ string) error {
		return &invalid{[]detail{{append([]string{"body"}, loc...), msg, typ}}}
	}
	if trimmed := strings.TrimLeft(string(text[:min(len(text), 64)]), " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return fault(nil, "expected a JSON object", "value_error.jsondecode")
	}
	err := json.Unmarshal(text, into)
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typ):
		return fault(strings.Split(typ.Field, "."), fmt.Sprintf("%s: expected %s", typ.Value, typ.Type), "type_error")
	default:
		return fault(nil, err.Error(), "value_error.jsondecode")
	}
}
