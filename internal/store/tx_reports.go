package store

import (
	"database/sql"
	"fmt"
	"slices"
)

// A Report is what a rank told of, until it is taken.
type Report struct {
	ID         int64
	Generation int
	Body       []byte
}

// AddReport keeps a report until it is taken; ErrNotFound if there is no such job. It does not wait for those who have the job locked.
func (t *Tx) AddReport(job string, generation int, body []byte) error {
	n, err := t.exec(fmt.Sprintf("adding a report to job %q", job),
		`INSERT INTO reports (job, generation, body) SELECT id, $2, $3 FROM jobs WHERE id = $1`, job, generation, data(body))
	return jobFound(job, n, err)
}

// Reports returns the reports that TakeReports would.
func (t *Tx) Reports(job string, limit int) ([]Report, error) {
	return t.reports(fmt.Sprintf("reading reports of job %q", job),
		`SELECT id, generation, body FROM reports WHERE job = $1 ORDER BY id LIMIT $2`, job, limited(limit))
}

// TakeReports returns at most limit reports of a job, oldest first, and deletes them. Lock the job first.
func (t *Tx) TakeReports(job string, limit int) ([]Report, error) {
	return t.reports(fmt.Sprintf("taking reports of job %q", job),
		`DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE job = $1 ORDER BY id LIMIT $2) RETURNING id, generation, body`, job, limited(limit))
}

func (t *Tx) reports(doing, query string, args ...any) ([]Report, error) {
	reports := []Report{}
	err := t.rows(doing, func(rows *sql.Rows) error {
		var r Report
		err := rows.Scan(&r.ID, &r.Generation, &r.Body)
		reports = append(reports, r)
		return err
	}, query, args...)
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
