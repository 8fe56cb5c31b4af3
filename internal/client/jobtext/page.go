package jobtext

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perseus-energy/perseus/internal/api"
	"github.com/perseus-energy/perseus/internal/excerpt"
	"github.com/perseus-energy/perseus/report"
)

// page is the page of a job, line by line.
type page struct{ strings.Builder }

func (p *page) title(text string) { p.WriteString("\n" + text + "\n") }

func (p *page) line(name, format string, args ...any) {
	fmt.Fprintf(p, "  %-13s%s\n", name, excerpt.Line(fmt.Sprintf(format, args...)))
}

// Write writes all there is to say of a job.
func Write(out io.Writer, j *api.Job) error {
	p := &page{}
	p.WriteString(excerpt.Line(j.ID))
	if j.Spec.Name != "" {
		p.WriteString("  " + excerpt.Line(j.Spec.Name))
	}
	fmt.Fprintf(p, "\n%s\n\n", excerpt.Line(State(j)))
	writeSpec(p, j)
	p.line("iteration", "%d, generation %d, schedule version %d", j.Iteration, j.Generation, j.Version)
	if j.UnplannedCount > 0 {
		p.line("unplanned", "%s ran at maximum clock, as their ops differed from the plan", report.Count(int(j.UnplannedCount), "iteration"))
	}
	p.line("registered", "%s", local(j.CreatedAt))
	p.line("changed", "%s", local(j.UpdatedAt))
	if j.Profiling != nil {
		writeProfiling(p, j.Profiling)
	}
	if j.Frontier != nil {
		writeFrontier(p, j.Frontier)
	}
	if j.Plan != nil {
		writePlan(p, j.Plan)
	}
	p.title("Wishes")
	p.line("goal", "%s", goalOf(j.Goal))
	for i := range j.Stragglers {
		p.line("straggler", "%s", stragglerOf(&j.Stragglers[i]))
	}
	if j.Measurement != nil {
		p.title("Measured on the job")
		writeMeasured(p, j.Measurement)
	}
	_, err := io.WriteString(out, p.String())
	return err
}

// State returns a job's state and why, with what helps where something does.
func State(j *api.Job) string {
	text := string(j.State)
	if j.Reason != "" {
		text += ": " + j.Reason
	}
	switch j.State {
	case api.Paused:
		text += " (perseus jobs resume " + j.ID + " lets it go on)"
	case api.Registered:
		if j.Reason == "" && j.MissingRanksCount > 0 {
			text += ": waiting for ranks"
		}
	}
	return text
}

// Summary returns how a job is, in a line.
func Summary(j *api.Job) string {
	text := j.ID + " is " + State(j)
	if p := j.Plan; p != nil && j.State == api.Running {
		text += fmt.Sprintf("; plan: iteration %s, %s saved", seconds(max(p.TimeS, p.WaitTimeS)), percent(p.SavingPercent))
		if !p.Feasible {
			text += ", NOT FEASIBLE: " + p.Note
		}
	}
	return excerpt.Line(text)
}

func writeSpec(p *page, j *api.Job) {
	s := &j.Spec
	var degrees []string
	for _, d := range []struct {
		name string
		n    int
	}{{"pipeline", s.PP}, {"data", s.DP}, {"tensor", s.TP}, {"context", s.CP}, {"expert", s.EP}} {
		if d.n > 1 {
			degrees = append(degrees, fmt.Sprintf("%d %s-parallel", d.n, d.name))
		}
	}
	ranks := fmt.Sprint(s.WorldSize)
	if len(degrees) > 0 {
		ranks += ": " + strings.Join(degrees, ", ")
	}
	p.line("ranks", "%s", ranks)
	if j.MissingRanksCount > 0 {
		p.line("missing", "%s: %s", report.Count(j.MissingRanksCount, "rank"), rankList(j.MissingRanks, j.MissingRanksCount))
	}
	if s.GPU != "" {
		p.line("GPU", "%s", s.GPU)
	}
	schedule := s.Schedule
	if s.ScheduleCSV != "" {
		schedule = "an order of its own"
	}
	if schedule == "" {
		schedule = "1f1b"
	}
	text := schedule + ", " + report.Count(s.Microbatches, "microbatch")
	if s.Chunks > 1 {
		text += ", " + report.Count(s.Chunks, "chunk")
	}
	if s.ForwardOnly {
		text += ", forward only"
	}
	p.line("pipeline", "%s", text)
}

