package main

import (
	"errors"
	"strings"

	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/report"
)

// inFlags returns the text of an error with the options that it names as the flags
// that they are here. The library knows of no command line.
func inFlags(err error) string {
	text := err.Error()
	var refused *profile.Error
	var request *plan.Error
	var resampling *report.OptionError
	switch {
	case errors.As(err, &refused):
		return strings.NewReplacer("Options.SkipBadRows", "--skip-bad-rows", "Options.Units", "--units").Replace(text)
	case errors.As(err, &request):
		return strings.Replace(text, request.Error(), "--"+request.Error(), 1)
	case errors.As(err, &resampling):
		return strings.Replace(text, resampling.Error(), "--"+resampling.Error(), 1)
	case errors.Is(err, plan.ErrNoGPUs):
		return text + ": --tp, --cp, --ep, --dp or --world-size"
	}
	return text
}
