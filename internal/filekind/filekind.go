// Package filekind tells which of the program's files a text is, so that a message
// about a file that was given in place of another can say so.
//
// It looks at the beginning only and is for messages: readers decide by themselves
// what they take. It comes before all of them and knows none.
package filekind

import (
	"bytes"
	"regexp"
	"strings"
)

// The kinds, as messages name them.
const (
	Profile   = "a profile (CSV)"
	Frontier  = "a frontier (JSON)"
	Points    = "the points of a frontier (CSV, from perseus show)"
	Savings   = "the savings of a frontier (JSON, from perseus show)"
	Plan      = "a plan"
	GPUPlan   = "a plan of single GPUs (CSV, with --per-gpu)"
	ZeusPlan  = "a plan for Zeus"
	Simulated = "the result of a simulation"
	Timeline  = "the timeline of a simulation (CSV)"
	Page      = "a web page (HTML)"
	Picture   = "a picture (SVG)"
	Graph     = "a graph of ops (JSON)"
)

// most is how much of a text is looked at.
const most = 1 << 12

// Of returns the kind of the text, or "" where it looks like none.
func Of(text []byte) string {
	text = bytes.TrimLeft(text[:min(len(text), most)], "\ufeff \t\r\n")
	s := string(text)
	line, _, _ := strings.Cut(s, "\n")
	line = strings.TrimSpace(line)
	switch {
	case s == "":
		return ""
	case strings.HasPrefix(line, "global_rank,"):
		return GPUPlan
	case strings.HasPrefix(line, "pipeline,rank,stage,microbatch,"):
		return Timeline
	case strings.HasPrefix(line, "rank,stage,microbatch,instruction,frequency_mhz,"):
		return Plan + " (CSV)"
	case strings.HasPrefix(line, "time_s,relaxed_time_s,"):
		return Points
	case strings.HasPrefix(line, "# perseus-plan/"), strings.HasPrefix(line, "# {"), strings.HasPrefix(line, "["):
		return ZeusPlan
	case strings.HasPrefix(line, "<svg"), strings.Contains(s, "<svg") && strings.HasPrefix(line, "<?xml"):
		return Picture
	case strings.HasPrefix(line, "<"):
		return Page
	case s[0] == '{':
		return object(s)
	}
	has := func(name string) bool {
		return strings.Contains(","+strings.ReplaceAll(line, " ", "")+",", ","+name+",")
	}
	if has("stage") && has("instruction") && (has("time") || has("energy") || has("frequency")) {
		return Profile
	}
	return ""
}

// object returns the kind of a JSON object.
func object(s string) string {
	format := regexp.MustCompile(`"format"\s*:\s*"(perseus-[a-z]+)/`).FindStringSubmatch(s)
	switch {
	case format != nil && format[1] == "perseus-frontier":
		return Frontier
	case format != nil && format[1] == "perseus-plan":
		return Plan + " (JSON)"
	case format != nil && (format[1] == "perseus-dag" || format[1] == "perseus-graph"):
		return Graph
	case format != nil:
		return ""
	case strings.Contains(s, `"profile_sha256"`) && strings.Contains(s, `"savings"`):
		return Savings
	case strings.Contains(s, `"average_power_w"`) && strings.Contains(s, `"iterations"`):
		return Simulated
	}
	return ""
}
