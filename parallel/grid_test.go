package parallel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func grid(t testing.TB, d Degrees, order string, world int) *Grid {
	t.Helper()
	g, err := New(d, order, world)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestMegatron holds places worked out by hand from Megatron-LM's RankGenerator.
func TestMegatron(t *testing.T) {
	d := Degrees{TP: 2, DP: 2, PP: 4}
	for _, tt := range []struct {
		order string
		rank  int
		want  Dense
	}{
		{"", 0, Dense{TP: 0, DP: 0, PP: 0}},
		{"", 1, Dense{TP: 1, DP: 0, PP: 0}},
		{"", 2, Dense{TP: 0, DP: 1, PP: 0}},
		{"", 5, Dense{TP: 1, DP: 0, PP: 1}},
		{"", 11, Dense{TP: 1, DP: 1, PP: 2}},
		{"", 15, Dense{TP: 1, DP: 1, PP: 3}},
		{"tp-cp-ep-pp-dp", 5, Dense{TP: 1, DP: 0, PP: 2}},
		{"TP-PP-DP", 11, Dense{TP: 1, DP: 1, PP: 1}},
	} {
		if got := grid(t, d, tt.order, 16).Dense(tt.rank); got != tt.want {
			t.Errorf("order %q: rank %d is %+v, want %+v", tt.order, tt.rank, got, tt.want)
		}
	}
	g := grid(t, Degrees{TP: 2, CP: 2, DP: 2, PP: 2, EP: 4, ETP: 1}, "", 0)
	if got, want := g.Dense(13), (Dense{TP: 1, CP: 0, DP: 1, PP: 1}); got != want {
		t.Errorf("rank 13 is %+v, want %+v", got, want)
	}
	if got, want := g.Expert(13), (Expert{TP: 0, EP: 1, DP: 1, PP: 1}); got != want {
		t.Errorf("rank 13 as expert is %+v, want %+v", got, want)
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		d     Degrees
		order string
		pp    int
		want  string // the groups of that pipeline rank
	}{
		{Degrees{}, "", 0, "[0]"},
		{Degrees{TP: 2, DP: 2, PP: 4}, "", 1, "[4 5] [6 7]"},
		{Degrees{TP: 2, DP: 2, PP: 4}, "tp-cp-ep-pp-dp", 1, "[2 3] [10 11]"},
		{Degrees{TP: 2, CP: 2, DP: 2, PP: 2}, "", 1, "[8 9 10 11] [12 13 14 15]"},
		// Experts over the data-parallel ranks: what was two replicas is one.
		{Degrees{DP: 4, PP: 2, EP: 2}, "", 1, "[4 5] [6 7]"},
		{Degrees{TP: 2, DP: 4, EP: 4, ETP: 1}, "", 0, "[0 1 2 3] [4 5 6 7]"},
		{Degrees{TP: 2, DP: 4, EP: 4}, "", 0, "[0 1 2 3 4 5 6 7]"},
		// The tensor-parallel ranks lie apart.
		{Degrees{TP: 2, DP: 3}, "dp-tp", 0, "[0 3] [1 4] [2 5]"},
	} {
		g := grid(t, tt.d, tt.order, 0)
		var got []string
		for k := range g.Replicas() {
			got = append(got, fmt.Sprint(g.Group(tt.pp, k)))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%v: %s, want %s", g, s, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		d     Degrees
		order string
		world int
		want  string
	}{
		{Degrees{TP: 2, DP: 3, PP: 4}, "", 16, "world size 16 is not tp·cp·dp·pp = 2·1·3·4 = 24"},
		{Degrees{TP: 2, PP: 4}, "", 12, "world size 12 is no multiple of tp·cp·pp = 2·1·4 = 8"},
		{Degrees{TP: -1}, "", 0, "tp is -1"},
		{Degrees{DP: -1}, "", 0, "dp is -1"},
		{Degrees{}, "", -8, "the world size is -8"},
		{Degrees{TP: 2, DP: 2, EP: 3}, "", 0, "world size 4 is no multiple of etp·ep·pp = 2·3·1 = 6"},
		{Degrees{TP: 1 << 19, CP: 1 << 19, DP: 1 << 19, PP: 1 << 19}, "", 0, "more than 1048576 GPUs"},
		{Degrees{TP: 2}, "cp-dp-pp", 0, "tp is missing, and its size is 2"},
		{Degrees{EP: 2, DP: 2}, "tp-cp-dp-pp", 0, "ep is missing, and its size is 2"},
		{Degrees{}, "tp-tp", 0, "tp is there twice"},
		{Degrees{}, "tp-xp", 0, `"xp" is unknown`},
		{Degrees{}, "tp--pp", 0, `"" is unknown`},
		{Degrees{DP: 4, PP: 2, EP: 2}, "tp-cp-ep-pp-dp", 0, "does not end in pp: then dp must be the same for experts, but it is 4, and world / (etp·ep·pp) = 8 / (1·2·2) = 2"},
	} {
		if _, err := New(tt.d, tt.order, tt.world); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v %q %d: %v, want %s", tt.d, tt.order, tt.world, err, tt.want)
		}
	}
	if g := grid(t, Degrees{TP: 2, PP: 4}, "", 24); g.DP != 3 {
		t.Errorf("dp is %d", g.DP)
	}
}

// TestPlaces checks on random grids that each global rank is in one place, that
// places are those of the coordinates, and that groups hold who works together.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.IntRange(1, 3)
		d := Degrees{TP: small.Draw(t, "tp"), CP: small.Draw(t, "cp"), DP: small.Draw(t, "dp"), PP: small.Draw(t, "pp"), EP: small.Draw(t, "ep"), ETP: rapid.IntRange(0, 3).Draw(t, "etp")}
		tokens := rapid.Permutation([]string{"tp", "cp", "ep", "dp", "pp"}).Draw(t, "order")
		g, err := New(d, strings.Join(tokens, "-"), 0)
		if err != nil {
			t.Skip(err.Error())
		}
		var all []int
		for pp := range g.PP {
			for k := range g.Replicas() {
				group := g.Group(pp, k)
				if len(group) != g.GPUsPerRank() {
					t.Fatalf("%v: replica %d has %v", g, k, group)
				}
				for i, r := range group {
					if p, replica, member := g.Place(r); p != pp || replica != k || member != i || g.Dense(r).PP != pp || g.Expert(r).PP != pp {
						t.Fatalf("%v: rank %d is at %d, %d, %d; want %d, %d, %d", g, r, p, replica, member, pp, k, i)
					}
				}
				all = append(all, group...)
			}
		}
		slices.Sort(all)
		for i, r := range all {
			if i != r || len(all) != g.World {
				t.Fatalf("%v: ranks %v", g, all)
			}
		}
		for a := range g.World {
			for b := range a {
				x, y := g.Dense(a), g.Dense(b)
				e, f := g.Expert(a), g.Expert(b)
				together := x.PP == y.PP && (x.DP == y.DP || d.EP > 1 && e.DP == f.DP)
				_, k, _ := g.Place(a)
				_, l, _ := g.Place(b)
				if together && k != l {
					t.Fatalf("%v: ranks %d and %d work together", g, a, b)
				}
			}
		}
	})
}
