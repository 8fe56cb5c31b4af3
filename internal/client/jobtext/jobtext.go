// Package jobtext says in words and tables how the jobs of a control plane are: one job on a page, many in a list, the
// schedules of ranks.
//
// It comes after internal/api and before the commands, reads messages and decides nothing. Numbers are rounded, for
// people, except in the CSV of schedules. What it writes is safe to show: texts that came from elsewhere, as names and
// reasons did, cannot steer a terminal.
package jobtext

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/report"
)

var states = [...]api.State{
	api.Registered, api.Profiling, api.Characterizing, api.Running, api.Paused, api.Stale, api.Finished, api.Failed,
}

// ParseState returns the state of a name; "" is any.
func ParseState(name string) (api.State, error) {
	for _, s := range states {
		if name == "" || name == string(s) {
			return api.State(name), nil
		}
	}
	return "", fmt.Errorf("%s: expected one of %s", excerpt.Quoted(name, 40), strings.Trim(fmt.Sprint(states), "[]"))
}

// Ended says whether nothing more will happen to a job.
func Ended(j *api.Job) bool { return j.State == api.Finished || j.State == api.Failed }

// Failure returns the error of a job that has failed, nil for others.
func Failure(j *api.Job) error {
	if j.State != api.Failed {
		return nil
	}
	return fmt.Errorf("job %s failed: %s", excerpt.Line(j.ID), excerpt.Line(j.Reason))
}

// Event returns an event in a line: when, what kind, what.
func Event(e api.Event) string {
	return fmt.Sprintf("%s  %-9s  %s", local(e.At), excerpt.Line(e.Kind), excerpt.Line(e.Text))
}

// local returns a time as people read it, where they are.
func local(t time.Time) string { return t.In(time.Local).Format(time.DateTime) }

// WriteList writes jobs, a line each.
func WriteList(out io.Writer, jobs []api.Job) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tSTATE\tITERATION\tTIME\tSAVING\tRANKS\tNAME")
	for i := range jobs {
		j := &jobs[i]
		time, saving := "–", "–"
		if j.Plan != nil {
			time, saving = seconds(max(j.Plan.TimeS, j.Plan.WaitTimeS)), percent(j.Plan.SavingPercent)
		}
		ranks := fmt.Sprint(j.Spec.WorldSize)
		if j.MissingRanksCount > 0 {
			ranks = fmt.Sprintf("%d/%d", j.Spec.WorldSize-j.MissingRanksCount, j.Spec.WorldSize)
		}
		name := excerpt.Line(j.Spec.Name)
		if j.Reason != "" && j.State != api.Running {
			name = strings.TrimPrefix(name+": ", ": ") + excerpt.Line(j.Reason)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", excerpt.Line(j.ID), excerpt.Line(string(j.State)), j.Iteration, time, saving, ranks, cmp.Or(excerpt.Of(name, 80), "–"))
	}
	return t.Flush()
}

// seconds returns a time for people.
func seconds(v float64) string { return report.Significant(v) + " s" }

// percent returns a percentage for people.
func percent(v float64) string { return report.Percent(v / 100) }
