package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// familiar returns the arguments with what many programs take, and this one spells
// in another way: --version, and help for a command.
func familiar(args []string) []string {
	switch {
	case len(args) == 0:
	case args[0] == "--version" || args[0] == "-V":
		return append([]string{"version"}, args[1:]...)
	case args[0] == "help":
		var command []string
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") {
				command = append(command, a)
			}
		}
		return append(command, "--help")
	}
	return args
}

// profileHint returns, for an argument that a command does not take, the flag that it
// may be for.
func profileHint(e *kong.ParseError) string {
	name, found := strings.CutPrefix(e.Error(), "unexpected argument ")
	node := e.Context.Selected()
	if !found || node == nil {
		return ""
	}
	name, _, _ = strings.Cut(name, ",")
	for _, f := range node.Flags {
		if f.Name == "profile" {
			return "; a profile is given as in --profile " + name
		}
	}
	return ""
}

// oneFormat returns an error where --json is given with another --format.
func oneFormat(parsed *kong.Context) error {
	short, format := false, "json"
	for _, p := range parsed.Path {
		switch {
		case p.Flag == nil:
		case p.Flag.Name == "json":
			short = true
		case p.Flag.Name == "format":
			format = p.Flag.Target.String()
		}
	}
	if short && format != "json" {
		return fmt.Errorf("--json and --format %s can't be used together", format)
	}
	return nil
}

// jsonFlag is for those who are used to it from other commands.
type jsonFlag struct {
	JSON bool `name:"json" hidden:"" help:"Short for --format json."`
}

// or returns the format that is asked for.
func (j jsonFlag) or(format string) string {
	if j.JSON {
		return "json"
	}
	return format
}
