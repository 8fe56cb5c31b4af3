package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/shareddata"
)

// makeExample computes the example's frontier and profile once for all tests.
var makeExample = sync.OnceValues(func() (frontier, profile string) {
	dir, err := os.MkdirTemp("", "perseus")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	out, csv := filepath.Join(dir, "F.json"), filepath.Join(dir, "P.csv")
	var stdout, stderr bytes.Buffer
	status := run(context.Background(), []string{"frontier", "--example", "-o", out, "--write-profile", csv}, strings.NewReader(""), &stdout, &stderr)
	if status != statusDone || stdout.Len() > 0 || !strings.Contains(stderr.String(), "saved") || !strings.Contains(stderr.String(), "8 stages") {
		panic(stderr.String())
	}
	f, errF := os.ReadFile(out)
	p, errP := os.ReadFile(csv)
	if err := errors.Join(errF, errP); err != nil {
		panic(err)
	}
	return string(f), string(p)
})

// exampleFiles writes the example's frontier and profile into a folder.
func exampleFiles(t testing.TB) (frontier, profile string) {
	t.Helper()
	f, p := makeExample()
	return writeFile(t, "F.json", f), writeFile(t, "P.csv", p)
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFrontierShowPlanVerify is a user's way from the example to a plan.
func TestFrontierShowPlanVerify(t *testing.T) {
	frontier, profile := exampleFiles(t)

	shown := must(t, "show", frontier)
	for _, want := range []string{"fastest", "least energy", "straggler ×1.2", "all at top clocks", "GPU", "iteration time, s"} {
		if !strings.Contains(shown.stdout, want) {
			t.Errorf("show lacks %q:\n%s", want, shown.stdout)
		}
	}
	if strings.Contains(shown.stdout, "\x1b") {
		t.Error("show colours what is no terminal")
	}

	var landmarks struct {
		TMin    float64 `json:"t_min_s"`
		Savings []struct {
			Saving   float64
			Interval *struct{ Low, High, Level float64 } `json:"saving_interval"`
		}
	}
	if err := json.Unmarshal([]byte(must(t, "show", frontier, "--format", "json", "--profile", profile, "--resamples", "50").stdout), &landmarks); err != nil {
		t.Fatal(err)
	}
	for _, s := range landmarks.Savings {
		if s.Saving < 0.1 || s.Interval == nil || s.Interval.Low > s.Interval.High || s.Interval.Level != 0.95 ||
			s.Interval.Low < s.Saving-0.05 || s.Interval.High > s.Saving+0.05 {
			t.Errorf("saving %+v, interval %+v", s, s.Interval)
		}
	}

	points, err := csv.NewReader(strings.NewReader(must(t, "show", frontier, "--format", "csv").stdout)).ReadAll()
	if err != nil || len(points) < 100 || points[0][0] != "time_s" {
		t.Errorf("%d points, %v", len(points)-1, err)
	}

	verified := must(t, "verify", frontier, "--profile", profile)
	if !strings.Contains(verified.stdout, "frontier") || verified.stderr != "" {
		t.Errorf("verify: %+v", verified)
	}

	for _, goal := range [][]string{{"--fastest"}, {"--time", "3.1s"}, {"--slowdown", "1.1"}, {"--straggler", "1.2"}, {"--power", "2kW"}, {"--min-energy"}} {
		r := must(t, append([]string{"plan", frontier, "--effort", "fast"}, goal...)...)
		rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
		if err != nil || len(rows) != 1+8*12*2 || strings.Join(rows[0], ",") != "rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s,energy_j" {
			t.Errorf("plan %q: %d rows, %v", goal, len(rows), err)
		}
		if !strings.Contains(r.stderr, "saved") {
			t.Errorf("plan %q says %q", goal, r.stderr)
		}
	}
	short := filepath.Join(t.TempDir(), "F.json") // effort normal takes its time
	must(t, "frontier", "--example", "-m", "1", "-o", short)
	if r := must(t, "plan", short, "--straggler", "1.1"); !strings.Contains(r.stderr, "saved") {
		t.Errorf("plan at effort normal says %q", r.stderr)
	}
	if got := must(t, "plan", frontier, "--fastest", "--effort", "fast", "-q").stderr; got != "" {
		t.Errorf("plan -q says %q", got)
	}
	if got := must(t, "plan", frontier, "--fastest", "--effort", "fast", "--format", "zeus").stdout; !strings.Contains(got, "\n[('forward', ") {
		t.Errorf("zeus: %.100q", got)
	}
}

// TestAskedOutside asks for what the table in docs/plan.md lists: each answer outside the
// frontier is marked or an error, and --strict makes it an error.
func TestAskedOutside(t *testing.T) {
	frontier, _ := exampleFiles(t)
	const effort = "fast" // package plan tests the other one
	for _, test := range []struct {
		args     string
		status   int
		feasible bool
		note     string
	}{
		{"--time 1s", 0, false, "no plan is as fast as 1s"},
		{"--time 1s --strict", 1, false, "no plan is as fast as 1s"},
		{"--time 100s", 0, true, "would use more energy"},
		{"--time 100s --strict", 0, true, "would use more energy"},
		{"--straggler 1.0", 0, true, ""},
		{"--straggler 0.9", 2, false, "expected a factor of at least 1"},
		{"--straggler 3", 0, true, "no op saves anything by being slower"},
		{"--slowdown 0.5", 2, false, "expected a factor of at least 1"},
		{"--power 1W", 0, false, "draws as little as 1W"},
		{"--power 1W --strict", 1, false, "draws as little as 1W"},
		{"--power 1MW", 0, true, ""},
	} {
		r := perseus(t, "", append([]string{"plan", frontier, "--format", "json", "--effort", effort}, strings.Fields(test.args)...)...)
		if r.status != test.status || !strings.Contains(r.stderr, test.note) {
			t.Errorf("%s: status %d, %q", test.args, r.status, r.stderr)
		}
		if r.status != statusDone {
			if r.stdout != "" {
				t.Errorf("%s: failed and printed %.80q", test.args, r.stdout)
			}
			continue
		}
		var p struct {
			Feasible bool
			Note     string
		}
		if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || p.Feasible != test.feasible || !strings.Contains(p.Note, test.note) {
			t.Errorf("%s: %+v, %v", test.args, p, err)
		}
		if marked := strings.HasPrefix(r.stderr, "NOT FEASIBLE: "); marked == test.feasible {
			t.Errorf("%s: %q", test.args, r.stderr)
		}
	}
}

// TestSlowerGPU is a GPU that is capped to 1200 MHz: its stage's rows above are
// taken from the profile. Its own pipeline gets a frontier without them; the
// others wait for a straggler.
func TestSlowerGPU(t *testing.T) {
	frontier, profile := exampleFiles(t)
	over := func(mhz string) bool {
		v, err := strconv.Atoi(mhz)
		return err == nil && v > 1200
	}
	var capped strings.Builder
	for line := range strings.Lines(read(t, profile)) {
		if f := strings.Split(line, ","); f[0] == "3" && over(f[2]) {
			continue
		}
		capped.WriteString(line)
	}
	slower := filepath.Join(t.TempDir(), "capped.json")
	must(t, "frontier", "-p", writeFile(t, "P.csv", capped.String()), "--schedule", "1f1b", "-m", "12", "--blocking-power", "84", "-o", slower)
	rows, err := csv.NewReader(strings.NewReader(must(t, "plan", slower, "--fastest", "--effort", "fast").stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if row[1] == "3" && over(row[4]) {
			t.Errorf("an op of the capped GPU runs at %s MHz", row[4])
		}
	}
	var before, after struct {
		TMin float64 `json:"t_min_s"`
	}
	for path, v := range map[string]any{frontier: &before, slower: &after} {
		if err := json.Unmarshal([]byte(must(t, "show", path, "--format", "json").stdout), v); err != nil {
			t.Fatal(err)
		}
	}
	if after.TMin <= before.TMin {
		t.Errorf("t_min is %v with the capped GPU, %v without", after.TMin, before.TMin)
	}
}

// TestStreams checks that standard input and output and gzip do as well as files.
func TestStreams(t *testing.T) {
	frontier, profile := exampleFiles(t)
	text := read(t, frontier)
	common := []string{"--schedule", "1f1b", "-m", "12", "--blocking-power", "84"}
	if r := perseus(t, read(t, profile), append([]string{"frontier", "-p", "-"}, common...)...); r.status != 0 || r.stdout != text {
		t.Errorf("from standard input: status %d, %s, the same frontier: %v", r.status, r.stderr, r.stdout == text)
	}
	packed := filepath.Join(t.TempDir(), "F.json.gz")
	must(t, append([]string{"frontier", "-p", writeFile(t, "P.csv.gz", gzipped(t, read(t, profile))), "-o", packed}, common...)...)
	z, err := gzip.NewReader(strings.NewReader(read(t, packed)))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != text {
		t.Errorf("unpacked: the same frontier: %v, %v", string(b) == text, err)
	}
	want := must(t, "plan", frontier, "--fastest", "--effort", "fast").stdout
	for name, r := range map[string]result{
		"gzip":                   perseus(t, "", "plan", packed, "--fastest", "--effort", "fast"),
		"standard input":         perseus(t, text, "plan", "-", "--fastest", "--effort", "fast"),
		"gzip on standard input": perseus(t, read(t, packed), "plan", "-", "--fastest", "--effort", "fast"),
	} {
		if r.status != 0 || r.stdout != want {
			t.Errorf("%s: status %d, %s", name, r.status, r.stderr)
		}
	}
	out := filepath.Join(t.TempDir(), "plan.csv.gz")
	must(t, "plan", packed, "--fastest", "--effort", "fast", "-o", out)
	if got := read(t, out); !strings.HasPrefix(got, "\x1f\x8b") {
		t.Errorf("plan.csv.gz holds %.20q", got)
	}
	if r := perseus(t, read(t, profile), "verify", packed, "--profile", "-"); r.status != 0 {
		t.Errorf("verify: %+v", r)
	}
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestVerifyStatus holds the exit statuses of verify.
func TestVerifyStatus(t *testing.T) {
	frontier, profile := exampleFiles(t)
	text := read(t, frontier)
	for _, test := range []struct {
		name, text string
		status     int
	}{
		{"changed digit", strings.Replace(text, `"energy_j":6`, `"energy_j":5`, 1), 1},
		{"changed landmark", strings.Replace(text, `"t_max_s":4`, `"t_max_s":5`, 1), 1},
		{"other profile", strings.Replace(text, `"sha256":"`, `"sha256":"0`, 1), 1},
		{"other version", strings.Replace(text, frontierfile.Format, "perseus-frontier/2", 1), 2},
		{"cut short", text[:len(text)/2], 2},
		{"empty", "", 2},
		{"not JSON", "stage,instruction\n", 2},
	} {
		path := writeFile(t, "F.json", test.text)
		if r := perseus(t, "", "verify", path, "--profile", profile); r.status != test.status || !strings.HasPrefix(r.stderr, "perseus: "+path+":") || r.stdout != "" {
			t.Errorf("%s: %+v", test.name, r)
		}
		if r := perseus(t, "", "plan", path, "--fastest", "--effort", "fast"); test.status == statusBadInput && (r.status != statusBadInput || r.stdout != "") {
			t.Errorf("plan from a file that is %s: %+v", test.name, r)
		}
		if r := perseus(t, "", "show", path); test.status == statusBadInput && (r.status != statusBadInput || r.stdout != "") {
			t.Errorf("show of a file that is %s: %+v", test.name, r)
		}
	}
	if r := perseus(t, "", "verify", frontier, "--profile", writeFile(t, "P.csv", "stage,\x00")); r.status == 0 {
		t.Errorf("with another profile: %+v", r)
	}
}

// TestBadProfile checks that a profile's fault reaches the user with its place,
// and that rows are left out only on request.
func TestBadProfile(t *testing.T) {
	_, profile := exampleFiles(t)
	lines := strings.SplitAfter(read(t, profile), "\n")
	lines[2] = strings.Replace(lines[2], ".", ",", 1)
	path := writeFile(t, "P.csv", strings.Join(lines, ""))
	out := filepath.Join(t.TempDir(), "F.json")
	args := []string{"frontier", "-p", path, "--schedule", "1f1b", "-m", "4", "--blocking-power", "84", "-o", out}
	r := perseus(t, "", args...)
	if r.status != statusBadInput || !strings.Contains(r.stderr, path+":3") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a frontier was written")
	}
	r = perseus(t, "", append(args, "--skip-bad-rows")...)
	if r.status != statusDone || !strings.Contains(r.stderr, "skipped: 1 row") {
		t.Errorf("%+v", r)
	}
}

// TestInterrupt ends the context when the profile has been read: the frontier is
// not written, nor anything else, and the status says so.
func TestInterrupt(t *testing.T) {
	_, profile := exampleFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	in := io.MultiReader(strings.NewReader(read(t, profile)), reader(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	}))
	dir := t.TempDir()
	out := filepath.Join(dir, "F.json")
	var stdout, stderr bytes.Buffer
	status := run(ctx, []string{"frontier", "-p", "-", "--schedule", "1f1b", "-m", "96", "--blocking-power", "84", "-o", out}, in, &stdout, &stderr)
	if status != statusInterrupted || stderr.String() != "perseus: interrupted\n" || stdout.Len() > 0 {
		t.Errorf("status %d, %q, %q", status, &stdout, &stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// TestMeasuredProfile compares the landmarks of a measured profile with those
// that are known from other solvers.
func TestMeasuredProfile(t *testing.T) {
	profile := shareddata.Shared(t, "data", "profiles", "gpt3-175b-a100-sxm.csv")
	r := must(t, "frontier", "-p", profile, "--schedule", "1f1b", "-m", "12", "--blocking-power", "83.64", "--format", "json")
	for _, want := range []string{`"t_min_s":2.836510`, `"t_max_s":4.244163`, `"max_clock_energy_j":7338.997`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the frontier lacks %s", want)
		}
	}
	if !strings.Contains(r.stderr, "repaired: CRLF") {
		t.Errorf("nothing is said of the repair: %s", r.stderr)
	}
}

func TestSchedules(t *testing.T) {
	list := must(t, "schedules").stdout
	for _, name := range []string{"gpipe", "1f1b", "interleaved-1f1b", "zbv", "dualpipe"} {
		if !strings.Contains("\n"+list, "\n"+name+"\n") {
			t.Errorf("the list lacks %s:\n%s", name, list)
		}
	}
	table := must(t, "schedules", "show", "1f1b", "--ranks", "2", "-m", "3", "--format", "csv").stdout
	if want := "0F0,0F1,0B0,0F2,0B1,0B2"; !strings.HasPrefix(table, want) {
		t.Errorf("got %q, want %s…", table, want)
	}
	order := writeFile(t, "order.csv", must(t, "schedules", "show", "1f1b", "--ranks", "8", "-m", "12", "--format", "csv").stdout)
	named := must(t, "frontier", "--example", "--format", "text").stdout
	given := must(t, "frontier", "--example", "--schedule-csv", order, "--format", "text", "--blocking-power", "84").stdout
	_, named, _ = strings.Cut(named, ":")
	_, given, _ = strings.Cut(given, ":")
	if named != given {
		t.Errorf("an order from a file gives another frontier:\n%s\n%s", named, given)
	}
	var object struct{ Order [][]string }
	if err := json.Unmarshal([]byte(must(t, "schedules", "show", "gpipe", "--format", "json").stdout), &object); err != nil || len(object.Order) == 0 {
		t.Errorf("%+v, %v", object, err)
	}
	if got := must(t, "schedules", "show", "zbv").stdout; !strings.Contains(got, "\n") {
		t.Errorf("picture %q", got)
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if got := must(t, "version").stdout; !strings.HasPrefix(got, "perseus ") || !strings.Contains(got, frontierfile.Format) {
		t.Errorf("version says %q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		got := must(t, "completion", shell).stdout
		for _, want := range []string{"straggler", "verify", "zeus", "schedules show", "zb-h1"} {
			if !strings.Contains(got, want) {
				t.Errorf("the script for %s lacks %s", shell, want)
			}
		}
	}
}
