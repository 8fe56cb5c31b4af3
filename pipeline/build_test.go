package pipeline

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"gpipe", "gpipe"},
		{"GPipe", "gpipe"},
		{"ScheduleGPipe", "gpipe"},
		{"1F1B", "1f1b"},
		{"Schedule1F1B", "1f1b"},
		{"PipeDream-Flush", "1f1b"},
		{"Interleaved1F1B", "interleaved-1f1b"},
		{"ScheduleInterleaved1F1B", "interleaved-1f1b"},
		{"interleaved", "interleaved-1f1b"},
		{"LoopedBFS", "looped-bfs"},
		{"InterleavedZeroBubble", "interleaved-zero-bubble"},
		{"ZBVZeroBubble", "zbv"},
		{"zb-v", "zbv"},
		{"zb_h1", "zb-h1"},
		{"zb1p", "zb-h1"},
		{"DualPipe", "dualpipe"},
		{"DualPipeV", "dualpipev"},
		{"dualpipe-v", "dualpipev"},
		{"EarlyRecomputation1F1B", "1f1b-early-recompute"},
		{"inference", "gpipe-forward"},
		{"forward only", "gpipe-forward"},
	} {
		s, err := Find(test.name)
		if err != nil || s.Name != test.want {
			t.Errorf("%s: got %v, %v", test.name, s, err)
		}
	}
	seen := map[string]string{}
	for _, s := range Schedules() {
		for _, n := range append([]string{s.Name}, s.Aliases...) {
			if old, twice := seen[plain(n)]; twice {
				t.Errorf("%s names %s and %s", n, old, s.Name)
			}
			seen[plain(n)] = s.Name
		}
	}
}

