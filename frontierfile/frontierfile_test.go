package frontierfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

// small returns a file of two ops and three points.
func small() *File {
	var b Builder
	b.Add([]int32{0, 0}, []unit.Power{0, 0, 0})
	b.Add([]int32{1, 0}, []unit.Power{5, 5, 5})
	b.Add([]int32{2, 1}, []unit.Power{40_000_000, 40_000_000, 40_000_000})
	option := func(clock int32, t unit.Time, e unit.Energy) dag.Option {
		return dag.Option{Knobs: dag.Knobs{ClockMHz: clock}, Time: t, Energy: e, Effective: dag.Effective(e, 1_500_000, t)}
	}
	h := Header{
		Schedule: "1f1b", Ranks: 1, Chunks: 1, Microbatches: 1, Stages: 1, GPUsPerRank: 1, Ops: 2, Arcs: 3,
		BlockingPower: []unit.Power{1_500_000},
		Profile:       Profile{SHA256: strings.Repeat("0a", 32), TimeUnit: "s", EnergyUnit: "J", FrequencyUnit: "MHz"},
		Landmarks:     Landmarks{TMin: 300, TMax: 500, LeastEnergyTime: 400, MaxClockTime: 301, MaxClockEnergy: -7},
		Curves: []Curve{
			{Stage: 0, Instruction: "backward", BlockingPower: 1_500_000, Options: []dag.Option{option(900, 300, 12), option(1000, 200, 999_999_999_999)}, Top: option(1000, 200, 999_999_999_999)},
			{Stage: 0, Instruction: "forward", BlockingPower: 1_500_000, Options: []dag.Option{option(900, 200, 12), option(950, 150, 14), option(1000, 100, 20)}, Top: option(1100, 101, 21)},
		},
	}
	return b.File(h, []Point{
		{Time: 300, RelaxedTime: 300, Energy: 1e12, Effective: -5, Bound: 1e12 - 1, Gap: 1, Price: 40_000_000},
		{Time: 450, RelaxedTime: 450, Energy: 99, Effective: 98, Bound: 97, Gap: 10_309_278, Price: 5},
		{Time: 499, RelaxedTime: 500, Energy: 98, Effective: 97, Bound: 97, Gap: 0, Price: 0},
	})
}

func text(t testing.TB, f *File) []byte {
	var b bytes.Buffer
	if n, err := f.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo = %d, %v; wrote %d bytes", n, err, b.Len())
	}
	return b.Bytes()
}

func read(t testing.TB, b []byte) *File {
	f, err := Read(bytes.NewReader(b), "F.json")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestGolden keeps the written form still. The golden is small() as written;
// UPDATE_GOLDEN=1 go test ./frontierfile writes it again.
func TestGolden(t *testing.T) {
	path := filepath.Join("testdata", "small.json")
	got := text(t, small())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReadBack(t *testing.T) {
	f := small()
	got := read(t, text(t, f))
	if !bytes.Equal(text(t, got), text(t, f)) {
		t.Error("what is written after reading differs from what was read")
	}
	if got.Header.Curves[1].Options[2] != f.Header.Curves[1].Options[2] {
		t.Errorf("option %+v, want %+v", got.Header.Curves[1].Options[2], f.Header.Curves[1].Options[2])
	}
	want := []struct {
		choice []int32
		flow   []unit.Power
	}{
		{[]int32{2, 1}, []unit.Power{40_000_000, 40_000_000, 40_000_000}},
		{[]int32{1, 0}, []unit.Power{5, 5, 5}},
		{[]int32{0, 0}, []unit.Power{0, 0, 0}},
	}
	i := 0
	for p, err := range got.Walk() {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.Choice, want[i].choice) || !slices.Equal(p.Flow, want[i].flow) {
			t.Errorf("point %d: %v %v, want %v", i, p.Choice, p.Flow, want[i])
		}
		if p.Energy != f.Points[i].Energy || p.Effective != f.Points[i].Effective || p.Gap != f.Points[i].Gap {
			t.Errorf("point %d: %+v, want %+v", i, p, f.Points[i])
		}
		loaded, err := got.Load(i)
		if err != nil || !slices.Equal(loaded.Choice, p.Choice) || !slices.Equal(loaded.Flow, p.Flow) {
			t.Errorf("Load(%d) = %+v, %v", i, loaded, err)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d points, want 3", i)
	}
}

// TestBuilder has any points come back as they were added.
func TestBuilder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.IntRange(1, 60).Draw(t, "ops")
		arcs := rapid.IntRange(1, 120).Draw(t, "arcs")
		flows := rapid.SampledFrom([]*rapid.Generator[int64]{
			rapid.Int64Range(0, 3), rapid.Int64Range(0, int64(unit.MaxFlow)), rapid.Just[int64](7),
		}).Draw(t, "flows")
		var points []Point
		var b Builder
		for range rapid.IntRange(1, 6).Draw(t, "points") {
			p := Point{}
			for range ops {
				p.Choice = append(p.Choice, rapid.Int32Range(0, 4).Draw(t, "choice"))
			}
			for range arcs {
				p.Flow = append(p.Flow, unit.Power(flows.Draw(t, "flow")))
			}
			b.Add(p.Choice, p.Flow)
			points = append(points, p)
		}
		h := small().Header
		h.Ops, h.Arcs = ops, arcs
		var buffer bytes.Buffer
		if _, err := b.File(h, make([]Point, len(points))).WriteTo(&buffer); err != nil {
			t.Fatal(err)
		}
		f, err := Read(&buffer, "F.json")
		if err != nil {
			t.Fatal(err)
		}
		i := len(points)
		for p, err := range f.Walk() {
			i--
			if err != nil || !slices.Equal(p.Choice, points[i].Choice) || !slices.Equal(p.Flow, points[i].Flow) {
				t.Fatalf("point %d: %v, %+v, want %+v", i, err, p, points[i])
			}
		}
		if i != 0 {
			t.Fatalf("%d points are missing", i)
		}
	})
}

