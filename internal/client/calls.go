package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
)

// PutJob registers a job under an id that the caller knows, and returns it. Doing it again changes nothing.
func (c *Client) PutJob(ctx context.Context, id string, spec api.JobSpec) (api.Job, error) {
	return c.job(ctx, &call{what: "register job " + id, method: http.MethodPut, repeat: true}, id, spec)
}

// Job returns a job as the server sees it now.
func (c *Client) Job(ctx context.Context, id string) (api.Job, error) {
	return c.job(ctx, &call{what: "look at job " + id, method: http.MethodGet, repeat: true}, id, nil)
}

// Jobs returns a page of the jobs in a state, or of all where it is empty, by id. after is the id that the page begins
// behind, as JobList.Next gives it; limit 0 leaves the size of the page to the server.
func (c *Client) Jobs(ctx context.Context, state api.State, after string, limit int) (list api.JobList, err error) {
	query := url.Values{}
	for name, value := range map[string]string{"state": string(state), "after": after} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	err = c.do(ctx, &call{
		what: "list jobs", method: http.MethodGet, path: []string{"jobs"}, query: query, repeat: true, read: into(&list),
	})
	return list, err
}

// AllJobs returns the jobs in a state, or all where it is empty, by id, however many pages they are.
func (c *Client) AllJobs(ctx context.Context, state api.State) (api.JobList, error) {
	all := api.JobList{Jobs: []api.Job{}}
	for after := ""; ; {
		page, err := c.Jobs(ctx, state, after, 0)
		if err != nil {
			return api.JobList{}, err
		}
		all.Jobs = append(all.Jobs, page.Jobs...)
		if page.Next == "" {
			return all, nil
		}
		if page.Next <= after { // ids are in order: this would not end
			return api.JobList{}, errors.New("list jobs: the server gives the same page again")
		}
		after = page.Next
	}
}

// DeleteJob removes a job and all that is known of it.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	return c.of(ctx, id, nil, &call{what: "delete job " + id, method: http.MethodDelete, repeat: true, read: ignored})
}

// RegisterRanks registers ranks of a job. With sessions, doing it again changes nothing.
func (c *Client) RegisterRanks(ctx context.Context, job string, r api.RankRegistration) (registered api.RankRegistered, err error) {
	err = c.of(ctx, job, r, &call{
		what: "register ranks of job " + job, method: http.MethodPut, repeat: true, read: into(&registered),
	}, "ranks")
	return registered, err
}

// Schedules returns what the ranks are to do, and whether that is another version than the one known. Where it is
// not, only Generation, Version, State and ReportEvery are to be used, and the last two only if State is set. It waits
// up to q.Wait, over restarts of the server too; the server may answer sooner without news.
func (c *Client) Schedules(ctx context.Context, job string, q api.ScheduleQuery) (s api.Schedules, changed bool, err error) {
	query := url.Values{}
	if len(q.Ranks) > 0 {
		var ranks strings.Builder
		for i, r := range q.Ranks {
			if i > 0 {
				ranks.WriteByte(',')
			}
			ranks.WriteString(strconv.Itoa(r))
		}
		query.Set("ranks", ranks.String())
	}
	if q.Generation > 0 {
		query.Set("generation", strconv.Itoa(q.Generation))
	}
	if q.Version > 0 || q.Wait > 0 {
		query.Set("version", strconv.FormatInt(q.Version, 10))
	}
	err = c.of(ctx, job, nil, &call{
		what: "get schedules of job " + job, method: http.MethodGet, query: query, repeat: true, unchanged: true, wait: q.Wait,
		read: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusNotModified {
				s = api.Schedules{Generation: q.Generation, Version: q.Version}
				return nil
			}
			s = api.Schedules{}
			return into(&s)(resp)
		},
	}, "schedules")
	return s, err == nil && s.Version != q.Version, err
}

// Report hands over what ranks measured. Once it returns without error, that is durable. The same report may arrive
// twice where an answer was lost: the server tells by rank and iteration.
func (c *Client) Report(ctx context.Context, job string, r api.Reports) (accepted api.Accepted, err error) {
	err = c.of(ctx, job, r, &call{
		what: "report of job " + job, method: http.MethodPost, repeat: true, read: into(&accepted),
	}, "reports")
	return accepted, err
}

// AddStraggler says that a GPU is slow, or will be, or with a slowdown of 1 that it no longer is.
func (c *Client) AddStraggler(ctx context.Context, job string, s api.Straggler) (api.Job, error) {
	return c.job(ctx, &call{what: "add straggler to job " + job, method: http.MethodPost, repeat: true}, job, s, "stragglers")
}

