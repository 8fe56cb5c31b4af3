package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/perseus-energy/perseus/derive"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/internal/fileio"
	"github.com/perseus-energy/perseus/internal/jobs"
	"github.com/perseus-energy/perseus/parallel"
	"github.com/perseus-energy/perseus/profile"
	"github.com/perseus-energy/perseus/unit"
)

// profileFlags say how a profile is read.
type profileFlags struct {
	Units       string `group:"The profile:" placeholder:"LIST" help:"Units of its columns, as in time=ms,energy=mJ,frequency=Hz."`
	SkipBadRows bool   `group:"The profile:" help:"Leave out rows that are wrong, and say how many, instead of failing."`
}

func (p *profileFlags) given() bool { return *p != profileFlags{} }

func (p *profileFlags) options() (profile.Options, error) {
	units, err := profile.ParseUnits(p.Units)
	if err != nil {
		return profile.Options{}, fmt.Errorf("--%w", err)
	}
	return profile.Options{Units: units, SkipBadRows: p.SkipBadRows}, nil
}

// say prints what the user is to know of a profile where no summary follows: the
// rows that are left out, and what else there is.
func (w *world) say(p *profile.Profile, notes []string) {
	for _, line := range append(p.Report.Lines(), notes...) {
		if !strings.HasPrefix(line, p.Report.Name+":") && !strings.HasPrefix(line, "stage") {
			fmt.Fprintf(w.stderr, "perseus: %s\n", line)
		}
	}
}

// deriveFlag is how ops that were not measured come from those that were.
type deriveFlag struct {
	Derive string `group:"Ops that were not measured:" placeholder:"RULES" help:"Derive what the profile lacks, by rules as in input-gradient=backward*0.5,recompute=forward, or by the presets split-backward, split-backward-torch, join-backward, recompute, overlap."`
}

func (d *deriveFlag) rules() ([]derive.Rule, error) {
	if d.Derive == "" {
		return nil, nil
	}
	rules, err := derive.Parse(d.Derive)
	if err == nil {
		err = jobs.CheckRules(rules)
	}
	if err != nil {
		return nil, fmt.Errorf("--derive: %w", err)
	}
	return rules, nil
}

// jobFlags are what may be said of a job besides its profile, its pipeline and its
// blocking power.
type jobFlags struct {
	deriveFlag
	Fixed      string    `group:"Ops that were not measured:" placeholder:"LIST" help:"Add ops of a fixed time, as in load=5ms,reduce-grad=80ms,optimizer=20ms. GPUs draw meanwhile what they draw waiting."`
	P2PLatency unit.Time `name:"p2p-latency" group:"Ops that were not measured:" placeholder:"1.2ms" help:"How long a value takes from one pipeline rank to another."`

	MicrobatchFactors string `file:"" group:"Unequal ops:" placeholder:"LIST|FILE" help:"How much longer and dearer each microbatch is than measured: a factor for each, as in 1,1.2,0.9, or time:energy as in 1.2:1.15, or a CSV file with microbatch,time_factor,energy_factor."`
	OpFactors         string `group:"Unequal ops:" file:"" placeholder:"FILE" help:"The same for single ops, in place of their microbatch's: a CSV file with stage,microbatch,instruction,time_factor,energy_factor."`

	TP        int      `min:"1" name:"tp" group:"Parallel groups:" placeholder:"N" help:"Degree of tensor parallelism."`
	CP        int      `min:"1" name:"cp" group:"Parallel groups:" placeholder:"N" help:"Degree of context parallelism."`
	EP        int      `min:"1" name:"ep" group:"Parallel groups:" placeholder:"N" help:"Degree of expert parallelism."`
	ETP       int      `min:"1" name:"etp" group:"Parallel groups:" placeholder:"N" help:"Tensor parallelism of experts; without it that of all else."`
	DP        int      `min:"1" name:"dp" group:"Parallel groups:" placeholder:"N" help:"Degree of data parallelism; without it, what the world size makes it."`
	PP        int      `min:"1" name:"pp" group:"Parallel groups:" placeholder:"N" help:"Degree of pipeline parallelism: the pipeline's ranks, as --ranks."`
	RankOrder string   `group:"Parallel groups:" placeholder:"tp-cp-ep-dp-pp" help:"How global ranks are laid out, leftmost fastest, as in Megatron-LM."`
	WorldSize int      `min:"1" group:"Parallel groups:" placeholder:"N" help:"How many GPUs there are in all; checked against the degrees."`
	Cap       []string `group:"Parallel groups:" sep:"none" placeholder:"rank=3:1200MHz" help:"The highest clock of a pipeline rank, or, with the flags above, of a global one; rank=0-3:… for several. Can be repeated."`
}

