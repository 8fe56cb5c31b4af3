package unit_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/perseus-energy/perseus/unit"
	"pgregory.net/rapid"
)

func TestParseRatio(t *testing.T) {
	for text, want := range map[string]unit.Ratio{
		"1.2": 12 * unit.One / 10, "120%": 12 * unit.One / 10, " 0.5 % ": unit.One / 200, "1e-9": 1, "0.0000001%": 1, "0.4e-9": 0, "-5%": -unit.One / 20, "0": 0, "1e0": unit.One, "0.0000000005": 1,
	} {
		if got, err := unit.ParseRatio(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "1%%", "x", "nan", "1e30", "1 2", "1,2", "inf", "1.2x", "0x1", "1e400", "99999999999999999999"} {
		if got, err := unit.ParseRatio(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestRatioText has decimals, percentages and JSON be exact, and read as they were
// written, however large.
func TestRatioText(t *testing.T) {
	for r, want := range map[unit.Ratio][2]string{
		unit.One: {"1", "100%"}, 1: {"0.000000001", "0.0000001%"}, -unit.One / 200: {"-0.005", "-0.5%"}, 0: {"0", "0%"},
		1000*unit.One + 1: {"1000.000000001", "100000.0000001%"}, math.MaxInt64: {"9223372036.854775807", "922337203685.4775807%"},
		math.MinInt64: {"-9223372036.854775808", "-922337203685.4775808%"},
	} {
		if got := [2]string{r.String(), r.Percent()}; got != want {
			t.Errorf("%d: %q, want %q", int64(r), got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		r := unit.Ratio(rapid.Int64Range(-1<<61, 1<<61).Draw(t, "ratio"))
		for _, text := range []string{r.String(), r.Percent()} {
			if got, err := unit.ParseRatio(text); err != nil || got != r {
				t.Fatalf("%s: %d, %v, want %d", text, got, err, r)
			}
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got := unit.Ratio(7)
		if err := json.Unmarshal(b, &got); err != nil || got != r {
			t.Fatalf("%s: %v, %v", b, got, err)
		}
	})
	kept := unit.Ratio(7)
	for _, text := range []string{"0.0000000001", `"1"`, "1e40"} {
		if err := json.Unmarshal([]byte(text), &kept); err == nil || kept != 7 {
			t.Errorf("%s: %v, %v", text, kept, err)
		}
	}
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		r := unit.Ratio(rapid.Int64Range(0, 1000*int64(unit.One)).Draw(t, "ratio"))
		rounding := rapid.SampledFrom([]unit.Rounding{unit.Nearest, unit.Up, unit.Down}).Draw(t, "rounding")
		exact := new(big.Rat).Mul(new(big.Rat).SetInt64(v), big.NewRat(int64(r), int64(unit.One)))
		want := roundRat(exact, rounding)
		got, ok := unit.Scale(unit.Time(v), r, rounding)
		if ok != (want.CmpAbs(big.NewInt(math.MaxInt64)) <= 0) || ok && int64(got) != want.Int64() {
			t.Fatalf("%d times %v: %d, %v, want %v", v, r, got, ok, want)
		}
	})
	if e, ok := unit.Scale(3*unit.Joule, unit.One/3, unit.Nearest); !ok || e != unit.Joule-1000 { // a third is not a whole number of parts
		t.Errorf("%v, %v", e, ok)
	}
}

func TestAppendDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, digits := rapid.Int64().Draw(t, "v"), rapid.IntRange(0, 18).Draw(t, "digits")
		text := string(unit.AppendDecimal([]byte("x"), v, digits))[1:]
		got, ok := new(big.Rat).SetString(text)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		if !ok || got.Cmp(new(big.Rat).SetFrac(big.NewInt(v), scale)) != 0 {
			t.Fatalf("%d / 10^%d is written %s", v, digits, text)
		}
	})
	for want, got := range map[string][]byte{
		"2.9": (2900 * unit.Millisecond).AppendDecimal(nil), "83.64": unit.Power(83_640_000).AppendDecimal(nil),
		"0.5": (unit.Joule / 2).AppendDecimal(nil), "1.2": (12 * unit.One / 10).AppendDecimal(nil),
	} {
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
