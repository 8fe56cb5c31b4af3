package main

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/perseus-energy/perseus/internal/fileio"
)

// check returns an error where what was given cannot be, by the tags of the flags
// and arguments: file for files that are read, output for those that are written,
// folder, and min for the least that a number can be. A default is not given.
func check(parsed *kong.Context) error {
	var inputs, outputs []string
	var stdin, stdout []string // names of the flags that say so
	seen := map[*kong.Value]bool{}
	for _, p := range parsed.Path {
		v := p.Positional
		if p.Flag != nil {
			v = p.Flag.Value
		}
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		name := v.ShortSummary()
		if p.Flag != nil {
			name = "--" + p.Flag.Name
		}
		if err := atLeast(v, parsed.Value(p)); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		isOutput := v.Tag.Has("output")
		if !isOutput && !v.Tag.Has("file") && !v.Tag.Has("folder") {
			continue
		}
		for _, path := range texts(parsed.Value(p)) {
			switch {
			case path == "":
				return fmt.Errorf("%s is empty: expected a name", name)
			case v.Tag.Has("folder"):
			case path == fileio.Stdio && isOutput:
				stdout = append(stdout, name)
			case path == fileio.Stdio:
				stdin = append(stdin, name)
			case isOutput:
				outputs = append(outputs, path)
			default:
				inputs = append(inputs, path)
			}
		}
	}
	switch {
	case len(stdin) > 1:
		return fmt.Errorf("%s and %s cannot both be standard input", stdin[0], stdin[1])
	case len(stdout) > 1:
		return fmt.Errorf("%s and %s cannot both be standard output", stdout[0], stdout[1])
	}
	return fileio.Distinct(inputs, outputs)
}

// atLeast returns an error where a number is less than its tag min.
func atLeast(v *kong.Value, given reflect.Value) error {
	least, err := strconv.ParseInt(v.Tag.Get("min"), 10, 64)
	if err != nil {
		return nil // it has none
	}
	if given.Kind() == reflect.Pointer {
		given = given.Elem()
	}
	if given.CanInt() && given.Int() < least {
		is := "is"
		if least > 1 {
			is = "are"
		}
		return fmt.Errorf("%d: at least %d %s needed", given.Int(), least, is)
	}
	return nil
}

// texts returns the texts that were given.
func texts(given reflect.Value) []string {
	switch v := given.Interface().(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}
