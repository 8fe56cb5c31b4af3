package main

import (
	"fmt"
	"strings"

	"github.com/perseus-energy/perseus/plan"
)

// percentage is a part of something, which people write in percent: a margin of 0.5 may
// be meant as half a percent or as a half, so it is not taken without the sign.
type percentage plan.Ratio

func (p percentage) ratio() plan.Ratio { return plan.Ratio(p) }

func parseShare(text string) (percentage, error) {
	v, err := plan.ParseRatio(text)
	switch {
	case err != nil || strings.HasSuffix(strings.TrimSpace(text), "%") || v == 0:
		return percentage(v), err
	case v >= plan.One/10:
		return 0, fmt.Errorf("%s is of what? write %s%% or %s", text, v, v.Percent())
	}
	return 0, fmt.Errorf("the sign is missing: write %s", v.Percent())
}

// parseFactor returns by how much something is multiplied.
func parseFactor(text string) (plan.Ratio, error) {
	v, err := plan.ParseRatio(text)
	if err == nil && v > 0 && v < plan.One && strings.HasSuffix(strings.TrimSpace(text), "%") {
		return 0, fmt.Errorf("%s is less than the whole: write %v for %s more", text, plan.One+v, v.Percent())
	}
	return v, err
}
