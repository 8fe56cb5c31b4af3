package importrules

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/perseus-energy/perseus"

// kind says what a package may do to the world around it.
type kind int

const (
	pure kind = iota // computes and nothing else: values in, values out, always the same ones
	core             // part of the library: reads and writes what it is handed, opens nothing by itself
	edge             // touches the world: files, clocks, sockets, processes, devices
)

// rule is one line of the table: what the package in the directory pkg, and those below it that have no line of their
// own, may import of this module.
type rule struct {
	pkg  string
	kind kind
	may  []string
}

// rules is read from the top down: a package may import only packages of lines above its own, so there is one
// direction and no cycle. A package that does not exist yet is no error; a package without a line is one.
var rules = []rule{
	// The common ground.
	{"internal/excerpt", pure, nil},
	{"internal/unpack", core, nil},
	{"internal/filekind", pure, nil},
	{"unit", pure, []string{"internal/excerpt"}},
	{"dag", pure, []string{"unit"}},

	// The two halves of a problem. They do not know each other.
	{"profile", core, []string{"unit", "internal/excerpt", "internal/filekind", "internal/unpack", "dag"}},
	{"pipeline", core, []string{"unit", "internal/excerpt", "dag"}},
	// Where GPUs are, and options of what was not measured. Nor do these two know anything else.
	{"parallel", pure, nil},
	{"derive", pure, []string{"unit", "internal/excerpt", "dag"}},

	// The solver. It knows nothing of profiles, pipelines and files.
	{"frontier", pure, []string{"unit", "dag"}},
	{"round", pure, []string{"unit", "dag", "frontier"}},

	// The result in a file, and its checker, which shares no code with what it checks.
	{"frontierfile", core, []string{"unit", "internal/filekind", "internal/unpack", "dag"}},
	{"verify", core, []string{"unit", "dag", "frontierfile"}},

	// What puts the parts together: characterize makes a frontier file, plan looks up one schedule in it.
	{"characterize", core, solver},
	{"plan", core, append(slices.Clone(solver), "characterize")},
	{"simulate", core, append(slices.Clone(solver), "internal/filekind", "characterize", "plan")},
	{"baseline", core, append(slices.Clone(solver), "characterize", "plan", "simulate")},
	{"report", core, append(slices.Clone(solver), "characterize", "plan", "simulate", "baseline")},

	// What decides for a running job: pure, so that it can be stored, replayed and tested.
	{"internal/api", core, nil},
	{"internal/campaign", pure, nil},
	{"internal/watch", pure, nil},
	{"internal/token", pure, nil},
	{"internal/control", pure, append(slices.Clone(solver), "plan", "internal/api", "internal/campaign", "internal/watch")},

	// The edges import the core, never the reverse.
	{"internal", edge, append(slices.Clone(library), "internal/excerpt", "internal/filekind", "internal/unpack",
		"internal/api", "internal/campaign", "internal/watch", "internal/token", "internal/control")},
	{"cmd", edge, append(slices.Clone(library), "internal/excerpt", "internal/api", "internal/control", "internal/token", "internal")},
}

var (
	solver  = []string{"unit", "dag", "profile", "pipeline", "parallel", "derive", "frontier", "round", "frontierfile", "verify"}
	library = append(slices.Clone(solver), "characterize", "plan", "simulate", "baseline", "report")
)

// forbidden lists the imports from outside this module that a kind must not have. A name that ends in a slash stands
// for the package and all below it.
var forbidden = map[kind][]string{
	core: {"database/sql/", "golang.org/x/net/", "golang.org/x/sys/", "log", "net/", "os/exec", "syscall"},
	// A pure package has the core's list as well.
	pure: {"context", "log/slog", "math/rand", "os/", "time/"},
	edge: {},
}

// vague are names that say nothing about what is inside.
var vague = []string{"common", "helper", "helpers", "model", "models", "types", "util", "utils"}

