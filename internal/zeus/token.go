package zeus

import "strings"

// prefix is where a token may stand in a path: Zeus's client sends no header, so its base URL carries it.
const prefix = "/zeus/"

// SplitToken returns the token in a path such as /zeus/TOKEN/schedule/j and the path behind it, /schedule/j. It is not
// ok where there is no such prefix or token; the token is not checked.
func SplitToken(path string) (token, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return "", "", false
	}
	token, rest, _ = strings.Cut(strings.TrimLeft(after, "/"), "/")
	if token == "" {
		return "", "", false
	}
	return token, "/" + rest, true
}