// given says whether any of them was.
func (j *jobFlags) given() bool {
	empty := *j
	empty.Cap = nil
	return len(j.Cap) > 0 || fmt.Sprint(empty) != fmt.Sprint(jobFlags{})
}

// spec returns what the flags say.
func (j *jobFlags) spec(w *world) (*jobs.Spec, error) {
	s := &jobs.Spec{TransferTime: j.P2PLatency, Grid: jobs.GridSpec{
		Degrees: parallel.Degrees{TP: j.TP, CP: j.CP, EP: j.EP, ETP: j.ETP, DP: j.DP, PP: j.PP},
		Order:   j.RankOrder, World: j.WorldSize,
	}}
	if j.P2PLatency < 0 || j.P2PLatency > unit.MaxOpTime {
		return nil, fmt.Errorf("--p2p-latency %v: expected 0s to %v", j.P2PLatency, unit.MaxOpTime)
	}
	var err error
	if s.Derive, err = j.rules(); err != nil {
		return nil, err
	}
	if j.Fixed != "" {
		if s.Fixed, err = jobs.ParseFixed(j.Fixed); err != nil {
			return nil, fmt.Errorf("--fixed: %w", err)
		}
	}
	for _, text := range j.Cap {
		caps, err := jobs.ParseCap(text)
		if err != nil {
			return nil, fmt.Errorf("--cap: %w", err)
		}
		s.Caps = append(s.Caps, caps...)
	}
	if s.MicrobatchFactors, err = j.microbatchFactors(w); err != nil {
		return nil, fmt.Errorf("--microbatch-factors: %w", err)
	}
	if j.OpFactors != "" {
		r, err := fileio.OpenText(j.OpFactors, w.stdin)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		s.OpFactors, err = jobs.ReadOpFactors(r, fileio.Name(j.OpFactors))
		if err != nil {
			return nil, fmt.Errorf("--op-factors: %w", err)
		}
		if len(s.OpFactors) == 0 {
			return nil, errors.New("--op-factors: the file has no op")
		}
	}
	return s, nil
}

func (j *jobFlags) microbatchFactors(w *world) ([]frontierfile.Factors, error) {
	switch {
	case j.MicrobatchFactors == "":
		return nil, nil
	case jobs.IsFactorList(j.MicrobatchFactors) && !exists(j.MicrobatchFactors):
		return jobs.ParseMicrobatchFactors(j.MicrobatchFactors)
	}
	r, err := fileio.OpenText(j.MicrobatchFactors, w.stdin)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return jobs.ReadMicrobatchFactors(r, fileio.Name(j.MicrobatchFactors))
}

// isFrom returns an error where a profile is not the one that a frontier was computed
// from.
func isFrom(p *profile.Profile, h *frontierfile.Header) error {
	switch {
	case h.Graph != nil:
		return fmt.Errorf("%s: the frontier is that of a graph, which has no profile: leave out --profile", p.Report.Name)
	case p.SHA256 != h.Profile.SHA256:
		return fmt.Errorf("%s: the frontier was computed from another profile, or it was changed since: its SHA-256 is %s, but this one's is %s",
			p.Report.Name, h.Profile.SHA256, p.SHA256)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