// TestTree applies the rules to this module.
func TestTree(t *testing.T) {
	broken, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

// TestTable keeps the table readable from the top down.
func TestTable(t *testing.T) {
	var above []string
	for _, r := range rules {
		for _, p := range r.may {
			if !slices.Contains(above, p) {
				t.Errorf("rule of %s: %s has no line above it", r.pkg, p)
			}
		}
		above = append(above, r.pkg)
	}
}

// TestRules shows for each rule that it lets the right through and stops the wrong.
func TestRules(t *testing.T) {
	const m = module
	tests := []struct {
		name string
		file string
		src  string
		want string // part of the one message expected; empty: the file is fine
	}{
		{"core imports what is above", "round/a.go", imports("round", m+"/frontier", m+"/unit", "slices"), ""},
		{"a package below", "frontier/a.go", imports("frontier", m+"/frontier/flow"), ""},
		{"edge imports core", "internal/server/a.go", imports("server", m+"/plan", "net/http", "database/sql"), ""},
		{"edge imports edge", "internal/agent/a.go", imports("agent", m+"/internal/gpu"), ""},
		{"core imports a part of internal that is core", "profile/a.go", imports("profile", m+"/internal/unpack"), ""},
		{"the same does not open the rest to it", "profile/a.go", imports("profile", m+"/internal/fileio"), "profile must not import internal/fileio"},
		{"nor to others", "frontier/a.go", imports("frontier", m+"/internal/unpack"), "frontier must not import internal/unpack"},
		{"which does not open the core to it", "internal/unpack/a.go", imports("unpack", m+"/dag"), "internal/unpack must not import dag"},
		{"nor the world", "internal/unpack/a.go", imports("unpack", "net"), "net: core"},
		{"a name that only starts alike", "internal/unpacked/a.go", imports("unpacked", m+"/dag"), ""},
		{"command imports edge", "cmd/perseus/a.go", imports("main", m+"/internal/server", "log/slog"), ""},
		{"core logs with slog and takes a context", "profile/a.go", imports("profile", "log/slog", "context", "os"), ""},
		{"math/rand/v2 is seeded", "round/a.go", imports("round", "math/rand/v2"), ""},
		{"tests are free", "dag/a_test.go", imports("dag", m+"/frontier", "os/exec", "time"), ""},
		{"testdata is not code", "dag/testdata/a.go", imports("util", m+"/cmd"), ""},
		{"hidden directories are not code", ".x/a.go", imports("util", "C"), ""},
		{"other modules are not ours", "tools/a.go", imports("tools", "C"), ""},

		{"unit imports nothing", "unit/a.go", imports("unit", m+"/dag"), "unit must not import dag"},
		{"dag only unit", "dag/a.go", imports("dag", m+"/profile"), "dag must not import profile"},
		{"profile without pipeline", "profile/a.go", imports("profile", m+"/pipeline"), "profile must not import pipeline"},
		{"pipeline without profile", "pipeline/a.go", imports("pipeline", m+"/profile"), "pipeline must not import profile"},
		{"solver without files", "frontier/a.go", imports("frontier", m+"/frontierfile"), "frontier must not import frontierfile"},
		{"solver without rounding", "frontier/a.go", imports("frontier", m+"/round"), "frontier must not import round"},
		{"checker without solver", "verify/a.go", imports("verify", m+"/frontier"), "verify must not import frontier"},
		{"checker without rounding", "verify/a.go", imports("verify", m+"/round"), "verify must not import round"},
		{"checker without pipeline", "verify/a.go", imports("verify", m+"/pipeline"), "verify must not import pipeline"},
		{"checker without profile", "verify/a.go", imports("verify", m+"/profile"), "verify must not import profile"},
		{"rule holds below", "verify/replay/a.go", imports("replay", m+"/round"), "verify must not import round"},
		{"core without edge", "plan/a.go", imports("plan", m+"/internal/gpu"), "plan must not import internal/gpu"},
		{"core without command", "report/a.go", imports("report", m+"/cmd/perseus"), "report must not import cmd/perseus"},
		{"edge without command", "internal/zeus/a.go", imports("zeus", m+"/cmd/perseus"), "internal must not import cmd/perseus"},
		{"nobody imports what has no line", "cmd/perseus/a.go", imports("main", m+"/cache"), "cmd must not import cache"},
		{"nobody imports the root", "dag/a.go", imports("dag", m), "dag must not import the module's root"},

		{"core without net", "report/a.go", imports("report", "net"), "net: core"},
		{"core without net/http", "report/a.go", imports("report", "net/http"), "net/http: core"},
		{"core without processes", "profile/a.go", imports("profile", "os/exec"), "os/exec: core"},
		{"core without log", "plan/a.go", imports("plan", "log"), "log: core"},
		{"core without sql", "plan/a.go", imports("plan", "database/sql/driver"), "database/sql/driver: core"},
		{"core without syscall", "simulate/a.go", imports("simulate", "syscall"), "syscall: core"},
		{"pure without clock", "frontier/a.go", imports("frontier", "time"), "time: pure"},
		{"pure without context", "frontier/a.go", imports("frontier", "context"), "context: pure"},
		{"pure without files", "dag/a.go", imports("dag", "os"), "os: pure"},
		{"pure without slog", "round/a.go", imports("round", "log/slog"), "log/slog: pure"},
		{"pure without the global random source", "round/a.go", imports("round", "math/rand"), "math/rand: pure"},
		{"pure has the core's list too", "unit/a.go", imports("unit", "net/netip"), "net/netip: pure"},

		{"no cgo", "internal/gpu/a.go", imports("gpu", "C"), "cgo"},
		{"a new package needs a line", "cache/a.go", imports("cache"), "add a line for it"},
		{"so does code at the root", "a.go", imports("perseus"), "add a line for it"},
		{"vague package name", "internal/x/a.go", imports("helpers"), `package name "helpers"`},
		{"vague directory name", "internal/util/a.go", imports("x"), `package name "util"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken, err := check(fstest.MapFS{
				"go.mod":       {Data: []byte("module " + module + "\n")},
				"tools/go.mod": {Data: []byte("module " + module + "/tools\n")},
				tt.file:        {Data: []byte(tt.src)},
			})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(broken) > 0:
				t.Errorf("got %q, want no violation", broken)
			case tt.want != "" && (len(broken) != 1 || !strings.Contains(broken[0], tt.want)):
				t.Errorf("got %q, want one violation with %q", broken, tt.want)
			}
		})
	}
}

// imports returns the source of a file of the package name with the given imports.
func imports(name string, paths ...string) string {
	src := "package " + name + "\n"
	for _, p := range paths {
		src += "import " + strconv.Quote(p) + "\n"
	}
	return src
}

// check returns a message for each violation in the module below root, in the order of the files' names. It reads
// every Go file that is not a test, whatever its build constraints: a violation for another platform is one too.
func check(root fs.FS) ([]string, error) {
	var broken []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && foreign(root, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.ContainsAny(path.Base(name)[:1], "._") {
			return nil
		}
		messages, err := checkFile(root, name)
		broken = append(broken, messages...)
		return err
	})
	return broken, err
}

// foreign reports whether the go command would not look for this module's packages in dir.
func foreign(root fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return !errors.Is(err, fs.ErrNotExist)
}

func checkFile(root fs.FS, name string) ([]string, error) {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}

	var broken []string
	report := func(pos token.Pos, format string, args ...any) {
		broken = append(broken, fmt.Sprintf("%v: %s", fset.Position(pos), fmt.Sprintf(format, args...)))
	}

	dir := path.Dir(name)
	for _, n := range slices.Compact([]string{path.Base(dir), file.Name.Name}) {
		if slices.Contains(vague, n) {
			report(file.Package, "package name %q says nothing; name what is inside", n)
		}
	}

	r, ok := ruleOf(dir)
	if !ok {
		report(file.Package, "package %s has no rule: add a line for it to the table in internal/importrules, "+
			"below all that it imports and above all that import it", dir)
		return broken, nil
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		ours, inModule := strings.CutPrefix(imported+"/", module+"/")
		switch {
		case imported == "C":
			report(spec.Pos(), "cgo is not used in this module; load libraries at run time behind an interface")
		case inModule:
			target, _ := ruleOf(strings.TrimSuffix(ours, "/"))
			if target.pkg != r.pkg && !slices.Contains(r.may, target.pkg) {
				report(spec.Pos(), "%s must not import %s (it may: %s)",
					r.pkg, orElse(strings.TrimSuffix(ours, "/"), "the module's root"), orElse(strings.Join(r.may, ", "), "nothing"))
			}
		case isForbidden(r.kind, imported):
			report(spec.Pos(), "%s must not import %s: %s", r.pkg, imported, reasons[r.kind])
		}
	}
	return broken, nil
}

// ruleOf returns the rule of the package in dir: that of the longest path which leads there.
func ruleOf(dir string) (found rule, ok bool) {
	for _, r := range rules {
		if (dir == r.pkg || strings.HasPrefix(dir, r.pkg+"/")) && len(r.pkg) > len(found.pkg) {
			found, ok = r, true
		}
	}
	return found, ok
}

var reasons = map[kind]string{
	core: "core packages open nothing by themselves; take an io.Reader or a small interface, and open it in internal or cmd",
	pure: "pure packages take values and return values; clocks, files, contexts and loggers stay with the caller",
}

func isForbidden(k kind, imported string) bool {
	list := forbidden[k]
	if k == pure {
		list = append(slices.Clone(list), forbidden[core]...)
	}
	return slices.ContainsFunc(list, func(f string) bool {
		if tree, ok := strings.CutSuffix(f, "/"); ok {
			return imported == tree || strings.HasPrefix(imported, f)
		}
		return imported == f
	})
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
