// Package deploy holds what is installed around the program: dashboards, alerts, units, manifests, images. This test
// checks it with the tools of those who use it, and against the program's own flags and metrics.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metrics are those that perseus serve has, and their types.
var metrics = map[string]string{
	"perseus_jobs": "gauge", "perseus_http_requests_total": "counter", "perseus_http_request_seconds": "histogram",
	"perseus_reports_total": "counter", "perseus_schedules_published_total": "counter", "perseus_stragglers_total": "counter",
	"perseus_guardrail_trips_total": "counter", "perseus_characterize_seconds": "histogram", "perseus_frontier_cache_total": "counter",
	"perseus_long_polls": "gauge", "perseus_store_commit_seconds": "histogram", "perseus_store_batch_size": "histogram",
	"perseus_energy_saved_joules_total": "counter", "perseus_profiling_extra_seconds_total": "counter", "perseus_build_info": "gauge",
}

// tool returns the path of a program, by the variable that names it or by its own name. Where there is none the test is
// skipped, or fails if CI=true.
func tool(t *testing.T, name, variable, howto string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		found, err := exec.LookPath(name)
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: %s", name, howto)
			}
			t.Skipf("%s is missing: %s", name, howto)
		}
		path = found
	}
	return path
}

// do runs a program in this folder and returns what it printed; it fails the test where the program does.
func do(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func promtool(t *testing.T) string {
	return tool(t, "promtool", "PERSEUS_PROMTOOL", "on Debian: apt-get install prometheus")
}

// TestAlerts has promtool read the rules and play them, and sees that each alert is seen both firing and silent.
func TestAlerts(t *testing.T) {
	p := promtool(t)
	do(t, p, "check", "rules", "prometheus/perseus.rules.yaml")
	do(t, p, "test", "rules", "prometheus/perseus.rules.test.yaml")
	tests := read(t, "prometheus/perseus.rules.test.yaml")
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "prometheus/perseus.rules.yaml"), -1) {
		firing := regexp.MustCompile(`alertname: ` + m[1] + `\n\s+exp_alerts:`)
		silent := `alertname: ` + m[1] + `}`
		if !firing.MatchString(tests) || !strings.Contains(tests, silent) {
			t.Errorf("%s is not tested both firing and silent", m[1])
		}
	}
}

// TestAlertsGoRed shows that a rule which is wrong fails its test.
func TestAlertsGoRed(t *testing.T) {
	p := promtool(t)
	dir := t.TempDir()
	for _, name := range []string{"perseus.rules.yaml", "perseus.rules.test.yaml"} {
		text := strings.ReplaceAll(read(t, "prometheus/"+name), `max(perseus_jobs{state="stale"}) > 0`, `max(perseus_jobs{state="stale"}) > 5`)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), p, "test", "rules", filepath.Join(dir, "perseus.rules.test.yaml")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "PerseusJobStale") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestScrapeExample has promtool read the example as the configuration that it is part of.
func TestScrapeExample(t *testing.T) {
	p := promtool(t)
	text := strings.NewReplacer("/etc/prometheus/perseus-token", "token", "/etc/prometheus/perseus.rules.yaml", "rules.yaml").Replace(read(t, "prometheus/scrape.yaml"))
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yml": text, "token": "x", "rules.yaml": read(t, "prometheus/perseus.rules.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do(t, p, "check", "config", filepath.Join(dir, "prometheus.yml"))
}

type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct {
			Expr, RefID string
		}
	}
	Templating struct {
		List []struct{ Name, Type string }
	}
}

// TestDashboard: panels have their own ids and places, and promtool takes each query.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "grafana/perseus.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "perseus" || len(d.Panels) < 10 {
		t.Errorf("dashboard %q with %d panels", d.UID, len(d.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	var rules bytes.Buffer
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id of another", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Errorf("panel %q is over %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$instance", ".*").Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: unknown variable in %s", p.Title, target.Expr)
			}
			fmt.Fprintf(&rules, "      - record: panel:%d:%d\n        expr: %s\n", p.ID, i, quoteYAML(expr))
		}
	}
	for _, v := range d.Templating.List {
		if v.Name != "datasource" && v.Name != "instance" {
			t.Errorf("variable %q is not used", v.Name)
		}
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, rules.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, promtool(t), "check", "rules", path)
}

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// TestMetricNames: rules and dashboard ask for metrics that the server has, as their types allow.
func TestMetricNames(t *testing.T) {
	word := regexp.MustCompile(`\bperseus_[a-z_]+`)
	used := map[string]bool{}
	for _, name := range []string{"prometheus/perseus.rules.yaml", "prometheus/perseus.rules.test.yaml", "grafana/perseus.json"} {
		for _, m := range word.FindAllString(read(t, name), -1) {
			base, histogram := m, false
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if b, ok := strings.CutSuffix(m, suffix); ok && metrics[b] == "histogram" {
					base, histogram = b, true
				}
			}
			if typ, ok := metrics[base]; !ok || (typ == "histogram") != histogram && !strings.Contains(name, "rules") {
				t.Errorf("%s: there is no metric %s", name, m)
			}
			used[base] = true
		}
	}
	for m := range metrics {
		if !used[m] {
			t.Errorf("%s is neither on the dashboard nor in an alert", m)
		}
	}
}