// SetGoal sets what is wished of a job. Before the server has planned for it, Job.Plan is of the goal before.
func (c *Client) SetGoal(ctx context.Context, job string, g api.Goal) (api.Job, error) {
	return c.job(ctx, &call{what: "set goal of job " + job, method: http.MethodPut, repeat: true}, job, g, "goal")
}

// Pause brings a job's ranks back to maximum clock until Resume.
func (c *Client) Pause(ctx context.Context, job string) (api.Job, error) {
	return c.job(ctx, &call{what: "pause job " + job, method: http.MethodPost, repeat: true}, job, nil, "pause")
}

// Resume undoes Pause.
func (c *Client) Resume(ctx context.Context, job string) (api.Job, error) {
	return c.job(ctx, &call{what: "resume job " + job, method: http.MethodPost, repeat: true}, job, nil, "resume")
}

// Finish says that a job has ended.
func (c *Client) Finish(ctx context.Context, job string) (api.Job, error) {
	return c.job(ctx, &call{what: "finish job " + job, method: http.MethodPost, repeat: true}, job, nil, "finish")
}

// Measure begins a measurement, which Job.Measurement tells of. It is not tried again where it may have begun.
func (c *Client) Measure(ctx context.Context, job string, r api.MeasureRequest) (api.Job, error) {
	return c.job(ctx, &call{what: "measure job " + job, method: http.MethodPost}, job, r, "measure")
}

// PutProfile uploads a profile, which replaces profiling. blockingPowerW is what one GPU draws while it waits; 0: what
// the job's spec says. The profile is held in memory; one of more than 64 MiB is an error.
func (c *Client) PutProfile(ctx context.Context, job string, csv io.Reader, blockingPowerW float64) (api.Job, error) {
	r := &call{what: "upload profile of job " + job, method: http.MethodPut, contentType: "text/csv", repeat: true}
	text, err := io.ReadAll(io.LimitReader(csv, maxAnswer+1))
	switch {
	case err != nil:
		return api.Job{}, fmt.Errorf("%s: %w", r.what, err)
	case len(text) > maxAnswer:
		return api.Job{}, fmt.Errorf("%s: it is longer than %d MiB", r.what, maxAnswer>>20)
	}
	if blockingPowerW != 0 {
		r.query = url.Values{"blocking_power_w": {strconv.FormatFloat(blockingPowerW, 'g', -1, 64)}}
	}
	r.body = append([]byte{}, text...) // never nil: the request has a body even if it is empty
	return c.job(ctx, r, job, nil, "profile")
}

// Profile writes a job's profile, CSV, to w. After an error w may have got a part of it.
func (c *Client) Profile(ctx context.Context, job string, w io.Writer) error {
	return c.file(ctx, job, "profile", "text/csv", w)
}

// Frontier writes a job's frontier, perseus-frontier/1 compressed with gzip, to w. After an error w may have got a
// part of it.
func (c *Client) Frontier(ctx context.Context, job string, w io.Writer) error {
	return c.file(ctx, job, "frontier", "application/gzip", w)
}

// file makes a call that is answered by a file.
func (c *Client) file(ctx context.Context, job, name, accept string, w io.Writer) error {
	return c.of(ctx, job, nil, &call{
		what: "get " + name + " of job " + job, method: http.MethodGet, accept: accept, repeat: true,
		read: func(resp *http.Response) error {
			n, err := io.Copy(w, io.LimitReader(resp.Body, maxFile+1))
			switch {
			case n > maxFile:
				return &invalid{fmt.Sprintf("the %s is longer than %d MiB", name, maxFile>>20)}
			case err != nil && n > 0:
				return &invalid{err.Error()} // a part of it is written: it cannot be asked for again
			}
			return err
		},
	}, name)
}

// job makes a call that is answered by a job.
func (c *Client) job(ctx context.Context, r *call, id string, message any, below ...string) (job api.Job, err error) {
	r.read = into(&job)
	err = c.of(ctx, id, message, r, below...)
	return job, err
}

// of makes a call about a job, with a message unless it is nil.
func (c *Client) of(ctx context.Context, id string, message any, r *call, below ...string) error {
	if err := checkJob(id); err != nil {
		return err
	}
	r.path = append([]string{"jobs", id}, below...)
	if message != nil {
		text, err := json.Marshal(message)
		if err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
		r.body, r.contentType = text, "application/json"
	}
	return c.do(ctx, r)
}
