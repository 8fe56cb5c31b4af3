package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/report"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

type planCommand struct {
	Frontier string `arg:"" name:"F.json" file:"" help:"The frontier, from perseus frontier; - is standard input."`

	Fastest   bool        `xor:"goal" group:"What to plan for (one of these):" help:"The least iteration time, and of the plans that reach it the one of least energy."`
	Time      *unit.Time  `xor:"goal" group:"What to plan for (one of these):" placeholder:"2.9s" help:"The least energy with an iteration of at most this time."`
	Slowdown  *plan.Ratio `xor:"goal" group:"What to plan for (one of these):" placeholder:"1.1" help:"The same for this multiple of the least iteration time."`
	Straggler *plan.Ratio `xor:"goal" group:"What to plan for (one of these):" placeholder:"1.2" help:"Another pipeline takes this multiple of the least iteration time, and this one waits for it: the least energy meanwhile."`
	Power     *unit.Power `xor:"goal" group:"What to plan for (one of these):" placeholder:"15kW" help:"The fastest plan that draws at most this on average, all GPUs of the pipeline together."`
	MinEnergy bool        `aliases:"least-energy" xor:"goal" group:"What to plan for (one of these):" help:"The least energy, whatever the time."`

	Margin        percentage   `placeholder:"0.5%" help:"Leave room for ops that run longer than measured: those that the plan slows down may take this much longer without delaying the iteration."`
	SwitchLatency *unit.Time   `placeholder:"60ms" help:"Plan for GPUs whose switch of clocks takes up to this long: each keeps a clock for 1.3 times that, and 10ms, at least."`
	Effort        round.Effort `default:"normal" choices:"fast,normal,best" placeholder:"normal" help:"fast takes a point of the frontier as it is, normal solves anew for the very time, best takes minutes."`
	Strict        bool         `help:"Fail where no plan does what is asked, instead of giving the nearest."`

	jsonFlag
	Format string `enum:"csv,json,zeus" default:"csv" help:"csv (one op a line), json (for programs, with the bound) or zeus (for Zeus's PointSolution schedulers)."`
	PerGPU bool   `name:"per-gpu" help:"A row, or with zeus a list, for each global rank of the job in place of each pipeline rank. The frontier must know the parallel groups."`
	Output string `short:"o" file:"" output:"" placeholder:"FILE" default:"-" help:"Where to write the plan; compressed if the name ends in .gz. Standard output without it."`
	Quiet  bool   `short:"q" help:"No summary on standard error."`
}

// Help is the text of perseus plan --help.
func (planCommand) Help() string {
	return `Prints one energy schedule: the clock of every op of every rank, in execution order, and on standard error what it costs and saves.

Where no plan does what is asked, as for a time below the least, the nearest one is given, and marked: on standard error, and in json by "feasible": false and a "note".

Examples:

    perseus plan F.json --fastest                      # save energy, stay as fast
    perseus plan F.json --time 2.9s -o plan.csv        # at most 2.9 s an iteration
    perseus plan F.json --straggler 1.2 --format json  # another pipeline is 20 % slower
    perseus plan F.json --power 15kW --margin 0.5%     # a budget, and room for noise
    perseus plan F.json --fastest --per-gpu            # a row for each op of each GPU`
}

func (c *planCommand) request() (plan.Request, error) {
	g := goal{c.Time, c.Slowdown, c.Straggler, c.Power, c.MinEnergy}
	if g == (goal{}) && !c.Fastest {
		return plan.Request{}, errors.New("say what to plan for: one of --fastest, --time, --slowdown, --straggler, --power, --min-energy")
	}
	r := g.of(plan.Request{Margin: c.Margin.ratio(), Effort: c.Effort})
	if c.SwitchLatency != nil {
		if *c.SwitchLatency < 0 || *c.SwitchLatency > unit.MaxOpTime {
			return r, fmt.Errorf("--switch-latency %v: expected 0s to %v", *c.SwitchLatency, unit.MaxOpTime)
		}
		r.Hold = plan.HoldFor(*c.SwitchLatency)
	}
	return r, r.Check()
}

// Run makes a plan with package plan and writes it.
func (c *planCommand) Run(w *world) error {
	request, err := c.request()
	if err != nil {
		return input(err) // before a large file is read
	}
	if err := fileio.Check(c.Output); err != nil {
		return input(err)
	}
	f, err := w.readFrontier(c.Frontier)
	if err != nil {
		return input(err)
	}
	planner, err := plan.New(f)
	if err != nil {
		return input(fmt.Errorf("%s: %w", fileio.Name(c.Frontier), err))
	}
	p, err := planner.Make(request)
	if err != nil {
		return input(fmt.Errorf("%s: %w", fileio.Name(c.Frontier), err))
	}
	if c.Strict && !p.Feasible {
		return errors.New(p.Note)
	}
	write := map[string]func(io.Writer) error{"csv": p.WriteCSV, "json": p.WriteJSON, "zeus": p.WriteZeus}[c.or(c.Format)]
	if c.PerGPU {
		if _, err := p.GPUs(); err != nil {
			return input(fmt.Errorf("%s: %w", fileio.Name(c.Frontier), err))
		}
		// The JSON has the global ranks of each rank anyway.
		write = map[string]func(io.Writer) error{"csv": p.WriteGPUCSV, "json": p.WriteJSON, "zeus": p.WriteGPUZeus}[c.or(c.Format)]
	}
	if err := fileio.Write(w.ctx, c.Output, w.stdout, write); err != nil {
		return err
	}
	if c.Quiet && p.Feasible {
		return nil
	}
	return report.WritePlan(w.stderr, p)
}
