package parallel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DefaultOrder is Megatron-LM's order of ranks.
const DefaultOrder = "tp-cp-ep-dp-pp"

// MaxWorld bounds the world size.
const MaxWorld = 1 << 20

// Degrees are the sizes of the parallel dimensions. 0 stands for 1, but for DP and
// ETP.
type Degrees struct {
	TP, CP, EP, PP int
	// DP is the degree of data parallelism; 0 stands for what the world size makes
	// it, or 1 without one.
	DP int
	// ETP is the tensor parallelism of experts; 0 stands for TP.
	ETP int
}

// Grid is where each global rank is. It is immutable.
type Grid struct {
	// Degrees has all defaults filled in, World is the number of GPUs and Order the
	// complete order of ranks.
	Degrees
	World int
	Order string

	experts bool
	dense   []axis
	expert  []axis
	stride  int // from a pipeline rank to the next
	// Of the ranks of the first pipeline rank, ascending: their replica and their
	// number in its group.
	base   map[int]place
	groups [][]int // of each replica on the first pipeline rank
}

type axis struct {
	token string
	size  int
}

type place struct{ replica, member int }

// Dense is a rank's place in the dense grid, Expert in that of the experts.
type (
	Dense  struct{ TP, CP, DP, PP int }
	Expert struct{ TP, EP, DP, PP int }
)

// New returns the grid of a job. order may be empty, for DefaultOrder; world may be
// 0, for what the degrees make it. It fails where the world size is not the product
// of the degrees, naming the numbers, where a degree is out of range, where the
// order is not understood or lacks a degree above 1, and where the experts' grid
// has other pipelines than the dense one. O(world·log world).
func New(d Degrees, order string, world int) (*Grid, error) {
	for _, v := range []*int{&d.TP, &d.CP, &d.EP, &d.PP} {
		if *v == 0 {
			*v = 1
		}
	}
	if d.ETP == 0 {
		d.ETP = d.TP
	}
	for _, v := range []struct {
		name string
		size int
	}{{"tp", d.TP}, {"cp", d.CP}, {"ep", d.EP}, {"etp", d.ETP}, {"pp", d.PP}, {"dp", cmp.Or(d.DP, 1)}, {"the world size", cmp.Or(world, 1)}} {
		if v.size < 1 || v.size > MaxWorld {
			return nil, fmt.Errorf("%s is %d; expected 1 to %d", v.name, v.size, MaxWorld)
		}
	}
	size := int64(d.TP) * int64(d.CP)
	if size <= MaxWorld {
		size *= int64(d.PP)
	}
	if d.DP == 0 {
		if world > 0 && int64(world)%size != 0 {
			return nil, fmt.Errorf("world size %d is no multiple of tp·cp·pp = %d·%d·%d = %d", world, d.TP, d.CP, d.PP, size)
		}
		d.DP = max(1, int(int64(world)/size))
	}
	if size <= MaxWorld {
		size *= int64(d.DP)
	}
	switch {
	case size > MaxWorld:
		return nil, fmt.Errorf("tp·cp·dp·pp = %d·%d·%d·%d is more than %d GPUs", d.TP, d.CP, d.DP, d.PP, MaxWorld)
	case world != 0 && int64(world) != size:
		return nil, fmt.Errorf("world size %d is not tp·cp·dp·pp = %d·%d·%d·%d = %d", world, d.TP, d.CP, d.DP, d.PP, size)
	}
	g := &Grid{Degrees: d, World: int(size), experts: d.EP > 1 || d.ETP != d.TP}
	share := int64(d.ETP) * int64(d.EP) * int64(d.PP)
	if size%share != 0 {
		return nil, fmt.Errorf("world size %d is no multiple of etp·ep·pp = %d·%d·%d = %d: experts do not divide among its GPUs", size, d.ETP, d.EP, d.PP, share)
	}
	if err := g.axes(order, int(size/share)); err != nil {
		return nil, err
	}
	g.join()
	return g, nil
}

