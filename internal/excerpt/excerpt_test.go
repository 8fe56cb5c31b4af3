package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		most     int
	}{
		{"", "", 0},
		{"", "", 4},
		{"abcd", "abcd", 4},
		{"abcde", "abcd…", 4},
		{"abc", "…", 0},
		{"abcä", "abc…", 4},
		{"abä", "abä", 4},
		{"ab漢c", "ab…", 4},
		{"a漢cd", "a漢…", 4},
		{"😀😀", "…", 3},
		{"😀😀", "😀…", 7},
		{"\x80\x80\x80\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80\x80…", 6},
		{strings.Repeat("x", 100), strings.Repeat("x", 40) + "…", 40},
	} {
		if got := Of(tt.in, tt.most); got != tt.want {
			t.Errorf("%q at %d: %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
	if got := Quoted("a\"ä\nb", 4); got != `"a\"ä…"` {
		t.Errorf("quoted: %s", got)
	}
}

// TestLine has nothing of a text steer a terminal.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"GPT-3 175B – naïve": "GPT-3 175B – naïve", "a\nb\tc": "a b c", "\x1b[2J": " [2J", "\u009b2J": " 2J", "a\u202eb": "a b", "\x7f": " ", "\xff": "\ufffd",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestKeepsCharactersWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, most := rapid.String().Draw(t, "s"), rapid.IntRange(0, 60).Draw(t, "most")
		got := Of(s, most)
		if !utf8.ValidString(got) {
			t.Fatalf("%q at %d is %q", s, most, got)
		}
		head, cut := strings.CutSuffix(got, "…")
		if got != s && (!cut || !strings.HasPrefix(s, head) || len(head) > most || len(head)+utf8.UTFMax <= most) {
			t.Fatalf("%q at %d is %q", s, most, got)
		}
	})
}
