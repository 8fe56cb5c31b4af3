package unpack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReader(t *testing.T) {
	const limit = 1000
	text := "stage,instruction\n" + strings.Repeat("0,forward\n", 20)
	z := packed(t, text)
	const cut = "the gzip file is cut short; copy or make it again"
	const long = "longer than 1000 bytes, the most that is read"
	for _, tt := range []struct {
		name, in, want string
		problem        string // expected
	}{
		{"text", text, text, ""},
		{"nothing", "", "", ""},
		{"a byte", "x", "x", ""},
		{"gzip", z, text, ""},
		{"gzip of nothing", packed(t, ""), "", ""},
		{"members after each other", packed(t, text[:10]) + packed(t, "") + packed(t, text[10:]), text, ""},
		{"as long as may be", strings.Repeat("x", limit), strings.Repeat("x", limit), ""},
		{"gzip of what is as long as may be", packed(t, strings.Repeat("x", limit)), strings.Repeat("x", limit), ""},
		{"too long", strings.Repeat("x", limit+1), strings.Repeat("x", limit), long},
		{"gzip bomb", packed(t, strings.Repeat("\x00", 1<<20)), strings.Repeat("\x00", limit), long},
		{"gzip of nothing, for ever", strings.Repeat(packed(t, ""), limit), "", long},
		{"cut in its data", z[:len(z)-12], text, cut},
		{"cut in its checksum", z[:len(z)-1], text, cut},
		{"cut in its header", z[:4], "", cut},
		{"magic number alone", z[:2], "", cut},
		{"wrong checksum", z[:len(z)-8] + "12345678", text, "damaged gzip file (gzip: invalid checksum); copy or make it again"},
		{"something after the end", z + "x,y\n" + text, text, "damaged gzip file (gzip: invalid header); copy or make it again"},
		{"unknown method", "\x1f\x8b\x00\x00\x00\x00\x00\x00\x00\x00\x00", "", "damaged gzip file (gzip: invalid header); copy or make it again"},
		{"zip", "PK\x03\x04\x00", "", `a zip file or an Excel workbook; unpack it, or save the sheet as "CSV UTF-8"`},
		{"zstd", "\x28\xb5\x2f\xfd\x00", "", "compressed, but not with gzip; use gzip or none"},
		{"bzip2", "BZh91AY", "", "compressed, but not with gzip; use gzip or none"},
		{"xz", "\xfd7zXZ\x00", "", "compressed, but not with gzip; use gzip or none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, in := range map[string]io.Reader{
				"at once": strings.NewReader(tt.in), "by bytes": iotest.OneByteReader(strings.NewReader(tt.in)),
				"end with data": iotest.DataErrReader(strings.NewReader(tt.in)),
			} {
				r := NewReader(in, limit)
				got, err := io.ReadAll(r)
				var content *Error
				switch {
				case tt.problem == "" && err != nil:
					t.Errorf("%s: %v", how, err)
				case tt.problem != "" && (!errors.As(err, &content) || err.Error() != tt.problem || content.TooLong != (tt.problem == long)):
					t.Errorf("%s: got %v, want %s", how, err, tt.problem)
				}
				if len(got) > len(tt.want) || string(got) != tt.want[:len(got)] || err == nil && len(got) < len(tt.want) {
					t.Errorf("%s: %d bytes of %d", how, len(got), len(tt.want))
				}
				if want := strings.HasPrefix(tt.in, "\x1f\x8b"); r.Packed() != want {
					t.Errorf("%s: packed: %v", how, r.Packed())
				}
				if _, again := r.Read(make([]byte, 1)); again == nil || err != nil && again != err {
					t.Errorf("%s: read after the end: %v", how, again)
				}
			}
		})
	}
}

// TestSourceFails has errors of the source come through, whatever was read before.
func TestSourceFails(t *testing.T) {
	broken := errors.New("cable pulled")
	z := packed(t, strings.Repeat("0,forward\n", 20))
	for _, before := range []string{"", "x", "\x1f", z[:2], z[:6], z[:20], z, "text that is long enough"} {
		if _, err := io.ReadAll(NewReader(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)), 1000)); err != broken {
			t.Errorf("after %q: %v", before, err)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{1 << 30: "1024 MiB", 256 << 20: "256 MiB", 20_000: "20000 bytes", 0: "0 bytes"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
