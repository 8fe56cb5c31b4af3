package jobtext

import "testing"

func TestRankList(t *testing.T) {
	for _, test := range []struct {
		ranks []int
		total int
		want  string
	}{
		{nil, 0, ""},
		{[]int{3}, 1, "3"},
		{[]int{4, 3}, 2, "3, 4"},
		{[]int{1, 2, 3, 5, 7, 8, 8}, 7, "1–3, 5, 7, 8"},
		{[]int{0, 1, 2}, 10, "0–2 and 7 more"},
	} {
		if got := rankList(test.ranks, test.total); got != test.want {
			t.Errorf("%v: %s, want %s", test.ranks, got, test.want)
		}
	}
}
