package profile

import (
	"fmt"
	"maps"
	"slices"
)

// rank is one GPU of the job, and where the file says so.
type rank struct{ rank, dp, pp, tp, line int32 }

type coordinates struct{ dp, pp, tp int32 }

// ranks checks that the rank columns agree with each other and with the stages.
type ranks struct {
	last    rank // the last one seen, and its stage: rows of one GPU follow each other
	stage   int32
	byRank  map[int32]rank
	byPlace map[coordinates]rank
	byStage map[int32]rank
}

// add takes one row's columns; a contradiction to an earlier row is a conflict.
func (k *ranks) add(r rank, stage int32, conflicts *problems) {
	if k.byRank == nil {
		k.byRank, k.byPlace, k.byStage = map[int32]rank{}, map[coordinates]rank{}, map[int32]rank{}
	} else if l := k.last; l.rank == r.rank && l.dp == r.dp && l.pp == r.pp && l.tp == r.tp && k.stage == stage {
		return
	}
	conflict := func(f field, format string, args ...any) {
		conflicts.add(Problem{Line: int(r.line), Field: f.String(), Message: "the rank columns contradict each other: " + fmt.Sprintf(format, args...)})
	}
	place := coordinates{r.dp, r.pp, r.tp}
	if o, ok := k.byRank[r.rank]; !ok {
		k.byRank[r.rank] = r
	} else if (coordinates{o.dp, o.pp, o.tp}) != place {
		conflict(fieldRank, "rank %d has dp_rank %d, pp_rank %d and tp_rank %d here, but %d, %d and %d in line %d",
			r.rank, r.dp, r.pp, r.tp, o.dp, o.pp, o.tp, o.line)
		return
	}
	if o, ok := k.byPlace[place]; !ok {
		k.byPlace[place] = r
	} else if o.rank != r.rank {
		conflict(fieldRank, "dp_rank %d, pp_rank %d and tp_rank %d are rank %d here, but rank %d in line %d", r.dp, r.pp, r.tp, r.rank, o.rank, o.line)
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
