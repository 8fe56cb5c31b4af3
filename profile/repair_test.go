package profile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

func mustRead(t testing.TB, text string, opt profile.Options) *profile.Profile {
	t.Helper()
	p, err := profile.Read(strings.NewReader(text), "p.csv", opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func options(t testing.TB, p *profile.Profile, stage int, instruction string) []dag.Option {
	t.Helper()
	o, err := p.Options(stage, instruction)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Every repair gives the same options as the clean file and a line in the report.
func TestRepaired(t *testing.T) {
	clean := mustRead(t, header5+good, profile.Options{})
	if got, want := clean.Report.Lines(), []string{"p.csv: 2 rows, 1 stage, forward", "stage 0: forward: 2 clocks, 1395–1410 MHz"}; !reflect.DeepEqual(got, want) {
		t.Errorf("clean file: %q", got)
	}
	for _, c := range []struct {
		name, input string
		report      []string // between the first line and the last
	}{
		{"byte order mark", "\ufeff" + header5 + good, []string{"repaired: byte order mark removed"}},
		{"CRLF", strings.ReplaceAll(header5+good, "\n", "\r\n"), []string{"repaired: CRLF at the end of 3 lines"}},
		{"CRLF now and then", header5 + strings.Replace(good, "\n", "\r\n", 1), []string{"repaired: CRLF at the end of 1 line"}},
		{"CR before the end of the file", header5 + strings.TrimSuffix(good, "\n") + "\r", nil},
		{"no line end at the end", header5 + strings.TrimSuffix(good, "\n"), nil},
		{"blank lines", "\n\n" + header5 + "\n" + good + " \n\t\n\r\n", []string{"repaired: CRLF at the end of 1 line", "repaired: 6 blank lines ignored"}},
		{"column order", "time,stage,energy,frequency,instruction\n0.05,0,23.8,1410,forward\n0.051,0,23.5,1395,forward\n", []string{"repaired: columns put in order"}},
		{
			"extra columns", "note,stage,instruction,frequency,,time,energy,\n\"x, \"\"y\"\"\",0,forward,1410,,0.05,23.8,\n,0,forward,1395,,0.051,23.5,\n",
			[]string{`repaired: 3 columns ignored: "note", "" and ""`},
		},
		{
			"many extra columns", "a,b,c,d,e,f,g,h,i,j," + header5 + "0,0,0,0,0,0,0,0,0,0,0,forward,1410,0.05,23.8\n0,0,0,0,0,0,0,0,0,0,0,forward,1395,0.051,23.5\n",
			[]string{`repaired: 10 columns ignored: "a", "b", "c", "d", "e", "f", "g", "h" and 2 more`},
		},
		{"spaces", " stage,instruction,frequency,time,energy\n0, forward ,1410\t,0.05,23.8\n0,forward,1395,0.051,23.5  \n", []string{"repaired: spaces around 4 values removed"}},
		{"no-break space", "stage,instruction,frequency,time,energy\n0,forward,1410,\u00a00.05,23.8\n0,forward,1395,0.051,23.5\n", []string{"repaired: spaces around 1 value removed"}},
		{"quotes", "\"stage\",instruction,\"frequency\",time,energy\n\"0\",\"forward\",1410,\"0.05\",23.8\n0,forward,\"1395\",0.051,23.5\n", nil},
		{"spaces and quotes", header5 + "0, \"forward\" ,\" 1410\",0.05,23.8\n0,forward,1395,0.051,23.5\n", []string{"repaired: spaces around 2 values removed"}},
		{"files joined", header5 + "0,forward,1410,0.05,23.8\n\ufeff" + header5 + "0,forward,1395,0.051,23.5\n" + header5, []string{"repaired: 2 repeated headers ignored"}},
		{"whole numbers with a point", header5 + "0.0,forward,1410.0,0.05,23.8\n0,forward,1.395e3,51e-3,+23.50\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustRead(t, c.input, profile.Options{})
			if got, want := options(t, p, 0, "forward"), options(t, clean, 0, "forward"); !reflect.DeepEqual(got, want) {
				t.Errorf("options %v, want %v", got, want)
			}
			lines := p.Report.Lines()
			if got := lines[1 : len(lines)-1]; len(got)+len(c.report) > 0 && !reflect.DeepEqual(got, c.report) {
				t.Errorf("report\n%q\nwant\n%q", got, c.report)
			}
		})
	}
}

func TestCompressed(t *testing.T) {
	text := header5 + good
	p := mustRead(t, compressed(t, text), profile.Options{})
	sum := sha256.Sum256([]byte(text))
	if !p.Report.Compressed || p.Report.Bytes != int64(len(text)) || p.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("report %+v, digest %s", p.Report, p.SHA256)
	}
	if q := mustRead(t, text, profile.Options{}); q.SHA256 != p.SHA256 || q.Report.Compressed {
		t.Errorf("the file itself: report %+v, digest %s", q.Report, q.SHA256)
	}
	// Members of gzip follow each other, as from cat.
	joined := mustRead(t, compressed(t, header5)+compressed(t, good), profile.Options{})
	if joined.SHA256 != p.SHA256 {
		t.Error("two gzip members are not read as one file")
	}
}

// Time is rounded up, energy to the nearest, whatever the unit.
func TestUnits(t *testing.T) {
	want := []dag.Option{{Knobs: dag.Knobs{ClockMHz: 1410}, Time: 50_161_668, Energy: 23_805_472_000_001}}
	for _, c := range []struct{ units, row string }{
		{"", "1410,0.0501616670000001,23.8054720000005"},
		{"time=s,energy=J,frequency=MHz", "1410,0.0501616670000001,23.8054720000014"},
		{"time=ms,energy=mJ,frequency=Hz", "1410000000,50.1616670000001,23805.4720000005"},
		{"time=us,energy=uJ,frequency=kHz", "1410000,50161.6670000001,23805472.0000005"},
		{"time=ns,energy=kJ,frequency=GHz", "1.41,50161667.0000001,0.0238054720000005"},
		{" frequency = GHz , time = ns ", "1.41,50161667.0000001,23.8054720000005"},
	} {
		u, err := profile.ParseUnits(c.units)
		if err != nil {
			t.Fatal(err)
		}
		p := mustRead(t, header5+"0,forward,"+c.row+"\n", profile.Options{Units: u})
		if got := options(t, p, 0, "forward"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", c.units, got, want)
		}
		again, err := profile.ParseUnits(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%s: comes back as %s, %v", u, again, err)
		}
	}
	if s := (profile.Units{}).String(); s != "time=s,energy=J,frequency=MHz" {
		t.Errorf("the usual units are %s", s)
	}
}

func TestUnitsRefused(t *testing.T) {
	for _, c := range []struct{ units, want string }{
		{"time=min", `units: time=min is unknown; write one of s, ms, us and ns`},
		{"energy=Wh", `units: energy=Wh is unknown; write one of J, mJ, uJ and kJ`},
		{"frequency=hz", `units: frequency=hz is unknown; write one of MHz, kHz, Hz and GHz`},
		{"stage=ms", `units: "stage=ms" is not understood; write time=…, energy=… or frequency=…, as in time=ms,energy=mJ,frequency=Hz`},
		{"ms", `units: "ms" is not understood; write time=…, energy=… or frequency=…, as in time=ms,energy=mJ,frequency=Hz`},
		{"time=", `units: "time=" is not understood; write time=…, energy=… or frequency=…, as in time=ms,energy=mJ,frequency=Hz`},
		{"time=ms,time=us", `units: time is given twice`},
	} {
		if _, err := profile.ParseUnits(c.units); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.units, err, c.want)
		}
	}
	_, err := profile.Read(strings.NewReader(header5+good), "p.csv", profile.Options{Units: profile.Units{Time: "h"}})
	if err == nil {
		t.Error("an unknown unit is taken")
	}
}

