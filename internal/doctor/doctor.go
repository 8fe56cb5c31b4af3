// Package doctor says what a node can do for Perseus and what it cannot, each finding with the way out. It only reads,
// unless it is asked to measure how fast clocks switch: then it locks clocks and takes that back.
//
// It comes after package gpu and its backends, which it is handed open, and before the command perseus doctor.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu"
	"github.com/perseus-energy/perseus/unit"
)

// Format names the JSON form of a Report.
const Format = "perseus-doctor/1"

// Level says what a finding means.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // worth knowing; Perseus works
	Missing Level = "missing" // without it clocks cannot be set, or energy not be measured
)

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	Level Level  `json:"level"`
	Found string `json:"found"`
	// WayOut says what to do about it; empty where all is well.
	WayOut string `json:"way_out,omitempty"`
}

// GPU is what was found on one.
type GPU struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	PCI    string `json:"pci"`
	Index  int    `json:"index"`
	Driver string `json:"driver"`
	// ClocksMHz are those on offer, from the highest down.
	ClocksMHz []int `json:"clocks_mhz,omitempty"`
	// SuspectedLock is set where somebody seems to have locked the clocks.
	SuspectedLock *SuspectedLock `json:"suspected_lock,omitempty"`
	Counter       *Counter       `json:"energy_counter,omitempty"`
	// Switching has the targets that were measured, from the highest down.
	Switching []Switching `json:"switching,omitempty"`
	Findings  []Finding   `json:"findings"`
}

// Report is what Examine found.
type Report struct {
	Format string `json:"format"`
	// OK is false where any finding is Missing.
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"` // of the node
	GPUs     []GPU     `json:"gpus"`
}

// Config is what to examine.
type Config struct {
	Devices []gpu.Device
	// OpenError is why there are no devices, Skipped why some are missing, by index.
	OpenError error
	Skipped   map[int]error
	// Privilege tells whether this process may change GPUs, and by what one sees that; nil where that is not asked.
	Privilege func() (held bool, by string)
	// MeasureSwitching locks clocks, and takes that back even if the context ends.
	MeasureSwitching bool

	// Now is a monotonic clock, Wait waits on it or until the context ends.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
}

// Examine looks at the node and at its GPUs one after the other, which takes about a second each, and some seconds with
// MeasureSwitching. It fails only if ctx ends, and has taken its locks back by then.
func Examine(ctx context.Context, c Config) (Report, error) {
	r := Report{Format: Format, Findings: node(c), GPUs: []GPU{}}
	for _, d := range c.Devices {
		g, err := examine(ctx, &c, d)
		if err != nil {
			return Report{}, err
		}
		r.GPUs = append(r.GPUs, g)
	}
	r.OK = r.Missing() == 0
	return r, nil
}

// Missing returns how many findings are of that level.
func (r *Report) Missing() int {
	n := 0
	count := func(findings []Finding) {
		for _, f := range findings {
			if f.Level == Missing {
				n++
			}
		}
	}
	count(r.Findings)
	for i := range r.GPUs {
		count(r.GPUs[i].Findings)
	}
	return n
}

