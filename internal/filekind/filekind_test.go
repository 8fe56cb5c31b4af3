package filekind

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"\ufeffstage,instruction,frequency,time,energy\n0,forward", Profile},
		{"frequency, time, energy, instruction, stage\r\n", Profile},
		{`{"format":"perseus-frontier/1","schedule"`, Frontier},
		{"{\n  \"format\": \"perseus-frontier/2\",", Frontier},
		{`{"format":"perseus-plan/1"`, Plan + " (JSON)"},
		{`{"format": "perseus-dag/1"`, Graph},
		{`{"format":"another/1"`, ""},
		{"rank,stage,microbatch,instruction,frequency_mhz,start_s\n", Plan + " (CSV)"},
		{"global_rank,pipeline,rank,stage\n", GPUPlan},
		{"pipeline,rank,stage,microbatch,instruction\n", Timeline},
		{"time_s,relaxed_time_s,energy_j\n", Points},
		{"# perseus-plan/1: 1f1b\n[\n", ZeusPlan},
		{"[\n[('forward', 1410)]", ZeusPlan},
		{"<svg xmlns", Picture},
		{"<!doctype html>", Page},
		{"a,b,c\n1,2,3\n", ""},
		{"PK\x03\x04", ""},
		{"{", ""},
	} {
		if got := Of([]byte(c.text)); got != c.want {
			t.Errorf("%q is %q, want %q", c.text, got, c.want)
		}
	}
}
