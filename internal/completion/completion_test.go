package completion

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func program() *Command {
	return &Command{
		Name: "tool",
		Flags: []Flag{
			{Name: "help", Short: 'h', Help: "Show help."},
		},
		Commands: []Command{
			{
				Name: "make", Help: "Make it.", Files: true,
				Flags: []Flag{
					{Name: "help", Short: 'h', Help: "Show help."},
					{Name: "output", Short: 'o', Help: "Write to a file.", Value: true, Files: true},
					{Name: "format", Help: "The user's format.", Value: true, Values: []string{"csv", "json"}},
					{Name: "number", Help: "How many: a number.", Value: true},
				},
			},
			{
				Name: "list", Help: "List what there is.",
				Commands: []Command{{Name: "all", Help: "List all."}, {Name: "make", Help: "Not the other make.", Arguments: []string{"one", "two"}}},
			},
		},
	}
}

// tests give the words of a line, the last one being completed, and what should
// come up, in any order; "FILES" stands for file names.
var tests = []struct {
	name string
	line []string
	want string
}{
	{"commands", []string{"tool", ""}, "list make"},
	{"part of a command", []string{"tool", "l"}, "list"},
	{"flags of the program", []string{"tool", "--"}, "--help"},
	{"flags of a command", []string{"tool", "make", "--f"}, "--format"},
	{"values of a flag", []string{"tool", "make", "--format", ""}, "csv json"},
	{"part of a value", []string{"tool", "make", "--format", "j"}, "json"},
	{"file of a flag", []string{"tool", "make", "-o", ""}, "FILES"},
	{"file of a long flag", []string{"tool", "make", "--output", ""}, "FILES"},
	{"any value", []string{"tool", "make", "--number", ""}, ""},
	{"files of a command", []string{"tool", "make", ""}, "FILES"},
	{"commands of a command", []string{"tool", "list", ""}, "all make"},
	{"a command of the same name elsewhere", []string{"tool", "list", "make", ""}, "one two"},
	{"flags after others", []string{"tool", "make", "--number", "3", "--f"}, "--format"},
}

// run returns the sorted words that a shell prints for a line.
func run(t *testing.T, shell, driver string, prefix string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", shell)
		}
		t.Skipf("%s is not installed", shell)
	}
	var script strings.Builder
	if err := Write(&script, shell, program()); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-c", "compdef() { return 0; }\n" + script.String() + "\n" + driver}
	if shell == "fish" {
		arguments[1] = script.String() + "\n" + driver
	} else {
		arguments = slices.Insert(arguments, 0, map[string]string{"bash": "--norc", "zsh": "-f"}[shell])
	}
	cmd := exec.Command(path, arguments...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var words []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		word, _, _ := strings.Cut(line, "\t")
		word, _, _ = strings.Cut(word, ":")
		if strings.HasPrefix(word, prefix) || word == "FILES" {
			words = append(words, strings.TrimSpace(word))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestBash(t *testing.T) {
	equals := append(slices.Clone(tests), struct {
		name string
		line []string
		want string
	}{"value after an equals sign", []string{"tool", "make", "--format", "=", "c"}, "csv"}, struct {
		name string
		line []string
		want string
	}{"nothing after an equals sign", []string{"tool", "make", "--format", "="}, "csv json"})
	for _, test := range equals {
		t.Run(test.name, func(t *testing.T) {
			driver := "compopt() { [[ $2 == filenames ]] && touch FILES; }\n" +
				"COMP_WORDS=(" + quoteAll(test.line) + ") COMP_CWORD=" + string(rune('0'+len(test.line)-1)) + "\n" +
				"_tool\nprintf '%s\\n' \"${COMPREPLY[@]}\""
			last := strings.TrimPrefix(test.line[len(test.line)-1], "=")
			if got := run(t, "bash", driver, last); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestZsh(t *testing.T) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			last := test.line[len(test.line)-1]
			// The functions of zsh's completion, printing what they are given.
			driver := "compadd() { shift; print -l -- \"$@\"; }\n_files() { print FILES; }\n_message() { }\n" +
				"_describe() { print -l -- \"${(P@)argv[-1]}\"; }\n" +
				"words=(" + quoteAll(test.line) + ") CURRENT=$#words PREFIX=" + quote(last) + "\n_tool\n"
			if got := run(t, "zsh", "", ""); got != "" {
				t.Errorf("sourcing it prints %q", got)
			}
			if got := run(t, "zsh", driver, last); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFish(t *testing.T) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			driver := "touch FILES\ncomplete -C " + fishQuote(strings.Join(test.line, " "))
			if got := run(t, "fish", driver, test.line[len(test.line)-1]); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnknownShell(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, "tcsh", program()); err == nil || !strings.Contains(err.Error(), "bash, zsh, fish") {
		t.Errorf("got %v", err)
	}
}