// A unit that is given is believed: long ops and weak GPUs pass.
func TestUnitsBelieved(t *testing.T) {
	long := header5 + "0,forward,1410,50,23800\n1,forward,1410,0.1,47\n"
	mustRead(t, long, profile.Options{Units: profile.Units{Time: "s"}})
	weak := header5 + "0,forward,1410,0.05,0.2\n"
	mustRead(t, weak, profile.Options{Units: profile.Units{Energy: "J"}})
}

// Values that no rule of thumb may refuse: real profiles have them.
func TestKept(t *testing.T) {
	for _, c := range []struct{ name, rows string }{
		{"time and energy rise with the clock", "0,forward,1410,0.052,23.5\n0,forward,1395,0.05,23\n0,forward,1380,0.051,24\n"},
		{"a single clock", "0,forward,1410,0.05,23.8\n"},
		{"clocks differ by op", "0,forward,1410,0.05,23.8\n0,backward,1200,0.1,47\n0,backward,900,0.12,44\n"},
		{"an op of almost no time", "0,forward,1410,0.05,23.8\n0,input-gradient,1410,1e-6,2e-4\n1,forward,1410,0.05,23.8\n1,input-gradient,1410,0.5,240\n"},
		{"stages of very different size", "0,forward,1410,0.001,0.47\n1,forward,1410,0.15,70\n"},
		{"clocks with a factor of ten in time", "0,forward,1980,0.05,30\n0,forward,210,0.47,50\n0,forward,120,0.82,70\n"},
		{"a GPU of 1.4 kW and one of 7 W", "0,forward,1980,0.05,70\n0,backward,600,0.5,3.5\n"},
		{"negative effective energy", "0,forward,1410,0.05,2\n0,forward,900,0.08,2.1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustRead(t, header5+c.rows, profile.Options{})
			n := 0
			for _, o := range p.Report.Ops {
				n += o.Clocks
			}
			if n != p.Report.Rows {
				t.Errorf("%d options of %d rows", n, p.Report.Rows)
			}
		})
	}
	p := mustRead(t, header5+"0,forward,1410,0.052,23.5\n0,forward,1395,0.05,23\n0,forward,1380,0.051,24\n", profile.Options{})
	want := []unit.Time{51_000_000, 50_000_000, 52_000_000}
	for i, o := range options(t, p, 0, "forward") {
		if o.Time != want[i] {
			t.Errorf("option %d takes %v, want %v", i, o.Time, want[i])
		}
	}
	if got, want := p.Report.Lines()[1], "kept as measured: the time does not fall at 1 of 2 steps to a higher clock"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
