package profile_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

func option(mhz int32, t unit.Time, e unit.Energy) dag.Option {
	return dag.Option{Knobs: dag.Knobs{ClockMHz: mhz}, Time: t, Energy: e}
}

// The rule of the package comment, on cases worked out by hand.
func TestCombined(t *testing.T) {
	const ns, pj = unit.Nanosecond, unit.Picojoule
	for _, c := range []struct {
		name, rows string // without stage and instruction
		want       dag.Option
		repeats    int
		copies     int
	}{
		{"one", "1410,1e-6,2e-4\n", option(1410, 1000*ns, 200_000_000*pj), 0, 0},
		{"two: the mean, up", "1410,1e-6,2e-4\n1410,1.001e-6,2.00000001e-4\n", option(1410, 1001*ns, 200_000_001*pj), 1, 0},
		{"three: each column for itself", "1410,1e-6,3e-4\n1410,2e-6,1e-4\n1410,3e-6,2e-4\n", option(1410, 2000*ns, 200_000_000*pj), 2, 0},
		{"four, one far off", "1410,1e-6,3e-4\n1410,30e-6,90e-4\n1410,1.2e-6,2e-4\n1410,1.1e-6,2.5e-4\n", option(1410, 1150*ns, 275_000_000*pj), 3, 0},
		{"the file twice over", strings.Repeat("1410,1e-6,3e-4\n1410,3e-6,1e-4\n", 2), option(1410, 2000*ns, 200_000_000*pj), 3, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustRead(t, header5+prefixed("0,forward,", c.rows), profile.Options{})
			if got := options(t, p, 0, "forward"); !reflect.DeepEqual(got, []dag.Option{c.want}) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if r := p.Report; r.Repeats != c.repeats || r.Copies != c.copies || p.HasRepeats() != (c.repeats > 0) {
				t.Errorf("report %+v, want %d repeats and %d copies", r, c.repeats, c.copies)
			}
		})
	}
}

func prefixed(prefix, rows string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(rows, "\n"), "\n", "\n"+prefix) + "\n"
}

// Members of a group count together: the slowest one's time, all ones' energy.
// Replicas are repeats, of which the third here is a straggler.
func TestMembersAndReplicas(t *testing.T) {
	text := header9 + `0,0,0,0,0,forward,1410,0.050,20
1,0,0,1,0,forward,1410,0.052,22
2,1,0,0,0,forward,1410,0.051,21
3,1,0,1,0,forward,1410,0.053,23
4,2,0,0,0,forward,1410,0.080,30
5,2,0,1,0,forward,1410,0.081,31
4,2,0,0,0,forward,1395,0.080,29
3,1,0,1,0,forward,1395,0.060,23
`
	p := mustRead(t, text, profile.Options{})
	want := []dag.Option{
		option(1395, 80*unit.Millisecond, 52*unit.Joule),
		option(1410, 53*unit.Millisecond, 44*unit.Joule),
	}
	if got := options(t, p, 0, "forward"); !reflect.DeepEqual(got, want) || p.GPUsPerStage != 2 {
		t.Errorf("got %v of %d GPUs, want %v of 2", got, p.GPUsPerStage, want)
	}
	lines := []string{
		"p.csv: 8 rows, 1 stage of 2 GPUs, forward",
		"combined: 4 repeats of the same op, clock and GPU by their median",
		"stage 0: forward: 2 clocks, 1395–1410 MHz",
	}
	if got := p.Report.Lines(); !reflect.DeepEqual(got, lines) {
		t.Errorf("report %q, want %q", got, lines)
	}
}

