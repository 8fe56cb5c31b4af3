package zeus

import "strings"

// prefix is where a token may stand in a path: Zeus's client sends no header, so its base URL carries it.
const prefix = "/zeus/"

// SplitToken returns the token in a path such as /zeus/TOKEN/schedule/j and the path behind it, /schedule/j. It is not
// ok where there is no such prefix; the token is not checked.
func SplitToken(path string) (token, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return "", "", false
	}
	token, rest, ok = strings.Cut(after, "/")
	if !ok || token == "" {
		return "", "", false
	}
	return token, "/" + rest, true
}

// Redact returns a path, as it may stand in a log or a trace: with the token, if it has one, made unreadable.
func Redact(path string) string {
	after, ok := strings.CutPrefix(path, prefix)
	if !ok || after == "" {
		return path
	}
	if i := strings.IndexByte(after, '/'); i >= 0 {
		return prefix + "REDACTED" + after[i:]
	}
	return prefix + "REDACTED"
}
