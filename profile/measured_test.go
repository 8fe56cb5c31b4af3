package profile_test

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"github.com/perseus-energy/perseus/internal/shareddata"
	"github.com/perseus-energy/perseus/profile"
)

// readFile reads a measured profile that lies beside the checkout.
func readFile(t testing.TB, name string) *profile.Profile {
	t.Helper()
	b, err := os.ReadFile(shareddata.Shared(t, "data", "profiles", name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Read(bytes.NewReader(b), name, profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The counts were taken from the files with awk, not with this package.
func TestMeasuredProfiles(t *testing.T) {
	for _, c := range []struct {
		name          string
		rows, clocks  int
		rises         []int // of stage 0: backward, forward
		lines         []string
		slowest, last string
	}{
		{
			name: "gpt3-175b-a100-sxm.csv", rows: 608, clocks: 38, rises: []int{0, 0},
			lines: []string{
				"gpt3-175b-a100-sxm.csv: 608 rows, 8 stages, backward and forward",
				"repaired: CRLF at the end of 609 lines",
				"stages 0–7: backward and forward: 38 clocks, 855–1410 MHz",
			},
		},
		{
			name: "bloom-176b-a40.csv", rows: 960, clocks: 60, rises: []int{6, 13},
			lines: []string{
				"bloom-176b-a40.csv: 960 rows, 8 stages, backward and forward",
				"repaired: CRLF at the end of 961 lines",
				"kept as measured: the time does not fall at 155 of 944 steps to a higher clock",
				"stages 0–7: backward and forward: 60 clocks, 855–1740 MHz",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := readFile(t, c.name)
			if p.Report.Rows != c.rows || p.Report.Points != c.rows || p.HasRepeats() || p.Stages() != 8 || p.GPUsPerStage != 1 {
				t.Errorf("report %+v of %d stages of %d GPUs", p.Report, p.Stages(), p.GPUsPerStage)
			}
			for i, rises := range c.rises {
				if o := p.Report.Ops[i]; o.Rises != rises || o.Clocks != c.clocks {
					t.Errorf("op %+v: want %d clocks and %d rises", o, c.clocks, rises)
				}
			}
			if got := p.Report.Lines(); !reflect.DeepEqual(got, c.lines) {
				t.Errorf("lines\n%q\nwant\n%q", got, c.lines)
			}
			for _, instruction := range []string{"forward", "backward"} {
				options, err := p.Options(3, instruction)
				if err != nil || len(options) != c.clocks {
					t.Errorf("%s: %d options, %v", instruction, len(options), err)
				}
			}
		})
	}
}

// Times are rounded up to a nanosecond and energies to the nearest picojoule:
// 1410 MHz, forward, stage 0 of the file reads 0.05016166687011708 s and
// 23.80547200000007 J.
func TestMeasuredDigits(t *testing.T) {
	p := readFile(t, "gpt3-175b-a100-sxm.csv")
	options, err := p.Options(0, "forward")
	if err != nil {
		t.Fatal(err)
	}
	if o := options[len(options)-1]; o.Knobs.ClockMHz != 1410 || o.Time != 50_161_667 || o.Energy != 23_805_472_000_000 {
		t.Errorf("got %v, %v, %v", o.Knobs, o.Time, o.Energy)
	}
}
