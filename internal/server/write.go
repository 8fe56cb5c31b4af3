package server

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

func writeJSON(w io.Writer, v any) { _ = json.NewEncoder(w).Encode(v) }

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// newID makes the id of a job that named none.
func newID() string { return "job-" + strings.ToLower(rand.Text()) }
