package plan

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"github.com/perseus-energy/perseus/dag"
	"github.com/perseus-energy/perseus/frontierfile"
	"github.com/perseus-energy/perseus/unit"
)

// header is the JSON form of a plan but for its ops. docs/plan.md describes each
// field.
type header struct {
	Format          string                  `json:"format"`
	Goal            string                  `json:"goal"`
	AskedTime       *unit.Time              `json:"asked_time_s,omitempty"`
	AskedFactor     *Ratio                  `json:"asked_factor,omitempty"`
	AskedPower      *unit.Power             `json:"asked_power_w,omitempty"`
	Margin          Ratio                   `json:"margin"`
	Hold            *unit.Time              `json:"hold_s,omitempty"`
	Effort          string                  `json:"effort"`
	Feasible        bool                    `json:"feasible"`
	Note            string                  `json:"note,omitempty"`
	RelaxedTime     unit.Time               `json:"relaxed_time_s"`
	Time            unit.Time               `json:"time_s"`
	Energy          frontierfile.Nanojoules `json:"energy_j"`
	EffectiveEnergy frontierfile.Nanojoules `json:"effective_energy_j"`
	Bound           frontierfile.Nanojoules `json:"bound_j"`
	Gap             frontierfile.Ratio      `json:"gap"`
	Price           unit.Power              `json:"price_w"`
	AveragePower    unit.Power              `json:"average_power_w"`
	WaitTime        unit.Time               `json:"wait_time_s"`
	WaitEnergy      frontierfile.Nanojoules `json:"wait_energy_j"`
	BaselineTime    unit.Time               `json:"baseline_time_s"`
	BaselineEnergy  frontierfile.Nanojoules `json:"baseline_energy_j"`
	Saving          frontierfile.Ratio      `json:"saving"`
	Schedule        string                  `json:"schedule"`
	Microbatches    int                     `json:"microbatches"`
	ProfileSHA256   string                  `json:"profile_sha256"`
}

type jsonOp struct {
	Stage       int32       `json:"stage"`
	Microbatch  int32       `json:"microbatch"`
	Instruction string      `json:"instruction"`
	Start       unit.Time   `json:"start_s"`
	Time        unit.Time   `json:"time_s"`
	Energy      unit.Energy `json:"energy_j"`
	Knobs       dag.Knobs   `json:"knobs"`
}

// WriteJSON writes the plan in the format perseus-plan/1, one op a line. All
// numbers are exact decimals.
func (p *Plan) WriteJSON(w io.Writer) error {
	h := header{
		Format: Format, Goal: p.Request.Goal.String(), Margin: p.Request.Margin, Effort: p.Request.Effort.String(),
		Feasible: p.Feasible, Note: p.Note, RelaxedTime: p.RelaxedTime, Time: p.Time,
		Energy: p.Energy, EffectiveEnergy: p.Effective, Bound: p.Bound, Gap: p.Gap,
		Price: p.Price, AveragePower: p.AveragePower,
		WaitTime: p.WaitTime, WaitEnergy: p.WaitEnergy,
		BaselineTime: p.BaselineTime, BaselineEnergy: p.BaselineEnergy, Saving: p.Saving,
		Schedule: p.Schedule, Microbatches: p.Microbatches, ProfileSHA256: p.ProfileSHA256,
	}
	if p.Request.Hold > 0 {
		h.Hold = &p.Request.Hold
	}
	switch p.Request.Goal {
	case WithinTime:
		h.AskedTime = &p.Request.Time
	case Slowdown, Straggler:
		h.AskedFactor = &p.Request.Factor
	case AveragePower:
		h.AskedPower = &p.Request.Power
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	// The ops follow inside the same object, one a line.
	_, _ = out.Write(text[:len(text)-len("\n}")]) // Flush reports
	_, _ = out.WriteString(",\n  \"ranks\": [")
	for rank, ops := range p.Ranks {
		_, _ = out.WriteString(separator(rank) + "\n    {\"rank\": ")
		_, _ = out.WriteString(strconv.Itoa(rank))
		if gpus := p.globalRanks(rank); gpus != nil {
			text, err := json.Marshal(gpus)
			if err != nil {
				return err
			}
			_, _ = out.WriteString(", \"global_ranks\": ")
			_, _ = out.Write(text)
		}
		_, _ = out.WriteString(", \"ops\": [")
		for i := range ops {
			o := &ops[i]
			text, err := json.Marshal(jsonOp{o.Stage, o.Microbatch, o.Instruction, o.Start, o.Time, o.Energy, o.Knobs})
			if err != nil {
				return err
			}
			_, _ = out.WriteString(separator(i) + "\n      ")
			_, _ = out.Write(text)
		}
		_, _ = out.WriteString("\n    ]}")
	}
	_, _ = out.WriteString("\n  ]\n}\n")
	return out.Flush()
}

// separator returns what stands before the i-th element of an array.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}
