package profile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/perseus-energy/perseus/profile"
)

const (
	header5 = "stage,instruction,frequency,time,energy\n"
	header9 = "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n"
	good    = "0,forward,1410,0.05,23.8\n0,forward,1395,0.051,23.5\n"
	skip    = "\np.csv: Options.SkipBadRows leaves such rows out and counts them"
)

func compressed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each kind of bad input, with the whole message.
func TestRefused(t *testing.T) {
	zipped := compressed(t, header5+good)
	for _, c := range []struct{ name, input, want string }{
		// The file as a whole.
		{"empty file", "", `p.csv: the file is empty; its first line must be stage,instruction,frequency,time,energy`},
		{"byte order mark only", "\ufeff\r\n", `p.csv: the file is empty; its first line must be stage,instruction,frequency,time,energy`},
		{"no rows", header5, `p.csv: no row follows the header`},
		{"too long", header5 + strings.Repeat("0,forward,1410,0.05,23.8\n", 1000), `p.csv: longer than 20000 bytes, the most that is read; leave out rows that are not needed`},
		{"gzip bomb", compressed(t, strings.Repeat("\x00", 1<<20)), `p.csv: longer than 20000 bytes, the most that is read; leave out rows that are not needed`},
		{"gzip of nothing, for ever", strings.Repeat(compressed(t, ""), 1000), `p.csv: longer than 20000 bytes, the most that is read; leave out rows that are not needed`},
		{"gzip cut short", zipped[:len(zipped)-12], `p.csv: the gzip file is cut short; copy or make it again`},
		{"gzip header cut short", zipped[:4], `p.csv: the gzip file is cut short; copy or make it again`},
		{"gzip damaged", zipped[:len(zipped)-8] + "12345678", `p.csv: damaged gzip file (gzip: invalid checksum); copy or make it again`},
		{"Excel workbook", "PK\x03\x04\x00", `p.csv: a zip file or an Excel workbook; unpack it, or save the sheet as "CSV UTF-8"`},
		{"zstd", "\x28\xb5\x2f\xfd\x00", `p.csv: compressed, but not with gzip; use gzip or none`},
		{"UTF-16 with a mark", "\xff\xfes\x00t\x00", `p.csv: UTF-16; save the file as UTF-8, which spreadsheets call "CSV UTF-8"`},
		{"UTF-16 without a mark", "s\x00t\x00", `p.csv:1:2: a NUL byte, as UTF-16 has; save the file as UTF-8, which spreadsheets call "CSV UTF-8"`},
		{"NUL", header5 + "0,forward,1410,0.05,23.8\x00\n", `p.csv:2:25: a NUL byte: a binary file, or one that was cut off in a crash; save the file as UTF-8, which spreadsheets call "CSV UTF-8"`},
		{"Latin-1", header5 + "0,arri\xe8re,1410,0.05,23.8\n", `p.csv:2:7: the byte 0xE8 is not UTF-8 (Latin-1 or Windows-1252?); save the file as UTF-8, which spreadsheets call "CSV UTF-8"`},
		{"CR alone", strings.ReplaceAll(header5+good, "\n", "\r"), `p.csv:1:40: a carriage return inside a line; end lines with LF or CRLF`},

		// The header.
		{"no header", good, `p.csv:1:1: the header is missing: the first line must be stage,instruction,frequency,time,energy`},
		{"semicolons", "stage;instruction;frequency;time;energy\n0;forward;1410;0,05;23,8\n", `p.csv:1:6: ';' separates the columns; separate them with commas, and write decimals with a point`},
		{"tabs", "stage\tinstruction\tfrequency\ttime\tenergy\n", `p.csv:1:6: '\t' separates the columns; separate them with commas, and write decimals with a point`},
		{"column missing", "stage,instruction,frequency,time\n", `p.csv:1:1: column "energy": missing; the header must be stage,instruction,frequency,time,energy`},
		{"columns called otherwise", "Stage,instruction,frequency,time_s,energy\n", `p.csv:1:1: column "Stage": unknown, and there is no column stage; if it is that one, rename it
p.csv:1:29: column "time_s": unknown, and there is no column time; if it is that one, rename it`},
		{"column twice", "stage,instruction,frequency,time,energy,time\n", `p.csv:1:41: column "time": there is one of this name before it; delete or rename one`},
		{"some rank columns", "rank," + header5, `p.csv:1: there is rank, but not dp_rank, pp_rank and tp_rank; have all four of these columns or none`},
		{"quote in the header", "stage,\"instruction,frequency,time,energy\n", `p.csv:1:7: the quote is not closed on this line; close it, or delete it`},
		{"columns without end", "stage" + strings.Repeat(",", 2000), `p.csv:1: more than 1000 columns; the header must be stage,instruction,frequency,time,energy`},

		// Rows.
		{"short row", header5 + "0,forward,1410,0.05\n", `p.csv:2:20: row "0,forward,1410,0.05": 4 fields where the header has 5; complete or delete the row` + skip},
		{"long row", header5 + "0,forward,1410,0.05,23.8,7\n", `p.csv:2:26: row "0,forward,1410,0.05,23.8,7": 6 fields where the header has 5; write decimals with a point, and quote text that has commas` + skip},
		{"decimal commas, not quoted", header5 + "0,forward,1410,0,05,23,8\n", `p.csv:2:21: row "0,forward,1410,0,05,23,8": 7 fields where the header has 5; write decimals with a point, and quote text that has commas` + skip},
		{"semicolons below a proper header", header5 + "0;forward;1410;0.05;23.8\n", `p.csv:2:2: row "0;forward;1410;0.05;23.8": 1 field where the header has 5; is ';' the separator? separate fields with commas` + skip},
		{"row of commas", header5 + good + ",,,,\n", `p.csv:4:1: row ",,,,": all fields are empty; delete the row` + skip},
		{"quote not closed", header5 + "0,\"forward,1410,0.05,23.8\n", `p.csv:2:3: row "0,\"forward,1410,0.05,23.8": the quote is not closed on this line; close it, or delete it` + skip},
		{"text after a quote", header5 + "0,\"forward\"s,1410,0.05,23.8\n", `p.csv:2:12: row "0,\"forward\"s,1410,0.05,23.8": text after a closing quote; end the field there, or double the quotes inside it` + skip},
		{"quote inside a field", header5 + "0,for\"ward,1410,0.05,23.8\n", `p.csv:2:6: row "0,for\"ward,1410,0.05,23.8": a quote inside an unquoted field; delete it, or quote the field and double the quotes inside it` + skip},

		// Values.
		{"nan", header5 + "0,forward,1410,nan,-NaN\n", `p.csv:2:16: time "nan": nothing was measured here; measure this again, or delete the row
p.csv:2:20: energy "-NaN": nothing was measured here; measure this again, or delete the row` + skip},
		{"inf", header5 + "0,forward,1410,inf,-Infinity\n", `p.csv:2:16: time "inf": infinite; measure this again, or delete the row
p.csv:2:20: energy "-Infinity": infinite; measure this again, or delete the row` + skip},
		{"N/A", header5 + "0,forward,[N/A],0.05,N/A\n", `p.csv:2:11: frequency "[N/A]": nothing was measured here; measure this again, or delete the row
p.csv:2:22: energy "N/A": nothing was measured here; measure this again, or delete the row` + skip},
		{"empty values", header5 + "0,,1410, ,\n", `p.csv:2:3: instruction "": empty; name the op, such as forward or backward
p.csv:2:10: time "": empty; measure this again, or delete the row
p.csv:2:11: energy "": empty; measure this again, or delete the row` + skip},
		{"zero", header5 + "0,forward,0,0.0,0e5\n", `p.csv:2:11: frequency "0": zero; write the clock at which this was measured
p.csv:2:13: time "0.0": zero; measure again, or write a small time if the op does nothing
p.csv:2:17: energy "0e5": zero: GPUs update the counter every 20 to 100 ms; measure many runs of the op together and divide` + skip},
		{"negative", header5 + "-1,forward,-1410,-0.05,-1e-30\n", `p.csv:2:1: stage "-1": outside 0 … 65535
p.csv:2:12: frequency "-1410": negative
p.csv:2:18: time "-0.05": negative; measure again
p.csv:2:24: energy "-1e-30": negative: did the counter step back? measure again` + skip},
		{"decimal comma", header5 + "0,forward,1410,\"0,05\",\"23,8\"\n", `p.csv:2:16: time "0,05": decimal comma; write 0.05
p.csv:2:23: energy "23,8": decimal comma; write 23.8` + skip},
		{"thousands or decimals", header5 + "0,forward,\"1,410\",0.05,23.8\n", `p.csv:2:11: frequency "1,410": a comma in a number; write 1.410, or 1410 if it separates thousands` + skip},
		{"units in the values", header5 + "0,forward,1410MHz,50 ms,23.8J\n", `p.csv:2:11: frequency "1410MHz": text after the number; write 1410, and give its unit with Options.Units
p.csv:2:19: time "50 ms": text after the number; write 50, and give its unit with Options.Units
p.csv:2:25: energy "23.8J": text after the number; write 23.8, and give its unit with Options.Units` + skip},
		{"not numbers", header5 + "zero,forward,0x582,1_000,1.2.3\n", `p.csv:2:1: stage "zero": not a number; write it as in 0, 1, 2, …
p.csv:2:14: frequency "0x582": not a number; write it as in 1410
p.csv:2:20: time "1_000": not a number; write it as in 0.124
p.csv:2:26: energy "1.2.3": not a number; write it as in 0.124` + skip},
		{"not whole", header5 + "0.5,forward,1410.5,0.05,23.8\n", `p.csv:2:1: stage "0.5": not whole; write 0, 1, 2, …
p.csv:2:13: frequency "1410.5": not a whole number of MHz; write the clock that was set` + skip},
		{"absurd stage", header5 + "65536,forward,1410,0.05,23.8\n", `p.csv:2:1: stage "65536": outside 0 … 65535` + skip},
		{"name in capitals", header5 + "0,Forward,1410,0.05,23.8\n", `p.csv:2:3: instruction "Forward": write forward` + skip},
		{"name with blanks", header5 + "0,forward pass,1410,0.05,23.8\n", `p.csv:2:3: instruction "forward pass": a name has small letters, digits, - and _, such as forward or backward` + skip},
		{"long name", header5 + "0," + strings.Repeat("f", 65) + ",1410,0.05,23.8\n", `p.csv:2:3: instruction "ffffffffffffffffffffffffffffffffffffffff…": longer than 64 bytes` + skip},
		{"no finite time or energy", header5 + good + "0,forward,1410,1e400,23.8\n0,forward,1410,0.05,1e-20\n", `p.csv:4:16: time "1e400": absurd in s
p.csv:5:21: energy "1e-20": absurdly small in J` + skip},
		{"much energy", header5 + good + "0,forward,1410,3600,1000001\n", `p.csv:4:21: energy "1000001": more than 1000000J; it would be usual as time=ms,energy=mJ or time=us,energy=uJ` + skip},

		// Units of the whole file.
		{"kHz", header5 + "0,forward,1410000,0.05,23.8\n0,forward,1395000,0.051,23.5\n", `p.csv:2:11: frequency "1410000": not a GPU's clock in MHz, 20 … 10000 MHz; it would be usual as frequency=kHz (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"Hz", header5 + "0,forward,1410000000,0.05,23.8\n0,forward,1395000000,0.051,23.5\n", `p.csv:2:11: frequency "1410000000": not a GPU's clock in MHz, 20 … 10000 MHz; it would be usual as frequency=Hz (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"GHz", header5 + "0,forward,1.41,0.05,23.8\n0,forward,1.395,0.051,23.5\n", `p.csv:2:11: frequency "1.41": not a GPU's clock in MHz, 20 … 10000 MHz; it would be usual as frequency=GHz (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"ms", header5 + "0,forward,1410,50,23.8\n0,forward,1395,51,23.5\n", `p.csv:2:19: energy "23.8": in a time of 50s that is 0.476 W, too little for a GPU; it would be usual as time=ms (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"µs", header5 + "0,forward,1410,50161,23.8\n0,forward,1395,51000,23.5\n", `p.csv:2:16: time "50161": longer than an hour; it would be usual as time=us (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"mJ", header5 + "0,forward,1410,0.05,23800\n0,forward,1395,0.051,23500\n", `p.csv:2:21: energy "23800": in a time of 0.05s that is 476000 W, too much for a GPU; it would be usual as energy=mJ (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"µJ", header5 + "0,forward,1410,0.05,23800000\n0,forward,1395,0.051,23500000\n", `p.csv:2:21: energy "23800000": absurd in J; it would be usual as energy=uJ (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"kJ", header5 + "0,forward,1410,0.05,0.0238\n0,forward,1395,0.051,0.0235\n", `p.csv:2:21: energy "0.0238": in a time of 0.05s that is 0.476 W, too little for a GPU; it would be usual as energy=kJ or time=ms (2 of 2 rows are so: say what the units are with Options.Units)`},
		{"kJ of a strong GPU", header5 + "0,forward,1410,0.05,0.07\n0,forward,1395,0.051,0.069\n", `p.csv:2:21: energy "0.07": stage 0, forward: the typical power of 1.376 W is little for a GPU at work: is the unit kJ? say so with Options.Units energy=kJ, or energy=J if it is right`},
		{"ms and mJ", header5 + "0,forward,1410,50,23800\n0,forward,1395,51,23500\n", `p.csv:2:16: time "50": stage 0, forward: the typical time of 50.5s is long for one microbatch: are units ms and mJ? say so with Options.Units time=ms,energy=mJ, or time=s,energy=J if they are right`},
		{"µs and µJ", header5 + "0,forward,1410,50161,23800000\n", `p.csv:2:22: energy "23800000": absurd in J; it would be usual as time=us,energy=uJ (1 of 1 rows are so: say what the units are with Options.Units)`},
		{"two stages of three in ms and mJ", header5 + "0,forward,1410,50,23800\n1,forward,1410,50,23800\n2,forward,1410,0.05,23.8\n", `p.csv:2:16: time "50": stage 0, forward: the typical time of 50s is long for one microbatch: are units ms and mJ? say so with Options.Units time=ms,energy=mJ, or time=s,energy=J if they are right (2 of 3 ops are so)`},
		{"one stage in ms and mJ", header5 + "0,forward,1410,0.005,2.38\n1,forward,1410,0.005,2.38\n2,forward,1410,5,2380\n", `p.csv:4:16: time "5": stage 2, forward: the typical time of 5s is far from that of other stages, 0.005s: are units ms and mJ? say so with Options.Units time=ms,energy=mJ, or time=s,energy=J if they are right`},

		// Units of single rows.
		{"row in kHz", header5 + good + "0,forward,1380000,0.052,23.2\n", `p.csv:4:11: frequency "1380000": not a GPU's clock in MHz, 20 … 10000 MHz; it would be usual as frequency=kHz` + skip},
		{"row in ms", header5 + good + "0,forward,1380,52,23.2\n", `p.csv:4:19: energy "23.2": in a time of 52s that is 0.446 W, too little for a GPU; it would be usual as time=ms` + skip},
		{"row in mJ", header5 + good + "0,forward,1380,0.052,23200\n", `p.csv:4:22: energy "23200": in a time of 0.052s that is 446153 W, too much for a GPU; it would be usual as energy=mJ` + skip},
		{"row in ms and mJ", header5 + good + "0,forward,1380,52,23200\n", `p.csv:4:16: time "52": stage 0, forward at 1380 MHz: the op's median is 0.051s; is it in another unit? correct or delete the row` + skip},
		{"row a thousandth", header5 + good + "0,forward,1380,0.000052,0.0232\n", `p.csv:4:16: time "0.000052": stage 0, forward at 1380 MHz: the op's median is 0.05s; is it in another unit? correct or delete the row` + skip},
		{"row of little power", header5 + good + "0,forward,1380,0.052,0.06\n", `p.csv:4:22: energy "0.06": stage 0, forward at 1380 MHz: in a time of 0.052s that is 1.153 W, where the op's median is 460 W; is it in another unit? correct or delete the row` + skip},

		// What is missing.
		{"stage missing", header5 + good + "3,forward,1410,0.05,23.8\n5,forward,1410,0.05,23.8\n", `p.csv:4:1: stage "3": rows of stage 1, 2 and 4 are missing; there are those of stage 0, 3 and 5; a profile has all stages, from 0`},
		{"first stage missing", header5 + "1,forward,1410,0.05,23.8\n", `p.csv:2:1: stage "1": rows of stage 0 are missing; there are those of stage 1; a profile has all stages, from 0`},
		{"backward of one stage missing", header5 + good + "0,backward,1410,0.1,47\n1,forward,1410,0.05,23.8\n", `p.csv:5:1: stage "1": this stage has no rows of backward, which others have; measure it on all stages`},
		{"instructions without end", header5 + manyInstructions(65), `p.csv:66: more than 64 different instructions; is the column right?`},
		{"clocks too close in time", header5 + "0,forward,1410,1.000000001,23.8\n0,forward,1395,1.000000002,22\n", `p.csv:2:28: energy "23.8": stage 0, forward: two clocks differ so little in time and so much in energy that one must be wrong; leave one out`},

		// Ranks.
		{"one rank's file", header9 + "3,0,3,0,3,forward,1410,0.05,23.8\n", `p.csv: only the rows of rank 3 are here (dp_rank 0, pp_rank 3, tp_rank 0; stage 3): those of all other ranks are missing; join the files of all ranks, or leave out the rank columns if one GPU runs the whole model`},
		{"one rank in two places", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n0,0,0,1,0,forward,1410,0.05,23.8\n", `p.csv:3:1: rank "0": the rank columns contradict each other: rank 0 has dp_rank 0, pp_rank 0 and tp_rank 1 here, but dp_rank 0, pp_rank 0 and tp_rank 0 in line 2`},
		{"two ranks in one place", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,0,0,forward,1410,0.05,23.8\n", `p.csv:3:1: rank "1": the rank columns contradict each other: dp_rank 0, pp_rank 0 and tp_rank 0 are rank 1 here, but rank 0 in line 2`},
		{"one stage on two pipeline ranks", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,1,0,0,forward,1410,0.05,23.8\n", `p.csv:3:5: pp_rank "1": the rank columns contradict each other: stage 0 is on pp_rank 1 here, but on pp_rank 0 in line 2`},
		{"first member missing", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n3,0,1,1,1,forward,1410,0.05,23.8\n", `p.csv:3:7: tp_rank "1": stage 1 has rows of tp_rank 1 only; those of tp_rank 0 are missing`},
		{"groups of different size", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1410,0.05,23.8\n2,0,1,0,1,forward,1410,0.05,23.8\n", `p.csv:4:7: tp_rank "0": stage 1 has rows of 1 GPU (tp_rank), but stage 0 of 2; every stage needs the same number`},
		{"clock of one member missing", header9 + "0,0,0,0,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1410,0.05,23.8\n1,0,0,1,0,forward,1395,0.05,23.8\n", `p.csv:4:7: tp_rank "1": stage 0, forward at 1395 MHz: tp_rank 0 was not measured at this clock; do so, or delete the clock's other rows` + skip},
		{"rank not a number", header9 + "a,0,0,0,0,forward,1410,0.05,23.8\n", `p.csv:2:1: rank "a": not a number; write it as in 0, 1, 2, …` + skip},
		{"absurd rank", header9 + "16777216,0,0,0,0,forward,1410,0.05,23.8\n", `p.csv:2:1: rank "16777216": outside 0 … 16777215` + skip},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := profile.Read(strings.NewReader(c.input), "p.csv", profile.Options{MaxBytes: 20_000})
			var refused *profile.Error
			if !errors.As(err, &refused) || p != nil {
				t.Fatalf("%v: want an Error", err)
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

func manyInstructions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "0,op%d,1410,0.05,23.8\n", i)
	}
	return b.String()
}

// Ten problems are listed, in the order of the lines, and the others counted.
func TestRefusedAtOnce(t *testing.T) {
	text := header5 + strings.Repeat("0,forward,1410,nan,23.8\n0,forward,1410,0.05,\n", 8)
	_, err := profile.Read(strings.NewReader(text), "p.csv", profile.Options{})
	var refused *profile.Error
	if !errors.As(err, &refused) || len(refused.Problems) != 10 || refused.More != 6 {
		t.Fatalf("got %v", err)
	}
	for i, p := range refused.Problems {
		if p.Line != i+2 {
			t.Errorf("problem %d is in line %d", i, p.Line)
		}
	}
	if want := "p.csv: 6 more problems\n"; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not have %q", err, want)
	}
}

// An error of the reader is no fault of the file.
func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, before := range []string{"", header5, "\x1f\x8b", compressed(t, header5+good)[:20]} {
		_, err := profile.Read(iotest.TimeoutReader(&failing{before, broken}), "p.csv", profile.Options{})
		var refused *profile.Error
		if errors.As(err, &refused) || !errors.Is(err, broken) && !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("after %q: %v", before, err)
		}
	}
}

type failing struct {
	text string
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.text == "" {
		return 0, f.err
	}
	n := copy(p, f.text)
	f.text = f.text[n:]
	return n, nil
}

func TestOptionsOfNothing(t *testing.T) {
	p, err := profile.Read(strings.NewReader(header5+good), "p.csv", profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stage       int
		instruction string
		want        string
	}{
		{0, "backward", `p.csv: no rows of "backward"; there are those of forward; measure it on all stages`},
		{1, "forward", `p.csv: no rows of stage 1; there is stage 0 only`},
		{-1, "forward", `p.csv: no rows of stage -1; there is stage 0 only`},
	} {
		_, err := p.Options(c.stage, c.instruction)
		var refused *profile.Error
		if !errors.As(err, &refused) || err.Error() != c.want {
			t.Errorf("stage %d, %s: got %v, want %s", c.stage, c.instruction, err, c.want)
		}
	}
}
