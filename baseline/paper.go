package baseline

import (
	"context"
	"fmt"

	"github.com/perseus-energy/perseus/characterize"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/simulate"
	"github.com/perseus-energy/perseus/unit"
)

// GlobalBatch is the number of microbatches of an iteration in the paper's
// emulation, all pipelines together, GPUsPerStage its tensor parallelism.
const (
	GlobalBatch  = 1536
	GPUsPerStage = 8
)

// Workload is a profile whose tables are made.
type Workload struct {
	Name    string
	Profile *profile.Profile
	// Blocking is what one GPU draws while it waits.
	Blocking unit.Power
	// Scale is how many times the profile's stages make the real stage, and Tau
	// the published algorithm's unit of time on the profile's scale.
	Scale int
	Tau   unit.Time
	// Published is nil where nothing was published of it.
	Published *Figures
}

// NewWorkload returns the workload of a profile with a name, a file's without its
// ending. blocking is 0 where the published one is meant; it fails where none is.
func NewWorkload(name string, p *profile.Profile, blocking unit.Power) (Workload, error) {
	f, known := FiguresOf(p.SHA256, name)
	w := Workload{Name: name, Profile: p, Blocking: blocking, Scale: 1, Tau: TauOf(known)}
	if known {
		w.Scale, w.Published = ProfileScale, &f
		if blocking == 0 {
			w.Blocking = f.Blocking
		}
	}
	if w.Blocking == 0 {
		return w, fmt.Errorf("%s: no blocking power was published for it: give it with --blocking-power", name)
	}
	return w, nil
}

// job returns the frontier and the pipeline of a workload with 1f1b.
func (w *Workload) job(ctx context.Context, microbatches int) (*frontierfile.File, *simulate.Pipeline, error) {
	o, err := pipeline.Build("1f1b", pipeline.Size{Ranks: w.Profile.Stages(), Microbatches: microbatches})
	if err != nil {
		return nil, nil, err
	}
	f, err := characterize.Run(ctx, characterize.NewJob(w.Profile, o, w.Blocking), characterize.Options{Points: 3})
	if err != nil {
		return nil, nil, err
	}
	p, err := simulate.New(&f.Header, w.Profile)
	return f, p, err
}

// loose is the gap from which on a plan of the tables is made again with normal
// effort.
const loose = 0.01

// Factors are the slowdowns of stragglers for which tables are made.
func Factors() []plan.Ratio {
	return []plan.Ratio{105e7, 11e8, 115e7, 12e8, 13e8, 14e8, 15e8}
}

// publishedFactor is the straggler of the published table.
const publishedFactor = 12 * plan.One / 10

// PaperMicrobatches are the sizes of the paper's tables.
func PaperMicrobatches() []int { return []int{12, 24, 48, 96} }

// Tables are the paper's tables of one workload, made anew. All savings are
// fractions.
type Tables struct {
	Workload Workload
	Rows     []TableRow
}

// TableRow is what there is for one number of microbatches.
type TableRow struct {
	Microbatches int
	// Fastest is the saving of the fastest plan, Unchanged that of the best plan
	// that is no slower than maximum clocks, which may be slower than the fastest,
	// and Speedup by how much the fastest plan is faster than maximum clocks.
	Fastest, Unchanged, Speedup float64
	// Gap is how far above the bound the fastest plan is at most, WorstGap how far
	// any plan of the row is.
	Gap, WorstGap float64
	// Expected is what the published algorithm expects to save by its fitted
	// curves, Replayed what its clocks save by the measurements, at Slowdown.
	Expected, Replayed, Slowdown float64
	// Published is the published intrinsic saving in percent, 0 where there is
	// none.
	Published float64
	// Straggler holds the saving of a pipeline that waits for one slowed by each
	// of Factors.
	Straggler []float64
	// PublishedStraggler is what the published algorithm expects to save while a
	// pipeline is slowed 1.2 times, with its schedule of least energy, and
	// PublishedTStar that schedule's time over its least time; 0 where that is later
	// than the straggler.
	PublishedStraggler, PublishedTStar float64
	// LeastEnergy and Slowest are the time of the least energy and the greatest
	// useful time, over the least time.
	LeastEnergy, Slowest float64
}

