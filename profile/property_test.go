package profile_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// measurement is a row of a random profile, in ns and pJ.
type measurement struct {
	stage, clock, member int
	instruction          string
	time, energy         int64
}

// random draws a profile's rows: any number of stages, members, instructions,
// clocks, and repeats, with times and powers that stay within a factor of 20
// and clocks within one of 2.
func random(t *rapid.T) (rows []measurement, members int) {
	members = rapid.IntRange(1, 3).Draw(t, "members")
	instructions := []string{"forward", "backward", "x-1"}[:rapid.IntRange(1, 3).Draw(t, "instructions")]
	for stage := range rapid.IntRange(1, 4).Draw(t, "stages") {
		for _, instruction := range instructions {
			base := rapid.Int64Range(1, 1e8).Draw(t, "time")
			clocks := rapid.SliceOfNDistinct(rapid.IntRange(900, 1800), 1, 5, rapid.ID).Draw(t, "clocks")
			for _, clock := range clocks {
				for member := range members {
					for range rapid.IntRange(1, 4).Draw(t, "repeats") {
						time := base * rapid.Int64Range(100, 1000).Draw(t, "slower") / 100
						power := rapid.Int64Range(50_000, 500_000).Draw(t, "mW")
						rows = append(rows, measurement{stage, clock, member, instruction, time, time*power + rapid.Int64Range(0, 100).Draw(t, "pJ")})
					}
				}
			}
		}
	}
	return rows, members
}

// text writes rows, with rank columns where a stage has several members.
func text(rows []measurement, members int) string {
	var b strings.Builder
	b.WriteString(header5)
	if members > 1 {
		b.Reset()
		b.WriteString(header9)
	}
	for _, m := range rows {
		if members > 1 {
			fmt.Fprintf(&b, "%d,0,%d,%d,", m.stage*members+m.member, m.stage, m.member)
		}
		fmt.Fprintf(&b, "%d,%s,%d,%d.%09d,%d.%012d\n", m.stage, m.instruction, m.clock, m.time/1e9, m.time%1e9, m.energy/1e12, m.energy%1e12)
	}
	return b.String()
}

// expected applies the rule of the package comment, in the slowest way there is.
func expected(rows []measurement, members, stage int, instruction string) []dag.Option {
	var options []dag.Option
	var clocks []int
	for _, m := range rows {
		clocks = append(clocks, m.clock)
	}
	slices.Sort(clocks)
	for _, clock := range slices.Compact(clocks) {
		o := dag.Option{Knobs: dag.Knobs{ClockMHz: int32(clock)}}
		found := false
		for member := range members {
			var times, energies []int64
			for _, m := range rows {
				if m.stage == stage && m.instruction == instruction && m.clock == clock && m.member == member {
					times, energies = append(times, m.time), append(energies, m.energy)
					found = true
				}
			}
			if len(times) > 0 {
				o.Time = max(o.Time, unit.Time(middle(times)))
				o.Energy += unit.Energy(middle(energies))
			}
		}
		if found {
			options = append(options, o)
		}
	}
	return options
}

func middle(v []int64) int64 {
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2] + 1) / 2
	}
	return v[len(v)/2]
}

func read(t *rapid.T, text string) *profile.Profile {
	p, err := profile.Read(strings.NewReader(text), "p.csv", profile.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func TestRuleOnRandomProfiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, members := random(t)
		p := read(t, text(rows, members))
		for stage := range p.Stages() {
			for _, instruction := range p.Instructions() {
				got, err := p.Options(stage, instruction)
				if want := expected(rows, members, stage, instruction); err != nil || !slices.Equal(got, want) {
					t.Fatalf("stage %d, %s: got %v, %v, want %v", stage, instruction, got, err, want)
				}
			}
		}
	})
}

// The order of rows and columns does not matter, nor reading the file twice over.
func TestOrderOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, members := random(t)
		p := read(t, text(rows, members))
		shuffled := rapid.Permutation(rows).Draw(t, "shuffled")
		sameProfile(t, p, read(t, text(shuffled, members)))
		q := read(t, text(append(shuffled, rows...), members))
		for stage := range p.Stages() {
			for _, instruction := range p.Instructions() {
				a, _ := p.Options(stage, instruction)
				b, _ := q.Options(stage, instruction)
				if !slices.Equal(a, b) {
					t.Fatalf("twice over: got %v, want %v", b, a)
				}
			}
		}
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, members := random(t)
		p := read(t, text(rows, members))
		var b, again bytes.Buffer
		if err := p.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		q := read(t, b.String())
		sameProfile(t, p, q)
		if err := q.WriteCSV(&again); err != nil || again.String() != b.String() {
			t.Fatalf("written twice:\n%s\n%s", b.String(), again.String())
		}
	})
}

// Every sample has the points of the profile, each between its repeats' extremes.
func TestSamplesStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, members := random(t)
		p := read(t, text(rows, members))
		sample := p.Resample(newRand(rapid.Uint64().Draw(t, "seed")))
		for stage := range p.Stages() {
			for _, instruction := range p.Instructions() {
				a, _ := p.Options(stage, instruction)
				b, _ := sample.Options(stage, instruction)
				if len(a) != len(b) {
					t.Fatalf("%d options became %d", len(a), len(b))
				}
				for i := range a {
					low, high := extremes(rows, stage, instruction, int(a[i].Knobs.ClockMHz))
					if b[i].Knobs != a[i].Knobs || b[i].Time < low || b[i].Time > high {
						t.Fatalf("%v became %v, outside %v … %v", a[i], b[i], low, high)
					}
				}
			}
		}
	})
}

func extremes(rows []measurement, stage int, instruction string, clock int) (low, high unit.Time) {
	low = unit.MaxOpTime
	for _, m := range rows {
		if m.stage == stage && m.instruction == instruction && m.clock == clock {
			low, high = min(low, unit.Time(m.time)), max(high, unit.Time(m.time))
		}
	}
	return low, high
}