func TestBuildErrors(t *testing.T) {
	for _, test := range []struct {
		schedule string
		size     Size
		want     string
	}{
		{"1f2b", Size{Ranks: 1, Microbatches: 1}, `unknown schedule "1f2b": did you mean "1f1b"? there are gpipe, 1f1b, `},
		{"dulapipev", Size{Ranks: 1, Microbatches: 1}, `did you mean "dualpipev"?`},
		{"interleavd-1f1b", Size{Ranks: 1, Microbatches: 1}, `did you mean "interleaved-1f1b"?`},
		{"", Size{Ranks: 1, Microbatches: 1}, `unknown schedule "": there are gpipe`},
		{"something else altogether", Size{Ranks: 1, Microbatches: 1}, `unknown schedule "something else altogether": there are gpipe`},
		{strings.Repeat("x", 10000), Size{Ranks: 1, Microbatches: 1}, `xxx…": there are gpipe`},
		{"1f1b", Size{Ranks: 4}, "1f1b: microbatches = 0: at least 1 is needed"},
		{"1f1b", Size{Ranks: 4, Microbatches: -3}, "1f1b: microbatches = -3: at least 1 is needed"},
		{"1f1b", Size{Microbatches: 3}, "1f1b: ranks = 0: at least 1 is needed"},
		{"zbv", Size{Ranks: 4, Microbatches: 3, Chunks: -1}, "zbv: chunks = -1"},
		{"1f1b", Size{Ranks: 4, Microbatches: 3, Group: -1}, "1f1b: group = -1"},
		{"1f1b", Size{Ranks: 4, Microbatches: 1e9}, "1f1b: microbatches = 1000000000: an order has at most 16777216 actions"},
		{"gpipe", Size{Ranks: 1 << 12, Microbatches: 1 << 13}, "gpipe: 4096 ranks × 1 chunks × 8192 microbatches make up to 100663296 actions, more than 16777216"},
		{"looped-bfs", Size{Ranks: 1 << 24, Chunks: 1 << 24, Microbatches: 1 << 24}, "actions, more than 16777216"},
		{"1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 8}, "1f1b: 2 chunks: it has 1; interleaved-1f1b, "},
		{"1f1b", Size{Ranks: 4, Microbatches: 8, Group: 4}, "1f1b: group = 4: only interleaved-1f1b"},
		{"zbv", Size{Ranks: 4, Chunks: 3, Microbatches: 8}, "zbv: 3 chunks: it has 2"},
		{"dualpipe", Size{Ranks: 3, Microbatches: 8}, "dualpipe: 3 ranks: their number must be even; dualpipev takes any"},
		{"dualpipe", Size{Ranks: 4, Microbatches: 9}, "dualpipe: 9 microbatches on 4 ranks: their number must be even and at least 8"},
		{"dualpipe", Size{Ranks: 4, Microbatches: 6}, "dualpipe: 6 microbatches on 4 ranks: their number must be even and at least 8"},
		{"dualpipev", Size{Ranks: 4, Microbatches: 7}, "dualpipev: 7 microbatches on 4 ranks: at least 8 are needed"},
		{"interleaved-1f1b", Size{Ranks: 2, Chunks: 2, Microbatches: 5}, "5 microbatches do not divide into 2 equal rounds over 2 ranks: set a group (3 is possible), or use a multiple of 2"},
		{"interleaved-1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 10, Group: 4}, "group = 4: a group has from ranks (4) to microbatches (10) microbatches, and the last one, if smaller, at least ranks; 5 is possible"},
		{"interleaved-1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 8, Group: 9}, "group = 9: "},
		{"interleaved-1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 3, Group: 2}, "group = 2: "},
		{"interleaved-zero-bubble", Size{Ranks: 4, Chunks: 2, Microbatches: 9}, "9 microbatches on 4 ranks make 2 rounds, which do not come out even; 8 or 10 microbatches do"},
		{"interleaved-zero-bubble", Size{Ranks: 4, Chunks: 2, Microbatches: 8, Group: 8}, "group = 8: 8 microbatches on 4 ranks have groups of 4"},
	} {
		_, err := Build(test.schedule, test.size)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.20s %+v: got %v\nwant …%s…", test.schedule, test.size, err, test.want)
		}
	}
}

// TestSuggestionsAreRight takes the sizes that errors propose.
func TestSuggestionsAreRight(t *testing.T) {
	for _, test := range []struct {
		schedule string
		size     Size
	}{
		{"interleaved-1f1b", Size{Ranks: 2, Chunks: 2, Microbatches: 5, Group: 3}},
		{"interleaved-1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 10, Group: 5}},
		{"interleaved-1f1b", Size{Ranks: 4, Chunks: 2, Microbatches: 10, Group: 6}},
		{"interleaved-zero-bubble", Size{Ranks: 4, Chunks: 2, Microbatches: 10}},
	} {
		if err := build(t, test.schedule, test.size).Check(); err != nil {
			t.Errorf("%s %+v: %v", test.schedule, test.size, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, test := range []struct {
		schedule string
		size     Size
		want     Size
	}{
		{"1f1b", Size{Ranks: 4, Microbatches: 8}, Size{4, 1, 8, 0}},
		{"interleaved-1f1b", Size{Ranks: 4, Microbatches: 8}, Size{4, 2, 8, 4}},
		{"interleaved-1f1b", Size{Ranks: 4, Microbatches: 10}, Size{4, 2, 10, 5}},
		{"interleaved-1f1b", Size{Ranks: 4, Microbatches: 3}, Size{4, 2, 3, 3}},
		{"zbv", Size{Ranks: 4, Microbatches: 8}, Size{4, 2, 8, 0}},
		{"dualpipe", Size{Ranks: 4, Microbatches: 8}, Size{4, 2, 8, 0}},
	} {
		if got := build(t, test.schedule, test.size).Size; got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.schedule, got, test.want)
		}
	}
}

// TestZeroBubbleH1IsInterleavedWithOneChunk holds for more microbatches than ranks;
// at fewer the two projects' orders differ.
func TestZeroBubbleH1IsInterleavedWithOneChunk(t *testing.T) {
	for p := 1; p <= 9; p++ {
		for m := p + 1; m <= 3*p; m++ {
			z := Size{Ranks: p, Chunks: 1, Microbatches: m}
			other, err := Build("interleaved-zero-bubble", z)
			if err != nil {
				continue // M is no multiple of its rounds
			}
			if a, b := build(t, "zb-h1", z).ToActions(), other.ToActions(); !equal(a, b) {
				t.Errorf("%+v:\n%v\n%v", z, a, b)
			}
		}
	}
}

func equal(a, b [][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for r := range a {
		if strings.Join(a[r], " ") != strings.Join(b[r], " ") {
			return false
		}
	}
	return true
}
