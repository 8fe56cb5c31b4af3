package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/perseus-energy/perseus/internal/completion"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the text of perseus completion --help.
func (completionCommand) Help() string {
	return `Examples:

    source <(perseus completion bash)         # this bash
    perseus completion fish | source          # this fish
    perseus completion zsh > ~/.zfunc/_perseus # every zsh that has ~/.zfunc in fpath

To have it in every bash, put the first line into ~/.bashrc.`
}

// Run prints the script.
func (c *completionCommand) Run(w *world) error {
	return completion.Write(w.stdout, c.Shell, describe(w.parser.Model.Node))
}

// describe returns a command as package completion knows it.
func describe(n *kong.Node) *completion.Command {
	c := &completion.Command{Name: n.Name, Help: n.Help}
	for _, level := range n.AllFlags(true) {
		for _, f := range level {
			c.Flags = append(c.Flags, completion.Flag{
				Name: f.Name, Short: f.Short, Help: f.Help,
				Value: !f.IsBool(), Values: values(f.Value), Files: isFile(f.Value),
			})
		}
	}
	for _, p := range n.Positional {
		c.Arguments = append(c.Arguments, values(p)...)
		c.Files = c.Files || isFile(p)
	}
	for _, child := range n.Children {
		if !child.Hidden {
			c.Commands = append(c.Commands, *describe(child))
		}
	}
	return c
}

// values returns the values that a flag or argument can have, where they are few.
func values(v *kong.Value) []string {
	if v.Tag.Has("schedules") {
		return scheduleNames()
	}
	if choices := v.Tag.Get("choices"); choices != "" {
		return strings.Split(choices, ",")
	}
	return v.EnumSlice()
}

func isFile(v *kong.Value) bool { return v.Tag.Has("file") }
