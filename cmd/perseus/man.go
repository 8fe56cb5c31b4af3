package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand is hidden: packages run it when they are built.
type manCommand struct{}

// Run prints the manual page perseus(1), made of what --help prints.
func (manCommand) Run(w *world) error {
	return writeManual(w.stdout, w.parser.Model.Node, version)
}

// writeManual writes a manual page in roff. It has no date, so that the same program has the same page.
func writeManual(out io.Writer, root *kong.Node, version string) error {
	var b strings.Builder
	summary, _, _ := strings.Cut(root.Help, "\n")
	fmt.Fprintf(&b, ".TH PERSEUS 1 \"\" \"perseus %s\" \"Perseus\"\n", roff(version))
	fmt.Fprintf(&b, ".SH NAME\nperseus \\- %s\n", roff(strings.TrimSuffix(strings.TrimPrefix(summary, "Perseus "), ".")))
	b.WriteString(".SH SYNOPSIS\n.B perseus\n.I command\n.RI [ flags ]\n.SH DESCRIPTION\n")
	paragraphs(&b, root.Help)
	b.WriteString(".SH COMMANDS\n")
	eachCommand(root, func(n *kong.Node) {
		fmt.Fprintf(&b, ".SS %s\n", roff(n.Summary()))
		paragraphs(&b, n.Help)
		paragraphs(&b, n.Detail)
		for _, p := range n.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(p.Summary()), roff(p.Help))
		}
		for _, f := range n.Flags {
			if f.Hidden || f.Name == "help" {
				continue
			}
			name := "\\-\\-" + roff(f.Name)
			if f.Short != 0 {
				name = fmt.Sprintf("\\-%c, %s", f.Short, name)
			}
			if !f.IsBool() {
				name += " " + roff(strings.TrimSuffix(f.FormatPlaceHolder(), ";"))
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", name, roff(f.Help))
		}
	})
	b.WriteString(`.SH EXIT STATUS
.TP
.B 0
The work was done.
.TP
.B 1
The work failed, or a check did.
.TP
.B 2
The input or the flags are wrong.
.TP
.B 130
Interrupted.
`)
	_, err := io.WriteString(out, b.String())
	return err
}

// eachCommand calls do for each command that has something of its own to say, in the order of the help.
func eachCommand(n *kong.Node, do func(*kong.Node)) {
	for _, child := range n.Children {
		if child.Hidden || child.Type != kong.CommandNode {
			continue
		}
		if child.Leaf() {
			do(child)
		}
		eachCommand(child, do)
	}
}

// paragraphs writes a text as help has it: an empty line ends a paragraph, an indented one is an example.
func paragraphs(b *strings.Builder, text string) {
	example := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "    ")
		switch {
		case indented && !example:
			b.WriteString(".PP\n.nf\n")
		case !indented && example:
			b.WriteString(".fi\n")
		}
		if example = indented; strings.TrimSpace(line) == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if example {
		b.WriteString(".fi\n")
	}
}

// roff returns a line of text so that roff prints it as it is, whatever its encoding.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	var b strings.Builder
	for _, r := range line {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
