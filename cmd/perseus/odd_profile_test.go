package main

import (
	"fmt"
	"strings"
	"testing"
)

// oddProfile writes a profile in ms and mJ, with other names of the instructions,
// and with a row in which nothing was measured.
func oddProfile(t testing.TB, stages int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("stage,instruction,frequency,time,energy\n")
	for stage := range stages {
		for i, instruction := range []string{"fwd", "bwd"} {
			for clock := 900; clock <= 1400; clock += 100 {
				ms := (20 + 5*stage%3) * (1 + i) * 1400 / clock
				fmt.Fprintf(&b, "%d,%s,%d,%d,%d\n", stage, instruction, clock, ms, ms*clock*clock/8000)
			}
		}
	}
	b.WriteString("0,fwd,950,nan,3\n")
	return writeFile(t, "odd.csv", b.String())
}

// TestOddProfile has all commands that make frontiers from profiles take those that
// need to be explained, in the same words.
func TestOddProfile(t *testing.T) {
	profile := oddProfile(t, 4)
	explained := []string{"--units", "time=ms,energy=mJ", "--skip-bad-rows", "--derive", "forward=fwd,backward=bwd"}
	for _, command := range [][]string{
		{"frontier", "-p", profile, "--schedule", "1f1b", "-m", "4", "--blocking-power", "60"},
		{"compare", "-p", profile, "--schedule", "1f1b", "-m", "4", "--blocking-power", "60"},
		{"schedules", "savings", "-p", profile, "-m", "4", "--blocking-power", "60"},
	} {
		r := must(t, append(command, explained...)...)
		if !strings.Contains(r.stderr, "skipped: 1 row") {
			t.Errorf("%q does not say what it left out: %q", command, r.stderr)
		}
		for i := range explained {
			if strings.HasPrefix(explained[i], "--") {
				var less []string
				for k, word := range explained {
					if k != i && (k != i+1 || strings.HasPrefix(word, "--")) {
						less = append(less, word)
					}
				}
				if r := perseus(t, "", append(command, less...)...); r.status != statusBadInput || !strings.Contains(r.stderr, explained[i]) {
					t.Errorf("%q without %s: %+v", command, explained[i], r)
				}
			}
		}
	}
}

// TestUnitsInFile has the frontier say the units of its profile, without being told
// again.
func TestUnitsInFile(t *testing.T) {
	profile := oddProfile(t, 2)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "60",
		"--units", "time=ms,energy=mJ", "--skip-bad-rows", "--derive", "forward=fwd,backward=bwd")
	must(t, "verify", file, "-p", profile)
	must(t, "compare", file, "-p", profile)
}

// TestCompareRefuses has no flag be ignored.
func TestCompareRefuses(t *testing.T) {
	profile := smallProfile(t, 2, false)
	file, _ := frontierOf(t, "-p", profile, "--schedule", "1f1b", "-m", "2", "--blocking-power", "84")
	for _, flags := range [][]string{
		{"-m", "8"},
		{"--schedule", "1f1b"},
		{"--ranks", "2"},
		{"--blocking-power", "70"},
		{"--tp", "2"},
		{"--derive", "split-backward"},
		{"--units", "time=ms"},
		{"--skip-bad-rows"},
		{"--straggler", "1.3"},
		{"--margin", "1%"},
	} {
		if r := perseus(t, "", append([]string{"compare", file}, flags...)...); r.status != statusBadInput || !strings.Contains(r.stderr, flags[0]) && !strings.Contains(r.stderr, "leave out") {
			t.Errorf("%q: %+v", flags, r)
		}
	}
	for _, flags := range [][]string{{"-m", "8"}, {"--noise", "1%"}, {"--pipelines", "4"}} {
		if r := perseus(t, "", append([]string{"compare", "-p", profile, "--large-scale"}, flags...)...); r.status != statusBadInput || !strings.Contains(r.stderr, "leave out") {
			t.Errorf("%q: %+v", flags, r)
		}
	}
}

// TestTypos has verify leave out the rows that were left out.
func TestTypos(t *testing.T) {
	text := read(t, smallProfile(t, 3, false))
	for _, typo := range [][2]string{{"0,forward,1210", "0,forward,9210"}, {"0,backward,1210", "0,bakward,1210"}, {"2,backward,1410", "2,backward,141"}} {
		if !strings.Contains(text, typo[0]) {
			t.Fatalf("no row begins with %s", typo[0])
		}
		text = strings.Replace(text, typo[0], typo[1], 1)
	}
	profile := writeFile(t, "typos.csv", text)
	args := []string{"-p", profile, "--schedule", "1f1b", "-m", "3", "--blocking-power", "60"}
	if r := perseus(t, "", append([]string{"frontier"}, args...)...); r.status != statusBadInput || !strings.Contains(r.stderr, "typos.csv:") {
		t.Errorf("%+v", r)
	}
	file, r := frontierOf(t, append(args, "--skip-bad-rows")...)
	if !strings.Contains(r.stderr, "skipped: 3 rows") {
		t.Errorf("%s", r.stderr)
	}
	must(t, "verify", file, "-p", profile)
}

// TestRenames has the message about other names say the rules for them.
func TestRenames(t *testing.T) {
	profile := oddProfile(t, 4)
	for _, command := range [][]string{
		{"frontier", "--schedule", "1f1b", "-p"}, {"compare", "-p"}, {"schedules", "savings", "-p"},
	} {
		r := perseus(t, "", append(command, profile, "-m", "4", "--blocking-power", "60", "--units", "time=ms,energy=mJ", "--skip-bad-rows")...)
		if r.status != statusBadInput || !strings.Contains(r.stderr, "--derive forward=fwd,backward=bwd") {
			t.Errorf("%q: %+v", command, r)
		}
	}
}