// axes fills in both grids from the order.
func (g *Grid) axes(order string, expertDP int) error {
	if order == "" {
		order = DefaultOrder
	}
	dense := map[string]int{"tp": g.TP, "cp": g.CP, "ep": 1, "dp": g.DP, "pp": g.PP}
	expert := map[string]int{"tp": g.ETP, "cp": 1, "ep": g.EP, "dp": expertDP, "pp": g.PP}
	names := []string{"tp", "cp", "ep", "dp", "pp"}
	tokens := strings.Split(strings.ToLower(order), "-")
	for i, token := range tokens {
		switch {
		case !slices.Contains(names, token):
			return fmt.Errorf("rank order %q: %q is unknown; it is made of tp, cp, ep, dp and pp, as in %s", order, token, DefaultOrder)
		case slices.Contains(tokens[:i], token):
			return fmt.Errorf("rank order %q: %s is there twice", order, token)
		}
	}
	for _, name := range names {
		if slices.Contains(tokens, name) {
			continue
		}
		if n := max(dense[name], expert[name]); n > 1 {
			return fmt.Errorf("rank order %q: %s is missing, and its size is %d", order, name, n)
		}
		tokens = append(tokens, name)
	}
	g.Order = strings.Join(tokens, "-")
	strides := [2]int{1, 1}
	before := true
	for _, token := range tokens {
		g.dense = append(g.dense, axis{token, dense[token]})
		g.expert = append(g.expert, axis{token, expert[token]})
		if before = before && token != "pp"; before {
			strides[0] *= dense[token]
			strides[1] *= expert[token]
		}
	}
	if g.stride = strides[0]; g.PP > 1 && strides[0] != strides[1] {
		return fmt.Errorf("rank order %q does not end in pp: then dp must be the same for experts, but it is %d, and world / (etp·ep·pp) = %d / (%d·%d·%d) = %d",
			order, g.DP, g.World, g.ETP, g.EP, g.PP, expertDP)
	}
	return nil
}

// coordinates returns the coordinate of each token.
func coordinates(axes []axis, rank int) map[string]int {
	c := make(map[string]int, len(axes))
	for _, a := range axes {
		c[a.token] = rank % a.size
		rank /= a.size
	}
	return c
}

// Dense returns where a global rank, from 0 to World−1, is in the dense grid.
func (g *Grid) Dense(rank int) Dense {
	c := coordinates(g.dense, rank)
	return Dense{c["tp"], c["cp"], c["dp"], c["pp"]}
}

// Expert returns where it is in the grid of the experts.
func (g *Grid) Expert(rank int) Expert {
	c := coordinates(g.expert, rank)
	return Expert{c["tp"], c["ep"], c["dp"], c["pp"]}
}

// join finds the groups of the first pipeline rank; those of the others lie a
// multiple of stride further on.
func (g *Grid) join() {
	root := map[int]int{}
	var find func(int) int
	find = func(r int) int {
		if root[r] != r {
			root[r] = find(root[r])
		}
		return root[r]
	}
	type dp struct {
		expert bool
		number int
	}
	first := map[dp]int{}
	var ranks []int
	for r := range g.World {
		if g.pipelineRank(r) != 0 {
			continue
		}
		ranks = append(ranks, r)
		root[r] = r
		keys := []dp{{false, g.Dense(r).DP}}
		if g.experts {
			keys = append(keys, dp{true, g.Expert(r).DP})
		}
		for _, k := range keys {
			if other, ok := first[k]; ok {
				a, b := find(other), find(r)
				root[max(a, b)] = min(a, b)
			} else {
				first[k] = r
			}
		}
	}
	g.base = make(map[int]place, len(ranks))
	replica := map[int]int{}
	for _, r := range ranks {
		top := find(r)
		k, ok := replica[top]
		if !ok {
			k = len(g.groups)
			replica[top] = k
			g.groups = append(g.groups, nil)
		}
		g.base[r] = place{k, len(g.groups[k])}
		g.groups[k] = append(g.groups[k], r)
	}
}

func (g *Grid) pipelineRank(rank int) int { return rank / g.stride % g.PP }

// GPUsPerRank returns how many GPUs run each op of a pipeline rank together.
func (g *Grid) GPUsPerRank() int { return len(g.groups[0]) }

// Replicas returns how many pipelines there are.
func (g *Grid) Replicas() int { return len(g.groups) }

// Place returns the pipeline rank of a global rank, its replica, and its number
// among the GPUs of its group, all from 0. Replicas are numbered by their lowest
// global rank. O(1).
func (g *Grid) Place(rank int) (pipelineRank, replica, member int) {
	pp := g.pipelineRank(rank)
	p := g.base[rank-pp*g.stride]
	return pp, p.replica, p.member
}

// Group returns the global ranks, ascending, that run the ops of a pipeline rank
// in a replica.
func (g *Grid) Group(pipelineRank, replica int) []int {
	ranks := slices.Clone(g.groups[replica])
	for i := range ranks {
		ranks[i] += pipelineRank * g.stride
	}
	return ranks
}

// String returns what the grid is, in a sentence.
func (g *Grid) String() string {
	return fmt.Sprintf("tp %d, cp %d, ep %d, dp %d, pp %d: %d GPUs in order %s; %d work together, in %d pipelines",
		g.TP, g.CP, g.EP, g.DP, g.PP, g.World, g.Order, g.GPUsPerRank(), g.Replicas())
}