// TestKubernetes validates all manifests against Kubernetes's own schemas, unknown fields included.
func TestKubernetes(t *testing.T) {
	k := tool(t, "kubernetes-validate", "PERSEUS_KUBERNETES_VALIDATE", "pip install kubernetes-validate==1.37.0 into a virtual environment, and set PERSEUS_KUBERNETES_VALIDATE to its program")
	listed := regexp.MustCompile(`(?m)^  - (\w+\.yaml)$`).FindAllStringSubmatch(read(t, "kubernetes/kustomization.yaml"), -1)
	var resources []string
	for _, m := range listed {
		resources = append(resources, "kubernetes/"+m[1])
	}
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "kustomization.yaml" })
	slices.Sort(resources)
	if !slices.Equal(files, resources) {
		t.Errorf("kustomization.yaml lists %v, there are %v", resources, files)
	}
	out := do(t, k, append([]string{"--strict"}, files...)...)
	if n := strings.Count(out, " passed "); n != 5 {
		t.Errorf("%d resources passed, want 5:\n%s", n, out)
	}
	// It does find a fault.
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(read(t, "kubernetes/agent.yaml"), "updateStrategy:", "updateStrateggy:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), k, "--strict", bad).CombinedOutput(); err == nil {
		t.Errorf("a misspelt field passed:\n%s", out)
	}
}

// TestPrivilege: nothing has more rights than it needs, in manifests and units.
func TestPrivilege(t *testing.T) {
	for _, name := range []string{"kubernetes/server.yaml", "kubernetes/agent.yaml"} {
		text := withoutComments(read(t, name))
		for _, banned := range []string{"privileged:", "hostNetwork", "hostPID", "hostIPC", "allowPrivilegeEscalation: true", "automountServiceAccountToken: true"} {
			if strings.Contains(text, banned) {
				t.Errorf("%s has %s", name, banned)
			}
		}
		for _, needed := range []string{"automountServiceAccountToken: false", "readOnlyRootFilesystem: true", "drop: [ALL]", "type: RuntimeDefault"} {
			if !strings.Contains(text, needed) {
				t.Errorf("%s lacks %s", name, needed)
			}
		}
	}
	server, agent := read(t, "kubernetes/server.yaml"), read(t, "kubernetes/agent.yaml")
	if strings.Contains(server, "add:") || strings.Contains(server, "hostPath") || !strings.Contains(server, "runAsNonRoot: true") {
		t.Error("the server has rights that it does not need")
	}
	if got := regexp.MustCompile(`add: .*`).FindAllString(agent, -1); !slices.Equal(got, []string{"add: [SYS_ADMIN, CHOWN]"}) {
		t.Errorf("the agent's capabilities: %v", got)
	}
	for unit, capabilities := range map[string]string{"perseus-server": "CapabilityBoundingSet=\n", "perseus-agent": "CapabilityBoundingSet=CAP_SYS_ADMIN CAP_CHOWN\n"} {
		text := read(t, "systemd/"+unit+".service")
		for _, needed := range []string{capabilities, "NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "SystemCallFilter=@system-service\n", "ProtectHome=yes\n", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"} {
			if !strings.Contains(text, needed) {
				t.Errorf("%s lacks %s", unit, strings.TrimSpace(needed))
			}
		}
	}
}

func withoutComments(text string) string {
	return regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(text, "")
}

// TestUnits has systemd read the units, and rate how exposed they are.
func TestUnits(t *testing.T) {
	s := tool(t, "systemd-analyze", "PERSEUS_SYSTEMD_ANALYZE", "on Debian: apt-get install systemd")
	dir := t.TempDir()
	for unit, limit := range map[string]string{"perseus-server.service": "20", "perseus-agent.service": "35"} {
		// The program need not be installed for that.
		text := strings.ReplaceAll(read(t, "systemd/"+unit), "ExecStart=/usr/bin/perseus", "ExecStart=/bin/true")
		text = strings.ReplaceAll(text, "Documentation=man:perseus(1)\n", "")
		path := filepath.Join(dir, unit)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := do(t, s, "verify", "--man=no", path); strings.TrimSpace(out) != "" {
			t.Errorf("%s: %s", unit, out)
		}
		do(t, s, "security", "--offline=true", "--threshold="+limit, path)
	}
}