// Two thousand ranks, two stages a pipeline rank.
func TestManyRanks(t *testing.T) {
	var b strings.Builder
	b.WriteString(header9)
	rank := 0
	for dp := range 16 {
		for pp := range 16 {
			for tp := range 8 {
				for chunk := range 2 {
					row := []int{rank, dp, pp, tp, pp + 16*chunk}
					for _, n := range row {
						b.WriteString(strconv.Itoa(n) + ",")
					}
					b.WriteString("forward,1410,0.05,23.8\n")
				}
				rank++
			}
		}
	}
	p := mustRead(t, b.String(), profile.Options{})
	if p.Stages() != 32 || p.GPUsPerStage != 8 {
		t.Errorf("%d stages of %d GPUs", p.Stages(), p.GPUsPerStage)
	}
	want := []dag.Option{option(1410, 50*unit.Millisecond, 8*23_800*unit.Joule/1000)}
	if got := options(t, p, 31, "forward"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSkipped(t *testing.T) {
	text := header5 + good + `0,forward,1380,nan,23.1
0,forward,1365
0,forward,1350,0.052,23000
0,forward,1335,53,22900
0,forward,1320,0.054,22.8
`
	p := mustRead(t, text, profile.Options{SkipBadRows: true})
	if n := len(options(t, p, 0, "forward")); n != 3 || p.Report.Skipped != 4 || p.Report.Rows != 7 {
		t.Errorf("%d options, report %+v", n, p.Report)
	}
	want := []string{
		"p.csv: 7 rows, 1 stage, forward",
		"skipped: 4 rows",
		`skipped: p.csv:4:16: time "nan": nothing was measured here; measure this again, or delete the row`,
		`skipped: p.csv:5:15: row "0,forward,1365": 3 fields where the header has 5; complete or delete the row`,
		`skipped: p.csv:6:22: energy "23000": in a time of 0.052s that is 442307 W, too much for a GPU; it would be usual as energy=mJ`,
		`skipped: p.csv:7:16: time "53": stage 0, forward at 1335 MHz: the op's median is 0.0525s; is it in another unit? correct or delete the row`,
		"stage 0: forward: 3 clocks, 1320–1410 MHz",
	}
	if got := p.Report.Lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("report\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A clock that a member lacks is left out as a whole.
	p = mustRead(t, header9+"0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1395,0.05,23.8\n", profile.Options{SkipBadRows: true})
	if n := len(options(t, p, 0, "forward")); n != 1 || p.Report.Skipped != 1 {
		t.Errorf("%d options, report %+v", n, p.Report)
	}
}

// The list of skipped rows is bounded, their number is not.
func TestSkippedMany(t *testing.T) {
	p := mustRead(t, header5+strings.Repeat("0,forward,1410,,23.8\n", 1000)+good, profile.Options{SkipBadRows: true})
	if p.Report.Skipped != 1000 || len(p.Report.Skips) != 20 || p.Report.Skips[19].Line != 21 {
		t.Errorf("%d skipped, %d listed", p.Report.Skipped, len(p.Report.Skips))
	}
	if got, want := p.Report.Lines()[22], "skipped: 980 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Skipping is no way around what is wrong with the file as a whole.
func TestNotSkipped(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"all rows bad", header5 + "0,forward,1410,nan,1\n", `p.csv: all 1 rows are bad
p.csv:2:16: time "nan": nothing was measured here; measure this again, or delete the row`},
		{"wrong unit", header5 + "0,forward,1410,0.05,23800\n" + good + "0,forward,1380,0.05,23800\n0,forward,1365,0.05,23800\n", `p.csv:2:21: energy "23800": in a time of 0.05s that is 476000 W, too much for a GPU; it would be usual as energy=mJ (3 of 5 rows are so: say what the units are with Options.Units)`},
		{"stage gone with its rows", header5 + good + "1,forward,1410,,\n2,forward,1410,0.05,23.8\n", `p.csv:5:1: stage "2": rows of stage 1 are missing; there are those of stage 0 and 2; a profile has all stages, from 0`},
		{"instruction gone with its rows", header5 + good + "0,backward,1410,,\n1,forward,1410,0.05,23.8\n1,backward,1410,0.1,47\n", `p.csv:2:1: stage "0": this stage has no rows of backward, which others have; measure it on all stages`},
		{"ranks", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n0,0,0,1,0,forward,1410,0.05,23.8\n", `p.csv:3:1: rank "0": the rank columns contradict each other: rank 0 has dp_rank 0, pp_rank 0 and tp_rank 1 here, but dp_rank 0, pp_rank 0 and tp_rank 0 in line 2`},
		{"no clock on all members", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1395,0.05,23.8\n", `p.csv: no row is left after skipping 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := profile.Read(strings.NewReader(c.input), "p.csv", profile.Options{SkipBadRows: true})
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Resampling draws whole rows: with two rows at a clock there are three outcomes.
func TestResample(t *testing.T) {
	p := mustRead(t, header5+"0,forward,1410,0.05,23\n0,forward,1410,0.052,22\n0,forward,1395,0.06,21\n", profile.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[dag.Option]int{}
	for range 400 {
		q := p.Resample(rng)
		o := options(t, q, 0, "forward")
		if o[0] != option(1395, 60*unit.Millisecond, 21*unit.Joule) {
			t.Fatalf("the clock without repeats became %v", o[0])
		}
		if q.SHA256 != "" || q.Stages() != 1 || q.GPUsPerStage != 1 {
			t.Fatalf("%+v", q)
		}
		seen[o[1]]++
	}
	first, second, mean := option(1410, 50*unit.Millisecond, 23*unit.Joule), option(1410, 52*unit.Millisecond, 22*unit.Joule), option(1410, 51*unit.Millisecond, 22_500*unit.Joule/1000)
	// Expected 100, 100 and 200; the bounds are five standard deviations away.
	if len(seen) != 3 || seen[first] < 57 || seen[second] < 57 || seen[mean] < 150 {
		t.Errorf("outcomes %v", seen)
	}
	if o := options(t, p, 0, "forward"); o[1] != mean {
		t.Errorf("resampling changed the profile: %v", o)
	}
	again := func() *profile.Profile { return p.Resample(rand.New(rand.NewPCG(7, 7))) }
	if !reflect.DeepEqual(again(), again()) {
		t.Error("the same generator gives another sample")
	}
}

// A group's rows come back with rank columns, and give the same.
func TestWriteMembers(t *testing.T) {
	p := mustRead(t, header9+"5,1,0,0,0,forward,1410,0.05,23.8\n7,1,0,1,0,forward,1410,0.0501,23.9\n9,0,0,1,0,forward,1410,0.0502,23.7\n", profile.Options{})
	var b bytes.Buffer
	if err := p.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1410,0.0501,23.9\n1,0,0,1,0,forward,1410,0.0502,23.7\n"
	if b.String() != want {
		t.Errorf("wrote\n%swant\n%s", b.String(), want)
	}
	q := mustRead(t, b.String(), profile.Options{})
	if !reflect.DeepEqual(options(t, q, 0, "forward"), options(t, p, 0, "forward")) || q.GPUsPerStage != 2 {
		t.Error("what was written reads differently")
	}
}
