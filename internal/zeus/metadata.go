package zeus

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMetadata bounds a job's metadata, in bytes.
const maxMetadata = 4096

// settings is what a job's metadata says beyond Zeus's own fields. Zero values are what it does not say.
type settings struct {
	Schedule             string
	Microbatches, Chunks int
	ModelKey, GPU, Name  string
	BlockingPowerW       float64
}

// keys are the settings that a job's metadata may hold.
const keys = "schedule, microbatches, chunks, model_key, gpu, blocking_power_w, name"

// parseMetadata returns the settings in a job's metadata: pieces separated by semicolons, of which those of the form
// key=value are settings and the others, together, the job's name unless one is given. Metadata without any known key
// is free text, as it is for Zeus's server, and sets nothing but the name. It fails, naming the piece, where a value is
// out of bounds, a key is double, or a key is unknown beside known ones.
func parseMetadata(text string) (settings, error) {
	var s settings
	if len(text) > maxMetadata {
		return s, fmt.Errorf("%d bytes: at most %d are taken", len(text), maxMetadata)
	}
	var words []string
	var unknown string
	seen := map[string]bool{}
	for piece := range strings.SplitSeq(text, ";") {
		piece = strings.TrimSpace(piece)
		key, value, ok := strings.Cut(piece, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			if piece != "" {
				words = append(words, piece)
			}
			continue
		}
		known, err := s.set(key, value)
		if !known {
			words = append(words, piece)
			if unknown == "" {
				unknown = key
			}
			continue
		}
		if err != nil {
			return settings{}, fmt.Errorf("%s: %w", key, err)
		}
		if seen[key] {
			return settings{}, fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
	}
	if unknown != "" && len(seen) > 0 {
		return settings{}, fmt.Errorf("key %q is not known; known are %s", unknown, keys)
	}
	if s.Name == "" {
		s.Name = shorten(strings.Join(words, "; "), 200)
	}
	return s, nil
}

// set sets a setting, and says whether there is one of that name.
func (s *settings) set(key, value string) (known bool, err error) {
	text := func(into *string, limit int) error {
		if value == "" || utf8.RuneCountInString(value) > limit {
			return fmt.Errorf("%q: must have from 1 to %d characters", shorten(value, 32), limit)
		}
		*into = value
		return nil
	}
	number := func(into *int, limit int) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > limit {
			return fmt.Errorf("%q: must be a whole number from 1 to %d", shorten(value, 32), limit)
		}
		*into = n
		return nil
	}
	switch key {
	case "schedule":
		return true, text(&s.Schedule, 64)
	case "microbatches":
		return true, number(&s.Microbatches, 65536)
	case "chunks":
		return true, number(&s.Chunks, 64)
	case "model_key":
		return true, text(&s.ModelKey, 200)
	case "gpu":
		return true, text(&s.GPU, 200)
	case "name":
		return true, text(&s.Name, 200)
	case "blocking_power_w":
		w, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(w) || w <= 0 || w > 10000 {
			return true, fmt.Errorf("%q: must be watts, above 0 and at most 10000", shorten(value, 32))
		}
		s.BlockingPowerW = w
		return true, nil
	}
	return false, nil
}

// shorten returns at most n characters of s.
func shorten(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
