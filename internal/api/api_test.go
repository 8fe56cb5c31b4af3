package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var messages = []any{
	Job{},
	JobList{},
	RankRegistration{},
	RankRegistered{},
	Schedules{},
	Reports{},
	Accepted{},
	Straggler{},
	Goal{},
	MeasureRequest{},
	Measured{},
	Event{},
}

// TestFields walks all fields of all messages: each is named on the wire, and a name says the unit of a fraction.
func TestFields(t *testing.T) {
	wire := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	unit := regexp.MustCompile(`(_s|_j|_w|_percent|_fraction|_budget|^slowdown)$`)
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !wire.MatchString(name) {
				t.Errorf("%s.%s: the name %q on the wire is not in small letters", typ, f.Name, name)
			}
			for _, tag := range []string{"minimum", "maximum"} {
				if v := f.Tag.Get(tag); v != "" {
					if _, err := strconv.ParseFloat(v, 64); err != nil {
						t.Errorf("%s.%s: %s: %v", typ, f.Name, tag, err)
					}
				}
			}
			if p := f.Tag.Get("pattern"); p != "" {
				if _, err := regexp.Compile(p); err != nil {
					t.Errorf("%s.%s: %v", typ, f.Name, err)
				}
			}
			elem := f.Type
			for elem.Kind() == reflect.Slice {
				elem = elem.Elem()
			}
			if elem.Kind() == reflect.Float64 && !unit.MatchString(name) {
				t.Errorf("%s.%s: %q does not say its unit", typ, f.Name, name)
			}
			walk(f.Type)
		}
	}
	for _, m := range messages {
		walk(reflect.TypeOf(m))
	}
	if len(seen) < len(messages) {
		t.Errorf("%d types seen, fewer than messages", len(seen))
	}
}

// TestRankZero shows that rank 0 is not mistaken for no rank.
func TestRankZero(t *testing.T) {
	zero := 0
	for _, tt := range []struct {
		in   Straggler
		want string
	}{
		{Straggler{Rank: &zero, Slowdown: 1.2}, `{"rank":0,"slowdown":1.2}`},
		{Straggler{GPU: "nvidia:GPU-1", MaxFrequencyMHz: 1200}, `{"gpu_id":"nvidia:GPU-1","max_frequency_mhz":1200}`},
	} {
		got, err := json.Marshal(tt.in)
		if err != nil || string(got) != tt.want {
			t.Errorf("Marshal(%+v) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
		var back Straggler
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, tt.in) {
			t.Errorf("Unmarshal(%s) = %+v, %v", got, back, err)
		}
	}
}