// TestContainerfile: bases have a tag, images say who they run as and start the program without a shell.
func TestContainerfile(t *testing.T) {
	text := read(t, "container/Containerfile")
	stages := regexp.MustCompile(`(?m)^FROM (\S+) AS (\w+)$`).FindAllStringSubmatch(text, -1)
	if len(stages) != 3 || strings.Count(text, "\nFROM ") != 3 {
		t.Fatalf("stages %v", stages)
	}
	for _, s := range stages {
		if base := s[1]; base != "scratch" && (!strings.Contains(base, ":") || strings.HasSuffix(base, ":latest")) {
			t.Errorf("stage %s: %s has no tag", s[2], base)
		}
		body := text[strings.Index(text, s[0]):]
		if next := strings.Index(body[1:], "\nFROM "); next >= 0 {
			body = body[:next+1]
		}
		if s[2] == "build" {
			continue
		}
		for _, needed := range []string{"\nUSER ", `ENTRYPOINT ["/usr/bin/perseus"]`, "ca-certificates.crt"} {
			if !strings.Contains(body, needed) {
				t.Errorf("stage %s lacks %s", s[2], needed)
			}
		}
	}
	for _, banned := range []string{"\nADD ", "sudo", "curl", ":latest", "apt-get"} {
		if strings.Contains(text, banned) {
			t.Errorf("it has %q", strings.TrimSpace(banned))
		}
	}
}

// TestPackages: what goes into packages exists, and their scripts are scripts.
func TestPackages(t *testing.T) {
	config := read(t, "../.goreleaser.yaml")
	sources := regexp.MustCompile(`src: ([^,]+), dst: /`).FindAllStringSubmatch(config, -1)
	if len(sources) < 10 {
		t.Errorf("%d files", len(sources))
	}
	for _, m := range sources {
		if strings.HasPrefix(m[1], "dist-extra/") {
			continue // package/extras.sh makes these
		}
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, script := range []string{"extras.sh", "postinstall.sh", "preremove.sh", "postremove.sh", "build.sh", "reproduce.sh"} {
		do(t, "sh", "-n", "package/"+script)
		if !strings.Contains(config+read(t, "package/reproduce.sh")+read(t, "../Makefile"), "deploy/package/"+script) {
			t.Errorf("%s is not used", script)
		}
	}
	// make package has the same as a release: from the vendor to the last file, but for the binary, which goreleaser adds.
	part := func(text string) (lines []string) {
		_, text, _ = strings.Cut(text, "vendor:")
		text, _, _ = strings.Cut(text, "\nsboms:")
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !strings.Contains(line, "${BINARY}") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if release, own := part(config), part(read(t, "package/nfpm.yaml")); !slices.Equal(release, own) {
		t.Errorf(".goreleaser.yaml and package/nfpm.yaml differ:\n%s\n\n%s", strings.Join(release, "\n"), strings.Join(own, "\n"))
	}
}

// TestFlags: units, manifests and images give the program flags that it has.
func TestFlags(t *testing.T) {
	perseus := filepath.Join(t.TempDir(), "perseus")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", perseus, "../cmd/perseus").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	for command, files := range map[string][]string{
		"serve": {"systemd/perseus-server.service", "systemd/server.env", "kubernetes/server.yaml"},
		"agent": {"systemd/perseus-agent.service", "systemd/agent.env", "kubernetes/agent.yaml"},
	} {
		help := do(t, perseus, command, "--help") + " "
		for _, f := range files {
			for _, used := range flag.FindAllString(strings.ReplaceAll(read(t, f), "docs/", ""), -1) {
				if used != "--state" && !regexp.MustCompile(used+`\b[^-]`).MatchString(help) {
					t.Errorf("%s: perseus %s has no %s", f, command, used)
				}
			}
		}
	}
}

// TestDocs: what the pages refer to exists.
func TestDocs(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, page := range []string{"zeus.md", "operate.md", "threat-model.md", "troubleshooting.md"} {
		for _, m := range link.FindAllStringSubmatch(read(t, "../docs/"+page), -1) {
			if _, err := os.Stat(filepath.Join("../docs", m[1])); errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s does not exist", page, m[1])
			}
		}
	}
	operate := read(t, "../docs/operate.md")
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, "prometheus/perseus.rules.yaml"), -1) {
		if !strings.Contains(operate, m[1]) {
			t.Errorf("operate.md does not explain %s", m[1])
		}
	}
	for name := range metrics {
		if !strings.Contains(operate, name) {
			t.Errorf("operate.md does not explain %s", name)
		}
	}
}