// Reproduced says that the published algorithm, as it is here, expects the
// published saving, to within 0.3 points.
func (r *TableRow) Reproduced() bool {
	l := Line{Known: r.Published, PlannedSaving: r.Expected}
	return l.Reproduced()
}

// Paper makes the paper's tables of a workload. It costs a walk of the frontier, and
// of the published one, for each number of microbatches.
func Paper(ctx context.Context, w Workload, effort round.Effort) (*Tables, error) {
	t := &Tables{Workload: w}
	for _, m := range PaperMicrobatches() {
		row, err := w.row(ctx, m, effort)
		if err != nil {
			return nil, fmt.Errorf("%s, %d microbatches: %w", w.Name, m, err)
		}
		t.Rows = append(t.Rows, *row)
	}
	return t, nil
}

func (w *Workload) row(ctx context.Context, microbatches int, effort round.Effort) (*TableRow, error) {
	f, p, err := w.job(ctx, microbatches)
	if err != nil {
		return nil, err
	}
	h := &f.Header
	top := h.MaxClockEnergy.Joules()
	r := &TableRow{
		Microbatches: microbatches,
		LeastEnergy:  h.LeastEnergyTime.Seconds() / h.TMin.Seconds(), Slowest: h.TMax.Seconds() / h.TMin.Seconds(),
	}
	if w.Published != nil {
		r.Published = w.Published.Intrinsic[microbatches]
	}
	times := []unit.Time{h.TMin, min(h.MaxClockTime, h.LeastEnergyTime)}
	for _, factor := range Factors() {
		times = append(times, scaled(h.TMin, factor))
	}
	plans, err := PlansAt(p.Problem, times, effort)
	if err != nil {
		return nil, err
	}
	for i := range plans {
		if plans[i].Effort < round.Normal && plans[i].Gap() > loose {
			again, err := PlansAt(p.Problem, times[i:i+1], round.Normal)
			if err != nil {
				return nil, err
			}
			plans[i] = again[0]
		}
		r.WorstGap = max(r.WorstGap, plans[i].Gap())
	}
	r.Fastest, r.Gap = 1-plans[0].Energy.Joules()/top, plans[0].Gap()
	r.Speedup = 1 - plans[0].Time.Seconds()/h.MaxClockTime.Seconds()
	r.Unchanged = 1 - plans[1].Energy.Joules()/top
	maxClocks := p.MaxClocks().Cost()
	for i, until := range times[2:] {
		waiting := Plan{Time: maxClocks.Time, Effective: maxClocks.Effective}
		r.Straggler = append(r.Straggler, saving(plans[2+i].Waiting(p, until), waiting.Waiting(p, until)))
	}
	ends := PublishedEnds(p, w.Tau)
	if least, until := ends[len(ends)-1], scaled(h.TMin, publishedFactor); least.Schedule != nil && least.PlannedTime <= until {
		power := p.Problem.BlockingPower.Watts()
		waiting := Plan{Time: maxClocks.Time, Effective: maxClocks.Effective}
		energy := least.Planned + float64(power*(until-least.PlannedTime).Seconds())
		r.PublishedStraggler = 1 - energy/waiting.Waiting(p, until).Joules()
		r.PublishedTStar = least.PlannedTime.Seconds() / ends[0].PlannedTime.Seconds()
	}
	published := ends[0]
	if published.Schedule != nil {
		r.Expected = 1 - published.Planned/top
		r.Replayed = saving(published.Cost.Energy, maxClocks.Energy)
		r.Slowdown = published.Cost.Time.Seconds()/maxClocks.Time.Seconds() - 1
	}
	return r, ctx.Err()
}

// LargeScale is an emulation of a large job, as the paper does it: strong scaling,
// that is the same global batch on more and more pipelines.
type LargeScale struct {
	Workload Workload
	Factor   plan.Ratio
	Rows     []ScaleRow
}

