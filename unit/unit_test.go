package unit_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func TestParseDecimal(t *testing.T) {
	cases := []struct {
		in     string
		digits int
		round  unit.Rounding
		want   int64
		exact  bool
		err    error
	}{
		{"1.5", 3, unit.Nearest, 1500, true, nil},
		{"-1.5", 0, unit.Nearest, -2, false, nil},
		{"2.5", 0, unit.Nearest, 3, false, nil},
		{"2.49999", 0, unit.Nearest, 2, false, nil},
		{"1.0000000001", 9, unit.Up, 1000000001, false, nil},
		{"-1.0000000001", 9, unit.Up, -1000000000, false, nil},
		{"-1.0000000001", 9, unit.Down, -1000000001, false, nil},
		{"1.0000000009", 9, unit.Down, 1000000000, false, nil},
		{".5", 1, unit.Nearest, 5, true, nil},
		{"5.", 1, unit.Nearest, 50, true, nil},
		{"1e3", 0, unit.Nearest, 1000, true, nil},
		{"1.5E-3", 6, unit.Nearest, 1500, true, nil},
		{"15e-10", 9, unit.Up, 2, false, nil},
		{"1e-999", 9, unit.Up, 1, false, nil},
		{"1e-999", 9, unit.Nearest, 0, false, nil},
		{"0e999", 9, unit.Nearest, 0, true, nil},
		{"+7", 0, unit.Nearest, 7, true, nil},
		{"4611686018427387904", 0, unit.Nearest, 1 << 62, true, nil},
		{"4611686018427387905", 0, unit.Nearest, 0, false, unit.ErrRange},
		{"1e40", 0, unit.Nearest, 0, false, unit.ErrRange},
		{"1e999999999999999999999", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"1e9999", 0, unit.Nearest, 0, false, unit.ErrRange},
		{"", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{".", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"-", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"nan", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"inf", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"0,5", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"1_000", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"1e1_0", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"0x10", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"1e", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"--1", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{"1 ", 0, unit.Nearest, 0, false, unit.ErrSyntax},
		{strings.Repeat("1", 65), 0, unit.Nearest, 0, false, unit.ErrSyntax},
	}
	for _, c := range cases {
		got, exact, err := unit.ParseDecimal(c.in, c.digits, c.round)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: error %v, want %v", c.in, err, c.err)
			continue
		}
		if err == nil && (got != c.want || exact != c.exact) {
			t.Errorf("%q with %d digits: %d, exact %v; want %d, %v", c.in, c.digits, got, exact, c.want, c.exact)
		}
	}
}

func TestParseSuffixes(t *testing.T) {
	for in, want := range map[string]unit.Time{
		"2.9s": 2_900_000_000, "2.9": 2_900_000_000, "2900ms": 2_900_000_000, "5us": 5000, "5µs": 5000, "0.1ns": 1, "12ns": 12,
	} {
		if got, err := unit.ParseTime(in); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]unit.Power{
		"83.64W": 83_640_000, "83.64": 83_640_000, "15kW": 15e9, "1.2MW": 1.2e12, "500mW": 500_000, "7uW": 7,
	} {
		if got, err := unit.ParsePower(in); err != nil || got != want {
			t.Errorf("ParsePower(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]unit.Energy{
		"23.8J": 23.8e12, "5mJ": 5e9, "7kJ": 7e15, "1MJ": 1e18, "3uJ": 3e6,
	} {
		if got, err := unit.ParseEnergy(in); err != nil || got != want {
			t.Errorf("ParseEnergy(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "s", "2.9h", "1,5s", "nans", "2.9 s s"} {
		if _, err := unit.ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) has no error", in)
		}
	}
}

// TestParseDecimalAgreesWithRationals compares with math/big.
func TestParseDecimalAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[+-]?[0-9]{1,12}(\.[0-9]{0,12})?(e-?[0-9])?`).Draw(t, "s")
		digits := rapid.IntRange(0, 12).Draw(t, "digits")
		r := rapid.SampledFrom([]unit.Rounding{unit.Nearest, unit.Up, unit.Down}).Draw(t, "rounding")
		got, exact, err := unit.ParseDecimal(s, digits, r)
		value, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Skip("not a number to math/big")
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		value.Mul(value, new(big.Rat).SetInt(scale))
		want := roundRat(value, r)
		if new(big.Int).Abs(want).Cmp(big.NewInt(1<<62)) > 0 {
			if !errors.Is(err, unit.ErrRange) {
				t.Fatalf("%q: %d, %v; want a range error", s, got, err)
			}
			return
		}
		if err != nil || got != want.Int64() || exact != value.IsInt() {
			t.Fatalf("%q with %d digits: %d, exact %v, %v; want %v", s, digits, got, exact, err, want)
		}
	})
}

func roundRat(v *big.Rat, r unit.Rounding) *big.Int {
	floor := new(big.Int).Div(v.Num(), v.Denom()) // Euclidean: floor for a positive denominator
	if v.IsInt() {
		return floor
	}
	up := new(big.Int).Add(floor, big.NewInt(1))
	switch r {
	case unit.Up:
		return up
	case unit.Down:
		return floor
	}
	half := new(big.Rat).Sub(v, new(big.Rat).SetInt(floor))
	switch half.Cmp(big.NewRat(1, 2)) {
	case -1:
		return floor
	case 0: // away from zero
		if v.Sign() < 0 {
			return floor
		}
	}
	return up
}

func TestJSONRoundTrip(t *testing.T) {
	type all struct {
		T unit.Time
		P unit.Power
		E unit.Energy
	}
	rapid.Check(t, func(t *rapid.T) {
		in := all{
			unit.Time(rapid.Int64Range(-1<<62, 1<<62).Draw(t, "t")),
			unit.Power(rapid.Int64Range(-1<<62, 1<<62).Draw(t, "p")),
			unit.Energy(rapid.Int64Range(-1<<62, 1<<62).Draw(t, "e")),
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out all
		if err := json.Unmarshal(b, &out); err != nil || out != in {
			t.Fatalf("%s reads as %v, %v", b, out, err)
		}
	})
	var v unit.Time
	if err := json.Unmarshal([]byte("0.0000000001"), &v); err == nil {
		t.Error("a tenth of a nanosecond is read as if it were exact")
	}
}

func TestStrings(t *testing.T) {
	for want, got := range map[string]string{
		"2.9s": (2900 * unit.Millisecond).String(), "0s": unit.Time(0).String(), "-0.000000001s": unit.Time(-1).String(),
		"83.64W": unit.Power(83_640_000).String(), "23.8J": unit.Energy(23.8e12).String(),
		"-9223372036.854775808s": unit.Time(math.MinInt64).String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestEnergy128AgreesWithBig compares all arithmetic with math/big.
func TestEnergy128AgreesWithBig(t *testing.T) {
	toBig := func(p unit.Power, d unit.Time) *big.Int {
		return new(big.Int).Mul(big.NewInt(int64(p)), big.NewInt(int64(d)))
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) int64 { return rapid.Int64().Draw(t, name) }
		p1, t1, p2, t2 := unit.Power(draw("p1")), unit.Time(draw("t1")), unit.Power(draw("p2")), unit.Time(draw("t2"))
		a, b := unit.Product(p1, t1), unit.Product(p2, t2)
		x, y := toBig(p1, t1), toBig(p2, t2)
		if got, want := a.Cmp(b), x.Cmp(y); got != want {
			t.Fatalf("Cmp: %d, want %d", got, want)
		}
		if got, want := a.Sign(), x.Sign(); got != want {
			t.Fatalf("Sign: %d, want %d", got, want)
		}
		d := rapid.Int64Range(1, math.MaxInt64).Draw(t, "d")
		r := rapid.SampledFrom([]unit.Rounding{unit.Nearest, unit.Up, unit.Down}).Draw(t, "rounding")
		for name, c := range map[string]struct {
			got  unit.Energy128
			want *big.Int
		}{"sum": {a.Add(b), new(big.Int).Add(x, y)}, "difference": {a.Sub(b), new(big.Int).Sub(x, y)}, "negative": {a.Neg(), new(big.Int).Neg(x)}} {
			want := roundRat(new(big.Rat).SetFrac(c.want, big.NewInt(d)), r)
			got, ok := c.got.DivInt(d, r)
			fits := want.IsInt64() && want.Int64() != math.MinInt64
			if ok != fits || ok && got != want.Int64() {
				t.Fatalf("%s / %d: %d, %v; want %v", name, d, got, ok, want)
			}
			joules, _ := new(big.Rat).SetFrac(c.want, big.NewInt(1e15)).Float64()
			if math.Abs(c.got.Joules()-joules) > 1e-14*math.Abs(joules) {
				t.Fatalf("%s: %v J, want %v J", name, c.got.Joules(), joules)
			}
		}
	})
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"1.5", "-1e-9", "nan", "", ".", "1e999", "0.1s", "83.64W"} {
		f.Add(s, 9)
	}
	f.Fuzz(func(t *testing.T, s string, digits int) {
		digits = int(uint(digits) % 19)
		down, exact, err := unit.ParseDecimal(s, digits, unit.Down)
		if err != nil {
			return
		}
		up, _, err := unit.ParseDecimal(s, digits, unit.Up)
		if err == nil && (exact && up != down || !exact && up != down+1) {
			t.Fatalf("%q: %d … %d, exact %v", s, down, up, exact)
		}
	})
}
