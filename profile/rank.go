package profile

import (
	"fmt"
	"maps"
	"slices"
)

// rank is one GPU of the job, and where the file says so.
type rank struct{ rank, dp, pp, tp, cp, ep, line int32 }

type coordinates struct{ dp, pp, tp, cp, ep int32 }

func (r rank) place() coordinates { return coordinates{r.dp, r.pp, r.tp, r.cp, r.ep} }

// String returns the coordinates as in "dp_rank 0, pp_rank 1 and tp_rank 0".
func (c coordinates) String() string {
	if c.cp == 0 && c.ep == 0 {
		return fmt.Sprintf("dp_rank %d, pp_rank %d and tp_rank %d", c.dp, c.pp, c.tp)
	}
	return fmt.Sprintf("dp_rank %d, pp_rank %d, tp_rank %d, cp_rank %d and ep_rank %d", c.dp, c.pp, c.tp, c.cp, c.ep)
}

// ranks checks that the rank columns agree with each other and with the stages.
type ranks struct {
	last    rank // the last one seen, and its stage: rows of one GPU follow each other
	stage   int32
	byRank  map[int32]rank
	byPlace map[coordinates]rank
	byStage map[int32]rank
	// The different pairs of cp_rank and ep_rank, numbered as they come.
	pairs  [][2]int32
	number map[[2]int32]int32
}

// others returns the number of a pair of cp_rank and ep_rank.
func (k *ranks) others(cp, ep int32) int32 {
	pair := [2]int32{cp, ep}
	n, ok := k.number[pair]
	if !ok {
		if k.number == nil {
			k.number = map[[2]int32]int32{}
		}
		n = int32(len(k.pairs))
		k.number[pair] = n
		k.pairs = append(k.pairs, pair)
	}
	return n
}

// numberMembers gives each GPU of a group one number, in place of its tp_rank:
// tp_rank varies fastest, then cp_rank, then ep_rank. It fails where there would be
// too many.
func (k *ranks) numberMembers(rows []row) error {
	var tp, cp, ep int64
	for _, r := range rows {
		tp = max(tp, int64(r.member)+1)
	}
	for _, p := range k.pairs {
		cp, ep = max(cp, int64(p[0])+1), max(ep, int64(p[1])+1)
	}
	if cp*ep > maxRank || tp*cp*ep > maxRank {
		return fmt.Errorf("%d tp_ranks × %d cp_ranks × %d ep_ranks; a group has at most %d GPUs", tp, cp, ep, maxRank)
	}
	for i := range rows {
		p := k.pairs[rows[i].others]
		rows[i].member += int32(tp) * (p[0] + int32(cp)*p[1])
		rows[i].others = 0
	}
	return nil
}

// add takes one row's columns; a contradiction to an earlier row is a conflict.
func (k *ranks) add(r rank, stage int32, conflicts *problems) {
	if k.byRank == nil {
		k.byRank, k.byPlace, k.byStage = map[int32]rank{}, map[coordinates]rank{}, map[int32]rank{}
	} else if l := k.last; l.rank == r.rank && l.dp == r.dp && l.place() == r.place() && k.stage == stage {
		return
	}
	conflict := func(f field, format string, args ...any) {
		conflicts.add(Problem{Line: int(r.line), Field: f.String(), Message: "the rank columns contradict each other: " + fmt.Sprintf(format, args...)})
	}
	place := r.place()
	if o, ok := k.byRank[r.rank]; !ok {
		k.byRank[r.rank] = r
	} else if o.place() != place {
		conflict(fieldRank, "rank %d has %v here, but %v in line %d", r.rank, place, o.place(), o.line)
		return
	}
	if o, ok := k.byPlace[place]; !ok {
		k.byPlace[place] = r
	} else if o.rank != r.rank {
		conflict(fieldRank, "%v are rank %d here, but rank %d in line %d", place, r.rank, o.rank, o.line)
		return
	}
	if o, ok := k.byStage[stage]; !ok {
		k.byStage[stage] = r
	} else if o.pp != r.pp {
		conflict(fieldPP, "stage %d is on pp_rank %d here, but on pp_rank %d in line %d", stage, r.pp, o.pp, o.line)
		return
	}
	k.last, k.stage = r, stage
}

// only returns a message where the file has the rows of one rank alone.
func (k *ranks) only(stages []span) string {
	if len(k.byRank) != 1 {
		return ""
	}
	r := slices.Collect(maps.Values(k.byRank))[0]
	return fmt.Sprintf("only the rows of rank %d are here (dp_rank %d, pp_rank %d, tp_rank %d; stage %s): those of all other ranks are missing; "+
		"join the files of all ranks, or leave out the rank columns if one GPU runs the whole model",
		r.rank, r.dp, r.pp, r.tp, ranges(stages))
}
