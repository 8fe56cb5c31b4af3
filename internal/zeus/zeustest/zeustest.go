// Package zeustest drives the real client of Zeus's pipeline frequency optimizer, PyPI's package zeus, against a
// server, for tests only. The client's GPUs and its PyTorch are stand-ins; see testdata/client.py.
package zeustest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PythonVariable names the environment variable with the path of a Python that has zeus and what it needs.
const PythonVariable = "PERSEUS_ZEUS_PYTHON"

// Requirements are what that Python needs: pip install them into a virtual environment.
const Requirements = "zeus==0.16.0 aiofiles"

//go:embed testdata/client.py
var script []byte

// Training is a training run by 1F1B, one process a rank.
type Training struct {
	URL          string // base URL of the server
	PP, DP, TP   int
	Microbatches int
	Steps        int
	Metadata     string
	Clocks       []int // that each GPU offers, MHz
}

// Rank is what became of a rank.
type Rank struct {
	Rank     int     `json:"rank"`
	PP       int     `json:"pp_rank"`
	Job      string  `json:"job"`
	Schedule []Op    `json:"schedule"`
	Error    string  `json:"error"`
	GPU      [][]any `json:"gpu"` // calls in their order, e.g. "lock", 1410, 1410
}

// Op is one entry of a schedule.
type Op struct {
	Name string
	MHz  int
}

// UnmarshalJSON reads the pair that the protocol has.
func (o *Op) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&o.Name, &o.MHz})
}

// Locks returns the clocks that the rank's GPU was locked to, in their order.
func (r *Rank) Locks() []int {
	var clocks []int
	for _, call := range r.GPU {
		if len(call) == 3 && call[0] == "lock" && call[1] == call[2] {
			mhz, _ := call[1].(float64)
			clocks = append(clocks, int(mhz))
		}
	}
	return clocks
}

// Python returns the path of a Python that has zeus. Where there is none the test is skipped, or fails if CI=true.
func Python(t testing.TB) string {
	t.Helper()
	python := os.Getenv(PythonVariable)
	if python == "" {
		missing(t, "%s is not set: python3 -m venv D && D/bin/pip install %s, then set it to D/bin/python", PythonVariable, Requirements)
	}
	if out, err := exec.Command(python, "-c", "import zeus, aiofiles").CombinedOutput(); err != nil {
		missing(t, "%s=%s: %v\n%s", PythonVariable, python, err, out)
	}
	return python
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Run trains and returns what became of each rank, by rank. It fails the test where the script itself fails; an error
// of a rank is in its result.
func Run(t testing.TB, training Training) []Rank {
	t.Helper()
	python := Python(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "client.py")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	clocks := make([]string, len(training.Clocks))
	for i, c := range training.Clocks {
		clocks[i] = strconv.Itoa(c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, path, "--url="+training.URL, "--dir="+dir, "--metadata="+training.Metadata,
		fmt.Sprintf("--pp=%d", training.PP), fmt.Sprintf("--dp=%d", training.DP), fmt.Sprintf("--tp=%d", training.TP),
		fmt.Sprintf("--microbatches=%d", training.Microbatches), fmt.Sprintf("--steps=%d", training.Steps),
		"--clocks="+strings.Join(clocks, ","))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("client.py: %v\n%s", err, stderr.Bytes())
	}
	var ranks []Rank
	if err := json.Unmarshal(stdout.Bytes(), &ranks); err != nil {
		t.Fatalf("client.py printed %q: %v\n%s", stdout.Bytes(), err, stderr.Bytes())
	}
	if want := training.PP * training.DP * training.TP; len(ranks) != want {
		t.Fatalf("%d ranks, want %d", len(ranks), want)
	}
	return ranks
}
