package store

import (
	"database/sql"
	"fmt"
	"slices"
)

// A Rank is a process of a job in one generation; the store does not read its document.
type Rank struct {
	Rank    int
	Session string
	Doc     []byte
}

// PutRanks adds or replaces ranks of a generation; ErrNotFound if there is no such job. O(ranks) statements.
func (t *Tx) PutRanks(job string, generation int, ranks []Rank) error {
	for _, r := range ranks {
		n, err := t.exec(fmt.Sprintf("writing rank %d of job %q", r.Rank, job),
			`INSERT INTO ranks (job, generation, rank, session, doc) SELECT id, $2, $3, $4, $5 FROM jobs WHERE id = $1
			ON CONFLICT (job, generation, rank) DO UPDATE SET session = excluded.session, doc = excluded.doc`,
			job, generation, r.Rank, r.Session, data(r.Doc))
		if err := jobFound(job, n, err); err != nil {
			return err
		}
	}
	return nil
}

// Ranks returns those of the given ranks that a generation has (nil = all of it), by rank.
func (t *Tx) Ranks(job string, generation int, ranks []int) ([]Rank, error) {
	query := `SELECT rank, session, doc FROM ranks WHERE job = $1 AND generation = $2 AND rank >= $3 AND rank <= $4 ORDER BY rank`
	found := []Rank{}
	read := func(from, to int) error {
		return t.rows(fmt.Sprintf("reading ranks of job %q", job), func(rows *sql.Rows) error {
			var r Rank
			err := rows.Scan(&r.Rank, &r.Session, &r.Doc)
			found = append(found, r)
			return err
		}, query, job, generation, from, to)
	}
	if ranks == nil {
		return found, read(-1<<31, 1<<31-1)
	}
	// One query for each run of neighbours: a node asks for its own ranks, which are mostly one run.
	sorted := slices.Compact(slices.Sorted(slices.Values(ranks)))
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if err := read(sorted[i], sorted[j]); err != nil {
			return nil, err
		}
		i = j + 1
	}
	return found, nil
}

// CountRanks returns how many ranks a generation has.
func (t *Tx) CountRanks(job string, generation int) (n int, err error) {
	err = t.one(fmt.Sprintf("counting ranks of job %q", job), []any{&n}, `SELECT count(*) FROM ranks WHERE job = $1 AND generation = $2`, job, generation)
	return n, err
}

// DeleteRanks deletes the ranks of all generations before the given one.
func (t *Tx) DeleteRanks(job string, beforeGeneration int) error {
	_, err := t.exec(fmt.Sprintf("deleting ranks of job %q", job), `DELETE FROM ranks WHERE job = $1 AND generation < $2`, job, beforeGeneration)
	return err
}
