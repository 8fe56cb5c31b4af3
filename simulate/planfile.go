package simulate

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/internal/filekind"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// PlanError is what is wrong with a plan file.
type PlanError struct {
	Name string
	// Line counts from 1; 0 means the whole file.
	Line    int
	Problem string
}

func (e *PlanError) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Problem)
}

// planColumns is the header of a plan as CSV.
const planColumns = "rank,stage,microbatch,instruction,frequency_mhz,start_s,time_s,energy_j"

// peeked is how much of a file is looked at to tell what it is.
const peeked = 1 << 11

// ReadPlan returns the ops of a plan as perseus plan writes it, as CSV or in the
// form perseus-plan/1; all else that the latter says is not read. It fails with a
// *PlanError.
func ReadPlan(r io.Reader, name string) (*plan.Plan, error) {
	b := bufio.NewReader(r)
	start, err := b.Peek(peeked)
	kind := filekind.Of(start)
	switch {
	case len(start) == 0 && errors.Is(err, io.EOF):
		return nil, &PlanError{name, 0, "is empty"}
	case err != nil && !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", name, err)
	case kind == filekind.GPUPlan, kind == filekind.ZeusPlan:
		return nil, &PlanError{name, 0, "this seems to be " + kind + ", which cannot be replayed: it lacks when ops run and what they use; make the plan as CSV or JSON, without --per-gpu"}
	case kind != "" && !strings.HasPrefix(kind, filekind.Plan):
		return nil, &PlanError{name, 0, "this seems to be " + kind + "; expected a plan, as perseus plan writes it"}
	case start[0] == '{':
		return readPlanJSON(b, name)
	}
	return readPlanCSV(b, name)
}

func readPlanJSON(r io.Reader, name string) (*plan.Plan, error) {
	var f struct {
		Format string `json:"format"`
		Ranks  []struct {
			Ops []struct {
				Stage       int32       `json:"stage"`
				Microbatch  int32       `json:"microbatch"`
				Instruction string      `json:"instruction"`
				Start       unit.Time   `json:"start_s"`
				Time        unit.Time   `json:"time_s"`
				Energy      unit.Energy `json:"energy_j"`
				Knobs       dag.Knobs   `json:"knobs"`
			} `json:"ops"`
		} `json:"ranks"`
	}
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return nil, &PlanError{name, 0, err.Error()}
	}
	if f.Format != plan.Format {
		return nil, &PlanError{name, 0, fmt.Sprintf("format %q: expected %q", f.Format, plan.Format)}
	}
	p := &plan.Plan{}
	for rank, r := range f.Ranks {
		var ops []plan.Op
		for i, o := range r.Ops {
			op := plan.Op{Stage: o.Stage, Microbatch: o.Microbatch, Instruction: o.Instruction, Knobs: o.Knobs, Start: o.Start, Time: o.Time, Energy: o.Energy}
			if bad := checkOp(&op); bad != "" {
				return nil, &PlanError{name, 0, fmt.Sprintf("ranks[%d].ops[%d]: %s", rank, i, bad)}
			}
			ops = append(ops, op)
		}
		p.Ranks = append(p.Ranks, ops)
	}
	if len(p.Ranks) == 0 {
		return nil, &PlanError{name, 0, "ranks: is missing or empty"}
	}
	return p, nil
}

// checkOp returns what is out of range in an op, or nothing.
func checkOp(o *plan.Op) string {
	switch {
	case o.Stage < 0 || o.Microbatch < 0:
		return "a stage or microbatch below 0"
	case o.Time < 0 || o.Time > unit.MaxOpTime:
		return fmt.Sprintf("time_s %v: expected 0s … %v", o.Time, unit.MaxOpTime)
	case o.Energy < 0 || o.Energy > unit.MaxOpEnergy:
		return fmt.Sprintf("energy_j %v: expected 0J … %v", o.Energy, unit.Energy(unit.MaxOpEnergy))
	case o.Knobs.ClockMHz < 0:
		return fmt.Sprintf("frequency %d MHz is below 0", o.Knobs.ClockMHz)
	}
	return ""
}

func readPlanCSV(r io.Reader, name string) (*plan.Plan, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	p := &plan.Plan{}
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return nil, &PlanError{name, bad.Line, bad.Err.Error()}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := c.FieldPos(0)
		if p.Ranks == nil {
			if got := strings.Join(row, ","); got != planColumns {
				return nil, &PlanError{name, line, fmt.Sprintf("header %q: expected %q, as perseus plan writes it", got, planColumns)}
			}
			p.Ranks = [][]plan.Op{}
			continue
		}
		rank, op, err := planRow(row)
		if err == nil && rank != len(p.Ranks)-1 && rank != len(p.Ranks) {
			err = fmt.Errorf("rank %d after rank %d: ranks follow one another, from 0", rank, len(p.Ranks)-1)
		}
		if err != nil {
			return nil, &PlanError{name, line, err.Error()}
		}
		if rank == len(p.Ranks) {
			p.Ranks = append(p.Ranks, nil)
		}
		p.Ranks[rank] = append(p.Ranks[rank], op)
	}
	if len(p.Ranks) == 0 {
		return nil, &PlanError{name, 0, "has no ops"}
	}
	return p, nil
}