// rankList returns ranks as in "1, 4–7 and 3 more"; total is how many there are, of which these may be a part.
func rankList(ranks []int, total int) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1] <= ranks[last]+1 {
			last++
		}
		switch {
		case ranks[last] == ranks[i]:
			parts = append(parts, fmt.Sprint(ranks[i]))
		case ranks[last] == ranks[i]+1:
			parts = append(parts, fmt.Sprint(ranks[i]), fmt.Sprint(ranks[last]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", ranks[i], ranks[last]))
		}
		i = last + 1
	}
	text := strings.Join(parts, ", ")
	if more := total - len(ranks); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func writeProfiling(p *page, f *api.Profile) {
	p.title("Profiling")
	text := fmt.Sprintf("%s done in %s", percent(100*f.DoneFraction), report.Count(int(f.Iterations), "iteration"))
	if f.DoneFraction < 1 {
		text += fmt.Sprintf(", at most %d more", f.IterationsMax)
	}
	p.line("progress", "%s", text)
	p.line("cost", "%s of extra time", seconds(f.ExtraTime))
	if f.Warm {
		p.line("profile", "of an earlier job, only checked")
	}
	for _, note := range f.Notes {
		p.line("note", "%s", note)
	}
}

func writeFrontier(p *page, f *api.Frontier) {
	p.title(fmt.Sprintf("Frontier, version %d, of %s", f.Version, report.Count(f.Points, "point")))
	p.line("fastest", "%s an iteration", seconds(f.MinTimeS))
	p.line("least energy", "%s", seconds(f.LeastEnergyTimeS))
	p.line("slowest", "%s: nothing is saved beyond, even while waiting", seconds(f.MaxTimeS))
	p.line("top clocks", "%s, %s J of one pipeline", seconds(f.MaxClockTimeS), report.Significant(f.MaxClockEnergyJ))
}

func writePlan(p *page, f *api.Plan) {
	p.title("Plan in force")
	if !f.Feasible {
		p.line("NOT FEASIBLE", "the nearest there is")
	}
	p.line("iteration", "%s, %s J of one pipeline", seconds(f.TimeS), report.Significant(f.EnergyJ))
	if f.WaitTimeS > f.TimeS {
		p.line("waits", "until %s for the straggler", seconds(f.WaitTimeS))
	}
	p.line("saving", "%s against maximum clock", percent(f.SavingPercent))
	if f.Reason != "" {
		p.line("because", "%s", f.Reason)
	}
	if f.Note != "" {
		p.line("note", "%s", f.Note)
	}
}

// goalOf returns a goal in words.
func goalOf(g api.Goal) string {
	switch {
	case g.Slowdown != 0:
		return fmt.Sprintf("at most %s times the least time", report.Significant(g.Slowdown))
	case g.TimeS != 0:
		return fmt.Sprintf("at most %s an iteration", seconds(g.TimeS))
	case g.PowerW != 0:
		return fmt.Sprintf("at most %s on average, one pipeline", report.Watts(g.PowerW))
	case g.LeastEnergy:
		return "the least energy"
	}
	return "as fast as possible"
}

// stragglerOf returns a straggler in words.
func stragglerOf(s *api.Straggler) string {
	text := "GPU " + s.GPU
	if s.Rank != nil {
		text = fmt.Sprintf("rank %d", *s.Rank)
	}
	if s.MaxFrequencyMHz > 0 {
		text += fmt.Sprintf(", at most %d MHz", s.MaxFrequencyMHz)
	} else {
		text += fmt.Sprintf(", %s times the least time", report.Significant(s.Slowdown))
	}
	if s.AtIteration > 0 {
		text += fmt.Sprintf(", from iteration %d", s.AtIteration)
	}
	if s.UntilIteration > 0 {
		text += fmt.Sprintf(", until iteration %d", s.UntilIteration)
	}
	if s.Source != "" {
		text += " (" + s.Source + ")"
	}
	return text
}

func writeMeasured(p *page, m *api.Measured) {
	if !m.Done {
		p.line("progress", "%d of %s", m.BlocksDone, report.Count(m.Blocks, "block"))
		if m.BlocksDone == 0 {
			return
		}
	}
	p.line("saving", "%s", intervalOf(m.SavingPercent, m.SavingLow, m.SavingHigh))
	p.line("slowdown", "%s", intervalOf(m.SlowdownPercent, m.SlowdownLow, m.SlowdownHigh))
}

// WriteMeasured writes what a measurement has found, in two lines.
func WriteMeasured(out io.Writer, m *api.Measured) error {
	_, err := fmt.Fprintf(out, "saving    %s\nslowdown  %s\n",
		intervalOf(m.SavingPercent, m.SavingLow, m.SavingHigh), intervalOf(m.SlowdownPercent, m.SlowdownLow, m.SlowdownHigh))
	return err
}

// intervalOf returns an estimate in percent with its interval.
func intervalOf(v, low, high float64) string {
	return fmt.Sprintf("%s (95 %%: %s … %s)", percent(v), percent(low), percent(high))
}
