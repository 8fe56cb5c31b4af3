package store

import (
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// A Rank is a process of a job in one generation; the store does not read its document.
type Rank struct {
	Rank    int
	Session string
	Doc     []byte
}

// A Report is what a rank told of, until it is taken.
type Report struct {
	ID         int64
	Generation int
	Body       []byte
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

// AddReport keeps a report until it is taken; ErrNotFound if there is no such job. It does not wait for those who have the job locked.
func (t *Tx) AddReport(job string, generation int, body []byte) error {
	n, err := t.exec(fmt.Sprintf("adding a report to job %q", job),
		`INSERT INTO reports (job, generation, body) SELECT id, $2, $3 FROM jobs WHERE id = $1`, job, generation, data(body))
	return jobFound(job, n, err)
}

// TakeReports returns at most limit reports of a job, oldest first, and deletes them. Lock the job first.
func (t *Tx) TakeReports(job string, limit int) ([]Report, error) {
	reports := []Report{}
	err := t.rows(fmt.Sprintf("taking reports of job %q", job), func(rows *sql.Rows) error {
		var r Report
		err := rows.Scan(&r.ID, &r.Generation, &r.Body)
		reports = append(reports, r)
		return err
	}, `DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE job = $1 ORDER BY id LIMIT $2) RETURNING id, generation, body`, job, limited(limit))
	slices.SortFunc(reports, func(a, b Report) int { return int(a.ID - b.ID) })
	return reports, err
}

// JobsWithReports returns at most limit ids of jobs that have reports, by id. O(jobs) lookups.
func (t *Tx) JobsWithReports(limit int) ([]string, error) {
	ids := []string{}
	err := t.rows("looking for reports", func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM jobs WHERE EXISTS (SELECT 1 FROM reports WHERE reports.job = jobs.id) ORDER BY id LIMIT $1`, limited(limit))
	return ids, err
}

// A Schedule is one version of a job's clocks. Body is the hash of a blob.
type Schedule struct {
	Job                string
	Version            int64
	Generation         int
	EffectiveIteration int64
	Reason, Body       string
	CreatedAt          time.Time
}

const scheduleColumns = `job, version, generation, effective_iteration, reason, body, created_at`

// AddSchedule adds a version; ErrExists if the job has it, ErrNotFound if there is no such job.
func (t *Tx) AddSchedule(s Schedule) error {
	n, err := t.exec(fmt.Sprintf("adding schedule %d of job %q", s.Version, s.Job),
		`INSERT INTO schedules (`+scheduleColumns+`) SELECT id, $2, $3, $4, $5, $6, $7 FROM jobs WHERE id = $1 ON CONFLICT DO NOTHING`,
		s.Job, s.Version, s.Generation, s.EffectiveIteration, s.Reason, s.Body, nanos(s.CreatedAt))
	if err != nil || n > 0 {
		return err
	}
	if _, err := t.Job(s.Job); err != nil {
		return err
	}
	return fmt.Errorf("schedule %d of job %q: %w", s.Version, s.Job, ErrExists)
}

// Schedules returns at most limit versions after that given, ascending.
func (t *Tx) Schedules(job string, after int64, limit int) ([]Schedule, error) {
	return t.schedules(job, `SELECT `+scheduleColumns+` FROM schedules WHERE job = $1 AND version > $2 ORDER BY version LIMIT $3`, job, after, limited(limit))
}

// LatestSchedule returns the highest version of a job, or ErrNotFound.
func (t *Tx) LatestSchedule(job string) (Schedule, error) {
	found, err := t.schedules(job, `SELECT `+scheduleColumns+` FROM schedules WHERE job = $1 ORDER BY version DESC LIMIT 1`, job)
	if err != nil {
		return Schedule{}, err
	}
	if len(found) == 0 {
		return Schedule{}, fmt.Errorf("schedule of job %q: %w", job, ErrNotFound)
	}
	return found[0], nil
}

func (t *Tx) schedules(job, query string, args ...any) ([]Schedule, error) {
	found := []Schedule{}
	err := t.rows(fmt.Sprintf("reading schedules of job %q", job), func(r *sql.Rows) error {
		var s Schedule
		var created int64
		err := r.Scan(&s.Job, &s.Version, &s.Generation, &s.EffectiveIteration, &s.Reason, &s.Body, &created)
		s.CreatedAt = fromNanos(created)
		found = append(found, s)
		return err
	}, query, args...)
	return found, err
}

// DeleteSchedules deletes a job's versions before that given.
func (t *Tx) DeleteSchedules(job string, before int64) error {
	_, err := t.exec(fmt.Sprintf("deleting schedules of job %q", job), `DELETE FROM schedules WHERE job = $1 AND version < $2`, job, before)
	return err
}