// node returns the findings that are not of one GPU.
func node(c Config) []Finding {
	if c.OpenError != nil {
		return []Finding{{"driver", Missing, c.OpenError.Error(), wayOutOfOpening(c.OpenError)}}
	}
	var findings []Finding
	if len(c.Devices) == 0 {
		findings = append(findings, Finding{"gpus", Missing, "the driver shows no GPU", "in a container, hand GPUs in (" + containerGPUs + "); else see lspci and dmesg whether the GPU is there and the driver took it"})
	} else {
		driver := "driver"
		if v := c.Devices[0].Info().Driver; v != "" {
			driver += " " + v
		}
		findings = append(findings, Finding{"driver", OK, fmt.Sprintf("%s, %s", driver, plural(len(c.Devices), "GPU")), ""})
	}
	for _, i := range slices.Sorted(maps.Keys(c.Skipped)) {
		err := c.Skipped[i]
		findings = append(findings, Finding{"gpus", Missing, fmt.Sprintf("GPU %d cannot be opened: %v", i, err), wayOut(err)})
	}
	if c.Privilege != nil {
		if held, by := c.Privilege(); held {
			findings = append(findings, Finding{"permission", OK, "clocks may be set: " + by, ""})
		} else {
			findings = append(findings, Finding{"permission", Missing, "clocks may not be set, only read: " + by, permission})
		}
	}
	return findings
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// examine looks at one GPU.
func examine(ctx context.Context, c *Config, d gpu.Device) (GPU, error) {
	i := d.Info()
	g := GPU{ID: i.ID, Name: i.Name, PCI: i.PCI, Index: i.Index, Driver: i.Driver}
	g.calls(d)
	partitioned := g.mig(d)
	g.limits(d)
	g.more(d)
	seen, err := watch(ctx, c, d)
	if err != nil {
		return g, err
	}
	g.counter(seen)
	g.foreign(seen)
	if c.MeasureSwitching {
		return g, g.switching(ctx, c, d, partitioned)
	}
	return g, nil
}

func (g *GPU) add(check string, l Level, found, wayOut string) {
	g.Findings = append(g.Findings, Finding{check, l, found, wayOut})
}

// calls makes each reading call, so that one which fails does not hide the others.
func (g *GPU) calls(d gpu.Device) {
	var works []string
	for _, call := range []struct {
		name   string
		needed bool
		read   func() error
	}{
		{"list of clocks", true, func() error {
			clocks, err := d.Clocks()
			if err == nil && len(clocks) == 0 {
				err = errors.New("the list is empty")
			}
			g.ClocksMHz = clocks
			return err
		}},
		{"clock", true, func() error { _, err := d.Clock(); return err }},
		{"energy", true, func() error { _, err := d.Energy(); return err }},
		{"throttle reasons", false, func() error { _, err := d.Throttle(); return err }},
		{"power", false, func() error { _, err := d.Power(); return err }},
		{"power limit", false, func() error { _, err := d.PowerLimit(); return err }},
		{"temperature", false, func() error { _, err := d.Temperature(); return err }},
		{"memory clock", false, func() error { _, err := d.MemoryClock(); return err }},
		{"MIG mode", false, func() error { _, err := d.MIG(); return err }},
	} {
		err := call.read()
		switch {
		case err == nil:
			works = append(works, call.name)
		case call.needed:
			g.add(call.name, Missing, err.Error(), wayOut(err))
		default:
			g.add(call.name, Note, err.Error(), wayOut(err))
		}
	}
	if len(works) > 0 {
		g.add("calls", OK, "answer: "+list(works), "")
	}
	if n := len(g.ClocksMHz); n > 0 {
		g.add("clocks", OK, fmt.Sprintf("%s from %d to %d MHz", plural(n, "clock"), g.ClocksMHz[n-1], g.ClocksMHz[0]), "")
	}
}

// mig returns whether the GPU is partitioned.
func (g *GPU) mig(d gpu.Device) bool {
	on, err := d.MIG()
	if err != nil || !on {
		return false
	}
	g.add("MIG", Missing, "the GPU is partitioned: a clock would hold for all its instances, so perseus agent leaves it alone",
		"give training whole GPUs: drain it and run nvidia-smi -i "+g.PCI+" -mig 0")
	return true
}

// limits says what holds the GPU down.
func (g *GPU) limits(d gpu.Device) {
	if l, err := d.PowerLimit(); err == nil && l.Enforced > 0 && l.Default > 0 && l.Enforced < l.Default {
		g.add("power limit", Note, fmt.Sprintf("power is limited to %v, by default to %v: under load the top clocks may not be reached", l.Enforced, l.Default),
			"if that is not meant: nvidia-smi -i "+g.PCI+" -pl "+watts(l.Default)+", or ask who limits it out of band (BMC, rack manager)")
	}
	t, err := d.Throttle()
	if err != nil {
		return
	}
	for _, why := range []struct {
		is   bool
		what string
		out  string
	}{
		{t.PowerCap, "the power limit", "raise the limit, or keep the top clocks out of profiles"},
		{t.Thermal, "heat", "look at fans, air flow and water; a profile measured now would not hold later"},
		{t.HardwareSlowdown, "a hardware slowdown", "look at power supply and cooling; a clock that just changes may show this too, so run perseus doctor again"},
	} {
		if why.is {
			g.add("throttle reasons", Note, "the clock is held down now by "+why.what, why.out)
		}
	}
}

func watts(p unit.Power) string { return string(p.AppendDecimal(nil)) }

// more asks what only some backends know.
func (g *GPU) more(d gpu.Device) {
	if p, ok := d.(interface{ Persistence() (bool, error) }); ok {
		if on, err := p.Persistence(); err == nil && !on {
			g.add("persistence", Note, "persistence mode is off: the driver forgets locks and limits when its last client goes, and takes a second to start",
				"nothing has to be done, perseus agent holds the GPU while it leases it; systemctl enable --now nvidia-persistenced for quicker starts")
		}
	}
	if p, ok := d.(interface {
		PowerProfiles() (requested, enforced []int, err error)
	}); ok {
		if _, enforced, err := p.PowerProfiles(); err == nil && len(enforced) > 0 {
			g.add("power profiles", Note, fmt.Sprintf("workload power profiles %v are in force: they move clocks and power beside Perseus", enforced),
				"nvidia-smi power-profiles shows and clears them; if they are meant, measure the job's profile with them in force")
		}
	}
}