func planRow(row []string) (rank int, o plan.Op, err error) {
	var whole [4]int64
	for i, k := range [4]int{0, 1, 2, 4} {
		if whole[i], err = strconv.ParseInt(row[k], 10, 32); err != nil || whole[i] < 0 {
			return 0, o, fmt.Errorf("%s %q: expected a whole number", strings.Split(planColumns, ",")[k], row[k])
		}
	}
	o = plan.Op{
		Stage: int32(whole[1]), Microbatch: int32(whole[2]), Knobs: dag.Knobs{ClockMHz: int32(whole[3])},
		Instruction: strings.Clone(row[3]),
	}
	for i, into := range []*unit.Time{&o.Start, &o.Time} {
		v, exact, err := unit.ParseDecimal(row[5+i], 9, unit.Up)
		if err != nil || !exact {
			return 0, o, fmt.Errorf("%s %q: expected seconds of at most nine decimals", strings.Split(planColumns, ",")[5+i], row[5+i])
		}
		*into = unit.Time(v)
	}
	v, _, err := unit.ParseDecimal(row[7], 12, unit.Nearest)
	if err != nil {
		return 0, o, fmt.Errorf("energy_j %q: %w", row[7], err)
	}
	o.Energy = unit.Energy(v)
	if bad := checkOp(&o); bad != "" {
		return 0, o, errors.New(bad)
	}
	return int(whole[0]), o, nil
}

// FromPlan returns the pipeline and schedule that a plan alone describes, with
// the dependencies that its ops imply. blocking is what the GPUs of each rank
// draw together while they wait. It knows no clocks but the plan's. It fails
// where the ops are not those of a pipeline, or run as one op what takes a
// frontier file to tell apart.
func FromPlan(from *plan.Plan, blocking []unit.Power) (*Schedule, error) {
	letter := map[string]string{}
	for k := pipeline.Forward; k <= pipeline.Optimizer; k++ {
		if k != pipeline.Overlap {
			letter[k.Instruction()] = k.String()
		}
	}
	if len(blocking) != len(from.Ranks) {
		return nil, fmt.Errorf("%d blocking powers for %d ranks", len(blocking), len(from.Ranks))
	}
	actions := make([][]string, len(from.Ranks))
	for rank, ops := range from.Ranks {
		for i, o := range ops {
			l, ok := letter[o.Instruction]
			if !ok {
				return nil, fmt.Errorf("rank %d, op %d: instruction %q: the plan alone does not say what it depends on; give the frontier file too", rank, i, o.Instruction)
			}
			a := strconv.Itoa(int(o.Stage)) + l
			if l != pipeline.ReduceGrad.String() && l != pipeline.Optimizer.String() {
				a += strconv.Itoa(int(o.Microbatch))
			}
			actions[rank] = append(actions[rank], a)
		}
	}
	order, err := pipeline.FromActions(actions)
	if err != nil {
		return nil, err
	}
	g, err := order.Graph()
	if err != nil {
		return nil, err
	}
	type key struct {
		stage       int32
		instruction string
		blocking    unit.Power
	}
	p := &Pipeline{Order: order, Blocking: slices.Clone(blocking), GPUsPerRank: 1}
	number := map[key]int32{}
	var ofOp []int32
	s := &Schedule{Pipeline: p, Name: "plan"}
	for rank, ops := range from.Ranks {
		for _, o := range ops {
			k := key{o.Stage, o.Instruction, blocking[rank]}
			n, ok := number[k]
			if !ok {
				n = int32(len(number))
				number[k] = n
				p.Options = append(p.Options, nil)
				p.Stage, p.Instruction = append(p.Stage, int(o.Stage)), append(p.Instruction, o.Instruction)
			}
			option := dag.Option{Knobs: o.Knobs, Time: o.Time, Energy: o.Energy, Effective: dag.Effective(o.Energy, blocking[rank], o.Time)}
			if !slices.Contains(p.Options[n], option) {
				p.Options[n] = append(p.Options[n], option)
			}
			s.Option, ofOp = append(s.Option, option), append(ofOp, n)
		}
	}
	total := unit.Power(0)
	for _, b := range blocking {
		total = min(total+b, unit.MaxPower+1) // NewProblem refuses more
	}
	curves := make([]dag.Curve, len(p.Options))
	for k, n := range number {
		if curves[n], err = dag.NewCurve(p.Options[n], k.blocking); err != nil {
			return nil, fmt.Errorf("stage %d, %s: %w", k.stage, k.instruction, err)
		}
		p.Options[n] = byClock(p.Options[n])
	}
	if p.Problem, err = dag.NewProblem(g, curves, ofOp, total); err != nil {
		return nil, err
	}
	p.index()
	return s, nil
}