// ScaleRow is one size of the job. Times are of the real job: the profile's times
// its scale.
type ScaleRow struct {
	GPUs, Pipelines, Microbatches int
	// Time is the iteration time, MaxTime that of maximum clocks.
	Time, MaxTime float64
	// Power is the average power of the whole job in watts with this Perseus,
	// MaxPower with maximum clocks.
	Power, MaxPower float64
	// Saving is the job's with the fastest plan, as a fraction; Straggler that of
	// the job where one pipeline is slowed by Factor and the others take the plan
	// for that.
	Saving, Straggler float64
	// Ops is how many ops all pipelines run.
	Ops int
}

// scaleMicrobatches are the sizes of the emulation: 1,024 to 16,384 GPUs with 8
// stages of 8 GPUs.
func scaleMicrobatches() []int { return []int{96, 48, 24, 12, 6} }

// scaled returns t·f, rounded down.
func scaled(t unit.Time, f plan.Ratio) unit.Time {
	v, _ := unit.Product(unit.Power(f), t).DivInt(int64(plan.One), unit.Down)
	return unit.Time(v)
}

// Emulate runs a workload at 1,024 to 16,384 GPUs. It costs a walk of
// the frontier for each size.
func Emulate(ctx context.Context, w Workload, factor plan.Ratio, effort round.Effort) (*LargeScale, error) {
	l := &LargeScale{Workload: w, Factor: factor}
	for _, m := range scaleMicrobatches() {
		row, err := w.scaleRow(ctx, m, factor, effort)
		if err != nil {
			return nil, fmt.Errorf("%s, %d microbatches: %w", w.Name, m, err)
		}
		l.Rows = append(l.Rows, *row)
	}
	return l, nil
}

func (w *Workload) scaleRow(ctx context.Context, microbatches int, factor plan.Ratio, effort round.Effort) (*ScaleRow, error) {
	f, p, err := w.job(ctx, microbatches)
	if err != nil {
		return nil, err
	}
	plans, err := PlansAt(p.Problem, []unit.Time{f.Header.TMin, scaled(f.Header.TMin, factor)}, effort)
	if err != nil {
		return nil, err
	}
	fastest, waiting := p.Choice("fastest", plans[0].Choice), p.Choice("straggler", plans[1].Choice)
	pipelines := GlobalBatch / microbatches
	gpusPerStage := GPUsPerStage
	if p.GPUsPerRank > 1 {
		gpusPerStage = p.GPUsPerRank // the profile has them all
	}
	energyScale := float64(w.Scale) * float64(gpusPerStage) / float64(p.GPUsPerRank)
	top := p.MaxClocks()
	slow := simulate.Options{Slow: []simulate.Slowdown{{Pipeline: 0, Rank: simulate.All, Factor: factor}}}
	run := func(straggler, others *simulate.Schedule, o simulate.Options) (time, energy float64, err error) {
		n, err := simulate.Run([]simulate.Member{{Schedule: straggler}, {Schedule: others, Copies: pipelines - 1}}, o)
		if err != nil {
			return 0, 0, err
		}
		return float64(w.Scale) * n.Time.Seconds(), energyScale * n.Energy().Joules(), nil
	}
	var time, energy [4]float64
	for i, c := range []struct {
		straggler, others *simulate.Schedule
		options           simulate.Options
	}{{top, top, simulate.Options{}}, {fastest, fastest, simulate.Options{}}, {top, top, slow}, {fastest, waiting, slow}} {
		if time[i], energy[i], err = run(c.straggler, c.others, c.options); err != nil {
			return nil, err
		}
	}
	return &ScaleRow{
		GPUs: pipelines * p.Ranks() * gpusPerStage, Pipelines: pipelines, Microbatches: microbatches,
		Time: time[1], MaxTime: time[0], Power: energy[1] / time[1], MaxPower: energy[0] / time[0],
		Saving: 1 - energy[1]/energy[0], Straggler: 1 - energy[3]/energy[2], Ops: pipelines * p.Problem.Graph.Ops,
	}, ctx.Err()
}