func TestReadErrors(t *testing.T) {
	good := string(text(t, small()))
	change := func(old, by string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in the file", old)
		}
		return strings.Replace(good, old, by, 1)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"too many decimals", change(`"t_min_s":0.0000003`, `"t_min_s":0.0000003001`), "t_min_s: 0.0000003001 has more than 9 decimals"},
		{"negative price", change(`"price_w":40`, `"price_w":-40`), `points[0].price_w: -40 is outside 0 …`},
		{"exponent beyond range", change(`"price_w":40`, `"price_w":4e300`), `out of range`},
		{"fraction of a count", change(`"ranks":1`, `"ranks":1.5`), "ranks: 1.5 has more than 0 decimals"},
		{"negative count", change(`"ranks":1`, `"ranks":-1`), "ranks: -1 is outside 0 … 16777216"},
		{"too many ops", change(`"ops":2`, `"ops":99999999999`), "ops: 99999999999 is outside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text), "F.json")
			var value *ValueError
			if !errors.As(err, &value) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %T %v\nwant %s", err, err, tt.want)
			}
		})
	}
	tests := []struct{ name, text, want string }{
		{"empty", "", `F.json:1:1: found the end of the file, expected '{'`},
		{"not json", "stage,instruction", `F.json:1:1: found "stage", expected '{'`},
		{"null", "null", `found "null", expected '{'`},
		{"no format", "{}", `F.json:1:1: not a frontier file: a text field "format" is missing`},
		{"format of another type", `{"format":1}`, `a text field "format" is missing`},
		{"another version", change("frontier/1", "frontier/2"), `F.json: format is "perseus-frontier/2"; this version of perseus reads "perseus-frontier/1"`},
		{"version before unknown fields", `{"new":{"a":[1,"]"]},"format":"perseus-frontier/9"}`, `format is "perseus-frontier/9"`},
		{"truncated", good[:len(good)-4], "the file ends within what starts here: it is truncated"},
		{"truncated header", good[:60], "found the end of the file, expected"},
		{"more behind", good + "{}", `found "{", expected the end of the file`},
		{"unknown field", change(`"ranks":`, `"rancs":`), `unknown field "rancs"; is the file from a later version of perseus?`},
		{"double field", change(`"ranks":1`, `"ranks":1,"ranks":1`), "ranks: the field is there twice"},
		{"escaped double field", change(`"ranks":1`, `"ranks":1,"r\u0061nks":1`), "ranks: the field is there twice"},
		{"missing field", change(`"ops":2,`, ``), `field "ops" is missing`},
		{"missing field of a point", change(`"gap":0.000000001,`, ``), `points[0]: field "gap" is missing`},
		{"text for a number", change(`"t_min_s":0.0000003`, `"t_min_s":"0.0000003"`), `F.json:12:11: t_min_s: found "\"0.0000003\"", expected a number`},
		{"leading zero", change(`"price_w":40`, `"price_w":040`), `points[0].price_w: found "040", expected a number`},
		{"plus sign", change(`"price_w":40`, `"price_w":+40`), `points[0].price_w: found "+40", expected a number`},
		{"nan", change(`"price_w":40`, `"price_w":nan`), `points[0].price_w: found "nan", expected a number`},
		{"point without digits after it", change(`"price_w":40`, `"price_w":40.`), "expected a number"},
		{"no point", good[:strings.Index(good, `"points"`)] + `"points":[]}`, "points: there is no point"},
		{"list of text", change(`"flow":[[`, `"flow":[["a",`), "points[0].flow: found"},
		{"empty group", change(`"flow":[[`, `"flow":[[],[`), "points[0].flow: found"},
		{"group of a size alone", change(`"flow":[[`, `"flow":[[1],[`), "points[0].flow: found"},
		{"control character", change(`"1f1b"`, "\"1f\n1b\""), "control character 0x0a in a string"},
		{"not UTF-8", change(`"1f1b"`, "\"1f\xff1b\""), "F.json:2:12: a string that is not UTF-8"},
		{"bad escape", change(`"1f1b"`, `"1f\x1b"`), `F.json:2:12: string "1f\x1b"`},
		{"endless string", change(`"1f1b"`, `"`+strings.Repeat("a", 5000)+`"`), "a string does not end within 4096 bytes"},
		{"deep nesting", `{"format":` + strings.Repeat("[", 1e6), "truncated"},
		{"gzip without end", string(gzipped(t, []byte(good))[:40]), "the gzip file is cut short"},
		{"gzip header alone", "\x1f\x8b", "the gzip file is cut short"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(tt.text), "F.json")
			if err == nil {
				t.Fatal("no error")
			}
			if f != nil {
				t.Errorf("a file comes with the error: %+v", f.Header)
			}
			var syntax *SyntaxError
			var version *VersionError
			if !errors.As(err, &syntax) && !errors.As(err, &version) {
				t.Errorf("%T is neither a *SyntaxError nor a *VersionError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestOtherWriters has the same values read from JSON as others write it.
func TestOtherWriters(t *testing.T) {
	want := text(t, small())
	s := string(want)
	for _, r := range [][2]string{
		{":", " : "},
		{`"t_min_s" : 0.0000003`, `"t_min_s" : 3e-7`},
		{`"1f1b"`, `"\u0031f1b"`},
		{",\n", "\r\n,\t"},
		{`"price_w" : 40`, `"price_w" : 40.000000`},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	s = strings.Replace(s, `[[40000000,0,1,1]]`, `[ [ 40000000 , 0 , 1, 1 ] ]`, 1)
	points := strings.Index(s, `"points"`)
	moved := "{" + strings.TrimSuffix(strings.TrimSpace(s[points:]), "}") + "," + strings.TrimPrefix(s[:points], "{")
	moved = strings.TrimRight(moved, ", \t\r\n") + "}"
	got := text(t, read(t, []byte(moved)))
	got = bytes.Replace(got, []byte(`[ [ 40000000 , 0 , 1, 1 ] ]`), []byte(`[[40000000,0,1,1]]`), 1)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWalkErrors(t *testing.T) {
	good := string(text(t, small()))
	for _, tt := range []struct{ name, old, by, want string }{
		{"arc twice", `"flow":[[40000000,0,1,1]]`, `"flow":[[40000000,0,1,0]]`, "points[0].flow: index 1 is there twice"},
		{"no such arc", `"flow":[[40000000,0,1,1]]`, `"flow":[[40000000,0,1,2]]`, "points[0].flow: index 3, but there are 0 … 2"},
		{"no such op", `"knobs":[[1,1],[2,0]]`, `"knobs":[[1,2],[2,0]]`, "points[0].knobs: index 2, but there are 0 … 1"},
		{"before the first option", `"knobs":[[1,1],[2,0]]`, `"knobs":[[-1,1],[2,0]]`, "points[0].knobs: index 1: 0 + -1 is outside"},
		{"negative flow", `"flow":[[-5,0,1,1]]`, `"flow":[[-6,0,1,1]]`, "points[2].flow: index 0: 5 + -6 is outside 0 …"},
		{"flow beyond all", `"flow":[[40000000,0,1,1]]`, `"flow":[[4600000000000000000,0,1,1]]`, "points[0].flow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("no %s", tt.old)
			}
			f := read(t, []byte(strings.Replace(good, tt.old, tt.by, 1)))
			var err error
			for _, e := range f.Walk() {
				err = e
			}
			var value *ValueError
			if !errors.As(err, &value) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Walk: got %v, want %s", err, tt.want)
			}
			if _, err = f.Load(2); !errors.As(err, &value) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load: got %v, want %s", err, tt.want)
			}
		})
	}
}

func gzipped(t testing.TB, b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

func TestReadGzip(t *testing.T) {
	want := text(t, small())
	if got := text(t, read(t, gzipped(t, want))); !bytes.Equal(got, want) {
		t.Error("compressed, the file reads as something else")
	}
	failure := errors.New("unplugged")
	for _, b := range [][]byte{want, gzipped(t, want)} {
		r := io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(failure))
		if _, err := Read(r, "F.json"); !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
	}
}

func TestDecimals(t *testing.T) {
	for _, tt := range []struct {
		v    int64
		want string
	}{{0, "0"}, {1, "0.000000001"}, {-1, "-0.000000001"}, {1e9, "1"}, {12_300_000_000, "12.3"}, {-1 << 63, "-9223372036.854775808"}} {
		if got := Ratio(tt.v).String(); got != tt.want {
			t.Errorf("%d: got %s, want %s", tt.v, got, tt.want)
		}
		p := &parser{text: []byte(tt.want)}
		if got := p.ratio(); tt.v != -1<<63 && int64(got) != tt.v {
			t.Errorf("%s reads as %d: %v", tt.want, got, p.err)
		}
	}
}

// full returns a file that has everything a header can have.
func full() *File {
	f := small()
	f.Header.Group = 3
	f.Header.Terms = Terms{
		Parallel:          &Parallel{TP: 2, CP: 1, EP: 4, ETP: 1, DP: 4, PP: 1, RankOrder: "tp-cp-ep-dp-pp", Replica: 0},
		Derived:           []string{"input-gradient=backward*0.5", "overlap=forward+backward"},
		Fixed:             []Fixed{{"load", 5}, {"optimizer", 7 * unit.Second}},
		TransferTime:      1_200_000,
		Caps:              []Cap{{0, 1200}},
		MicrobatchFactors: []Factors{{One, One + 1}, {One / 3, 2 * One}},
		OpFactors:         []OpFactors{{1, 2, "forward", Factors{One, 3 * One}}},
		Graph: &Graph{
			Resources: []string{"gpu \"0\"", "é<"},
			Ops:       []GraphOp{{"a", 0, "forward"}, {"b\\", 1, ""}, {"c,\n", -1, ""}},
			Edges:     []dag.Arc{{From: 0, To: 2}, {From: 2, To: 1}},
		},
	}
	c := &f.Header.Curves[1]
	c.CapMHz, c.Factors = 1200, Factors{Time: One / 2}
	f.Header.Curves = append(f.Header.Curves, Curve{Stage: 1, Instruction: "overlap", SecondStage: 2, Options: c.Options, Top: c.Top})
	return f
}

// TestTerms reads back all that a header can have beyond sizes and landmarks.
func TestTerms(t *testing.T) {
	f := full()
	got := read(t, text(t, f))
	if !reflect.DeepEqual(got.Header.Terms, f.Header.Terms) || got.Header.Group != f.Header.Group {
		t.Errorf("got %+v, want %+v", got.Header.Terms, f.Header.Terms)
	}
	for i := range f.Header.Curves {
		if a, b := got.Header.Curves[i].Key(), f.Header.Curves[i].Key(); a != b {
			t.Errorf("entry %d: %v, want %v", i, a, b)
		}
	}
	f.Header.Parallel.Replica = -1
	if got := read(t, text(t, f)); got.Header.Parallel.Replica != -1 {
		t.Errorf("replica %d", got.Header.Parallel.Replica)
	}
	for _, tt := range [][3]string{
		{`"tp":2`, `"tp":0`, "parallel.tp: 0 is outside"},
		{`"clock_mhz":1200`, `"clock_mhz":-1`, "caps[0].clock_mhz"},
		{`[0.333333333,2]`, `[0.333333333]`, "found \"]\", expected ','"},
		{`[0.333333333,2]`, `[0.333333333,2,3]`, "expected ']'"},
		{`[0.333333333,2]`, `[0,2]`, "microbatch_factors[1]: 0 is outside"},
		{`[0.333333333,2]`, `[0.3333333333,2]`, "more than 9 decimals"},
		{`"energy_factor":3`, `"energy_factor":3000`, "op_factors[0].energy_factor: 3000 is outside"},
		{`"resource":0`, `"resource":-1`, "graph.ops[0].resource: -1 is outside"},
		{`"edges":[[0,2]`, `"edges":[[0,"2"]`, "expected a number"},
		{`"transfer_time_s":0.0012`, `"transfer_time_s":9999`, "transfer_time_s: 9999 is outside"},
	} {
		broken := strings.Replace(string(text(t, full())), tt[0], tt[1], 1)
		if _, err := Read(strings.NewReader(broken), "F.json"); err == nil || !strings.Contains(err.Error(), tt[2]) {
			t.Errorf("%s: %v, want %s", tt[1], err, tt[2])
		}
	}
}

func FuzzRead(f *testing.F) {
	good := text(f, small())
	f.Add(good)
	f.Add(gzipped(f, good))
	f.Add(text(f, full()))
	f.Add([]byte(`{"format":"perseus-frontier/2"}`))
	f.Add([]byte(`{"format":"perseus-frontier/1","points":[{"flow":[[1,2,3]],"time_s":1e-9}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(bytes.NewReader(b), "F.json")
		if err != nil {
			var syntax *SyntaxError
			var version *VersionError
			var value *ValueError
			if !errors.As(err, &syntax) && !errors.As(err, &version) && !errors.As(err, &value) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		written := text(t, file)
		again, err := Read(bytes.NewReader(written), "F.json")
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, written)
		}
		if !bytes.Equal(text(t, again), written) {
			t.Fatalf("writing is not stable:\n%s", written)
		}
		if file.Header.Ops > 1<<12 || file.Header.Arcs > 1<<12 {
			return
		}
		for _, err := range file.Walk() {
			var value *ValueError
			if err != nil && !errors.As(err, &value) {
				t.Fatalf("%T %v", err, err)
			}
		}
	})
}

// large returns a file of the size of 8 ranks and 96 microbatches, in which flows
// change along a path and some ops change their option.
func large() *File {
	const ops, arcs, points = 1536, 3546, 622
	var b Builder
	choice, flow := make([]int32, ops), make([]unit.Power, arcs)
	for p := range points {
		b.Add(choice, flow)
		for i := p % 7; i < arcs; i += 5 {
			flow[i] += unit.Power(1_000_003 + p)
		}
		for i := p % 31; i < ops; i += 31 {
			choice[i] = (choice[i] + 1) % 40
		}
	}
	h := small().Header
	h.Ops, h.Arcs = ops, arcs
	return b.File(h, make([]Point, points))
}

func BenchmarkRead(b *testing.B) {
	t := text(b, large())
	b.SetBytes(int64(len(t)))
	for b.Loop() {
		read(b, t)
	}
}

// BenchmarkReadEncodingJSON has package encoding/json read the same points as
// leniently as it does: docs/adr/005 compares.
func BenchmarkReadEncodingJSON(b *testing.B) {
	t := text(b, large())
	b.SetBytes(int64(len(t)))
	for b.Loop() {
		var f struct {
			Points []struct {
				Time      json.Number     `json:"time_s"`
				Relaxed   json.Number     `json:"relaxed_time_s"`
				Energy    json.Number     `json:"energy_j"`
				Effective json.Number     `json:"effective_energy_j"`
				Bound     json.Number     `json:"bound_j"`
				Gap       json.Number     `json:"gap"`
				Price     json.Number     `json:"price_w"`
				Knobs     json.RawMessage `json:"knobs"`
				Flow      json.RawMessage `json:"flow"`
			} `json:"points"`
		}
		if err := json.Unmarshal(t, &f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	f := read(b, text(b, large()))
	for b.Loop() {
		for _, err := range f.Walk() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		large()
	}
}
