// Package completion writes the scripts by which bash, zsh and fish complete a
// command line on the Tab key: commands, flags, the values of those flags that
// have a fixed set, and file names.
//
// It knows a command line only as the [Command] it is given, so that a script
// cannot differ from the program; it is not for parsing arguments.
package completion

import (
	"fmt"
	"io"
	"strings"
)

// Command is a program or one of its commands.
type Command struct {
	Name, Help string
	Flags      []Flag
	Commands   []Command
	// Arguments are the values of the command's argument, Files says that it is
	// a file.
	Arguments []string
	Files     bool
}

// Flag is a flag of a command.
type Flag struct {
	// Name has no dashes; Short is a letter or 0.
	Name  string
	Short rune
	Help  string
	// Value says that the flag takes a value. Values are the values there are,
	// Files says that it is a file; with neither, any value will do.
	Value  bool
	Values []string
	Files  bool
}

// Shells returns the shells that Write knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Write writes the script for a shell to w. It fails for a shell that is not in
// Shells.
func Write(w io.Writer, shell string, program *Command) error {
	var b strings.Builder
	s := script{&b, program.Name, nil}
	s.collect("", program)
	switch shell {
	case "bash":
		s.bash()
	case "zsh":
		s.zsh()
	case "fish":
		s.fish()
	default:
		return fmt.Errorf("no completion for %q: there is one for %s", shell, strings.Join(Shells(), ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// script writes one script.
type script struct {
	*strings.Builder
	program string
	all     []placed
}

// placed is a command with its path: "schedules show", "" for the program.
type placed struct {
	path string
	*Command
}

func (s *script) collect(path string, c *Command) {
	s.all = append(s.all, placed{path, c})
	for i := range c.Commands {
		s.collect(strings.TrimSpace(path+" "+c.Commands[i].Name), &c.Commands[i])
	}
}

func (s *script) line(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// steps writes the cases by which a shell follows the words of a line into the
// commands: the path so far and the next word lead to the longer path.
func (s *script) steps(indent, set string) {
	for _, p := range s.all {
		for _, c := range p.Commands {
			longer := strings.TrimSpace(p.path + " " + c.Name)
			s.line("%s%s) "+set+" ;;", indent, quote(p.path+" "+c.Name), quote(longer))
		}
	}
}

// spellings returns the ways to write a flag.
func (f *Flag) spellings() []string {
	names := []string{"--" + f.Name}
	if f.Short != 0 {
		names = append(names, "-"+string(f.Short))
	}
	return names
}

// after returns the patterns of a path followed by a flag.
func after(path string, f *Flag) string {
	var patterns []string
	for _, name := range f.spellings() {
		patterns = append(patterns, quote(path+" "+name))
	}
	return strings.Join(patterns, "|")
}

// words returns all that can stand where no flag does.
func (c *Command) words() []string {
	var words []string
	for _, sub := range c.Commands {
		words = append(words, sub.Name)
	}
	return append(words, c.Arguments...)
}

// quote returns s as one word of a POSIX shell, and of zsh.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

func (s *script) bash() {
	s.line("# bash completion of %[1]s: source <(%[1]s completion bash)", s.program)
	s.line("_%s() {", s.program)
	s.line(`	local path='' cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" i`)
	s.line("	# bash makes --flag=value three words.")
	s.line("	if [[ $cur == '=' ]]; then")
	s.line("		cur=''")
	s.line("	elif [[ $prev == '=' ]]; then")
	s.line(`		prev="${COMP_WORDS[COMP_CWORD-2]}"`)
	s.line("	fi")
	s.line("	for ((i = 1; i < COMP_CWORD; i++)); do")
	s.line(`		case "$path ${COMP_WORDS[i]}" in`)
	s.steps("			", "path=%s")
	s.line("		esac")
	s.line("	done")
	s.line(`	case "$path $prev" in`)
	for _, p := range s.all {
		for i := range p.Flags {
			switch f := &p.Flags[i]; {
			case f.Files:
				s.line("		%s) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;", after(p.path, f))
			case f.Value:
				s.line("		%s) mapfile -t COMPREPLY < <(compgen -W %s -- \"$cur\"); return ;;", after(p.path, f), quote(strings.Join(f.Values, " ")))
			}
		}
	}
	s.line("	esac")
	s.line(`	case "$path" in`)
	for _, p := range s.all {
		var flags []string
		for i := range p.Flags {
			flags = append(flags, "--"+p.Flags[i].Name)
		}
		s.line("		%s)", quote(p.path))
		s.line("			if [[ $cur == -* ]]; then")
		s.line("				mapfile -t COMPREPLY < <(compgen -W %s -- \"$cur\")", quote(strings.Join(flags, " ")))
		s.line("			else")
		s.line("				mapfile -t COMPREPLY < <(compgen -W %s -- \"$cur\")", quote(strings.Join(p.words(), " ")))
		if p.Files {
			s.line("				compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")")
		}
		s.line("			fi ;;")
	}
	s.line("	esac")
	s.line("}")
	s.line("complete -F _%[1]s %[1]s", s.program)
}

func (s *script) zsh() {
	s.line("#compdef %s", s.program)
	s.line("# zsh completion of %[1]s: source <(%[1]s completion zsh), or a file _%[1]s in $fpath", s.program)
	s.line("_%s() {", s.program)
	s.line(`	local at='' word i`)
	s.line("	local -a flags commands")
	s.line("	for ((i = 2; i < CURRENT; i++)); do")
	s.line(`		case "$at ${words[i]}" in`)
	s.steps("			", "at=%s")
	s.line("		esac")
	s.line("	done")
	s.line("	word=\"$at ${words[CURRENT-1]}\"")
	s.line("	if [[ $PREFIX == --*=* ]]; then")
	s.line("		word=\"$at ${PREFIX%%%%=*}\"")
	s.line("		compset -P '*='")
	s.line("	fi")
	s.line(`	case "$word" in`)
	for _, p := range s.all {
		for i := range p.Flags {
			switch f := &p.Flags[i]; {
			case f.Files:
				s.line("		%s) _files; return ;;", after(p.path, f))
			case len(f.Values) > 0:
				s.line("		%s) compadd -- %s; return ;;", after(p.path, f), quoteAll(f.Values))
			case f.Value:
				s.line("		%s) _message %s; return ;;", after(p.path, f), quote(f.Help))
			}
		}
	}
	s.line("	esac")
	s.line(`	case "$at" in`)
	for _, p := range s.all {
		var flags, commands []string
		for i := range p.Flags {
			flags = append(flags, describe("--"+p.Flags[i].Name, p.Flags[i].Help))
		}
		for _, c := range p.Commands {
			commands = append(commands, describe(c.Name, c.Help))
		}
		s.line("		%s)", quote(p.path))
		s.line("			flags=(%s)", quoteAll(flags))
		s.line("			commands=(%s)", quoteAll(commands))
		if len(p.Arguments) > 0 {
			s.line("			[[ $PREFIX == -* ]] || compadd -- %s", quoteAll(p.Arguments))
		}
		if p.Files {
			s.line("			[[ $PREFIX == -* ]] || _files")
		}
		s.line("			;;")
	}
	s.line("	esac")
	s.line("	if [[ $PREFIX == -* ]]; then")
	s.line("		_describe -o flag flags")
	s.line("	elif (( $#commands )); then")
	s.line("		_describe command commands")
	s.line("	fi")
	s.line("}")
	s.line("if [[ ${funcstack[1]} == _%s ]]; then", s.program)
	s.line("	_%s", s.program)
	s.line("elif (( $+functions[compdef] )); then")
	s.line("	compdef _%[1]s %[1]s", s.program)
	s.line("else")
	s.line("	print -u2 'run compinit before this: autoload -Uz compinit; compinit'")
	s.line("fi")
}

// describe returns a word with its description as zsh's _describe reads it.
func describe(word, help string) string {
	return strings.ReplaceAll(word, ":", `\:`) + ":" + help
}

func (s *script) fish() {
	s.line("# fish completion of %[1]s: %[1]s completion fish | source", s.program)
	s.line("function __%s_at --description 'Whether the words so far lead to the given command'", s.program)
	s.line("	set -l at ''")
	s.line("	for word in (commandline -opc)[2..-1]")
	s.line(`		switch "$at $word"`)
	for _, p := range s.all {
		for _, c := range p.Commands {
			s.line("			case %s", fishQuote(p.path+" "+c.Name))
			s.line("				set at %s", fishQuote(strings.TrimSpace(p.path+" "+c.Name)))
		}
	}
	s.line("		end")
	s.line("	end")
	s.line(`	test "$at" = "$argv"`)
	s.line("end")
	s.line("complete -c %s -f", s.program)
	for _, p := range s.all {
		condition := fmt.Sprintf("complete -c %s -n %s", s.program, fishQuote(fmt.Sprintf("__%s_at %s", s.program, p.path)))
		for _, c := range p.Commands {
			s.line("%s -a %s -d %s", condition, fishQuote(c.Name), fishQuote(c.Help))
		}
		for _, a := range p.Arguments {
			s.line("%s -a %s", condition, fishQuote(a))
		}
		if p.Files {
			s.line("%s -F", condition)
		}
		for i := range p.Flags {
			f := &p.Flags[i]
			flag := "-l " + f.Name
			if f.Short != 0 {
				flag += " -s " + string(f.Short)
			}
			switch {
			case f.Files:
				flag += " -r -F"
			case f.Value:
				flag += " -x"
			}
			if len(f.Values) > 0 {
				flag += " -a " + fishQuote(strings.Join(f.Values, " "))
			}
			s.line("%s %s -d %s", condition, flag, fishQuote(f.Help))
		}
	}
}

// fishQuote returns s as one word of fish, which knows two escapes in quotes.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
