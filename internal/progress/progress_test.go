package progress

import (
	"strings"
	"testing"
	"time"
)

func TestBar(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	b := New(&out, 80, func() time.Time { return now })
	steps := []struct {
		after time.Duration
		share float64
		want  string
	}{
		{900 * time.Millisecond, 0.3, ""},
		{200 * time.Millisecond, 0.5, "\r[====================                    ]  50 % 120 points"},
		{50 * time.Millisecond, 0.6, ""},
		{60 * time.Millisecond, 1.5, "\r[========================================] 100 % 120 points"},
	}
	for _, s := range steps {
		out.Reset()
		now = now.Add(s.after)
		b.Set(s.share, "120 points")
		if got := out.String(); got != s.want {
			t.Errorf("after %v more: drew %q, want %q", s.after, got, s.want)
		}
	}
	out.Reset()
	b.Done()
	if got := out.String(); strings.Trim(got, "\r ") != "" || !strings.HasSuffix(got, "\r") {
		t.Errorf("at the end drew %q", got)
	}
	out.Reset()
	now = now.Add(time.Hour)
	b.Set(1, "late")
	b.Done()
	if strings.Trim(out.String(), "\r ") != "" {
		t.Errorf("after the end drew %q", &out)
	}
}

func TestQuickWorkDrawsNothing(t *testing.T) {
	var out strings.Builder
	b := New(&out, 80, time.Now)
	b.Set(0.5, "")
	b.Done()
	if out.Len() > 0 {
		t.Errorf("drew %q", &out)
	}
	var none *Bar
	none.Set(1, "")
	none.Done()
}

func TestNarrow(t *testing.T) {
	now := time.Unix(0, 0)
	var out strings.Builder
	b := New(&out, 10, func() time.Time { return now })
	now = now.Add(2 * time.Second)
	b.Set(0.25, "x")
	if got := out.String(); got != "\r 25 % x" {
		t.Errorf("drew %q", got)
	}
}
