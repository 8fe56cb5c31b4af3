package profile

import (
	"encoding/csv"
	"strings"
	"testing"
)

// FuzzSplit compares split to encoding/csv: what that accepts on one line is
// read the same, but for spaces around fields.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", "a", "a,b", ",", `"a,b",c`, `"a""b"`, ` "a" , b `, `a"b`, `"a`, "\t1,\u00a02"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n") || line == "" {
			return
		}
		cells, fault, ok := split(line, nil, 1<<20)
		if !ok && (fault.Message == "" || fault.Column < 1 || fault.Column > len(line)) {
			t.Fatalf("fault %+v", fault)
		}
		r := csv.NewReader(strings.NewReader(line))
		r.TrimLeadingSpace = true
		want, err := r.Read()
		if err != nil {
			// Only spaces after a closing quote are taken here and not there.
			if ok && !strings.Contains(line, `"`) {
				t.Fatalf("taken, but encoding/csv says %v", err)
			}
			return
		}
		if !ok {
			t.Fatalf("refused (%s), but encoding/csv reads %q", fault.Message, want)
		}
		if len(cells) != len(want) {
			t.Fatalf("%d fields, want %q", len(cells), want)
		}
		for i, c := range cells {
			if c.value != strings.TrimSpace(want[i]) {
				t.Fatalf("field %d is %q, want %q", i, c.value, want[i])
			}
			if c.column < 1 || c.column > len(line)+1 {
				t.Fatalf("field %d is at column %d", i, c.column)
			}
		}
	})
}
