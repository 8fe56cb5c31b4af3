package zeus

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzMetadata(f *testing.F) {
	for _, s := range []string{
		"schedule=1f1b;microbatches=8;model_key=gpt3", "free text", ";;=;a=b", "schedule=", "chunks=2;chunks=2",
		"blocking_power_w=NaN", "microbatches=99999999999999999999", "gpu=NVIDIA A40; name = x = y ;", "\xff=\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseMetadata(text)
		if err != nil {
			if s != (settings{}) || err.Error() == "" {
				t.Errorf("%q: %+v beside the error %v", text, s, err)
			}
			return
		}
		if s.Microbatches < 0 || s.Microbatches > 65536 || s.Chunks < 0 || s.Chunks > 64 || s.BlockingPowerW < 0 || s.BlockingPowerW > 10000 {
			t.Errorf("%q: out of bounds: %+v", text, s)
		}
		for _, field := range []string{s.Name, s.ModelKey, s.GPU, s.Schedule} {
			if utf8.RuneCountInString(field) > 200 || strings.Contains(s.ModelKey+s.GPU+s.Schedule, ";") {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}

// FuzzBodies sends any bytes to each route: no panic, no 500, always JSON.
func FuzzBodies(f *testing.F) {
	s := newService()
	h := newHandler(f, s)
	put := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}
	var id string
	_ = json.Unmarshal(put("POST", "/register_job", aJob).Body.Bytes(), &id)
	const rank = `{"rank":0,"dp_rank":0,"pp_rank":0,"tp_rank":0,"available_frequencies":[1410]}`
	put("POST", "/register_rank/"+id, rank)
	put("POST", "/register_rank/"+id, `{"rank":1,"dp_rank":0,"pp_rank":1,"tp_rank":0,"available_frequencies":[1410]}`)

	f.Add(aJob)
	f.Add(rank)
	f.Add(`{"rank":1,"iter_time":[1],"iter_energy":[1e3],"time_breakdown":{"forward":[[1,2,3]],"backward":[[1,2,3]]},"energy_breakdown":{"forward":[[1,2,3]]}}`)
	f.Add(`{"rank":0,"iter_time":[1e999],"iter_energy":null}`)
	f.Add(`{"pp_degree":1e2,"dp_degree":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/register_job", "/register_rank/" + id, "/result/" + id} {
			w := put("POST", path, body)
			if w.Code >= http.StatusInternalServerError || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports = s.reports[:0]
		for other := range s.jobs {
			if other != id {
				delete(s.jobs, other)
			}
		}
	})
}
