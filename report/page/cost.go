package page

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perseus-energy/perseus/plan"
	"github.com/perseus-energy/perseus/unit"
)

// Rate is what a kilowatt-hour costs, in money or in grams of CO2: an exact number
// of millionths.
type Rate int64

// maxRate bounds rates, so that a slip of the finger is found.
const maxRate = 1e6 * 1e6

// ParseRate returns a rate from a decimal number as in "0.12", rounded to the
// nearest millionth. It fails on what is no such number, below zero, or above a
// million.
func ParseRate(s string) (Rate, error) {
	v, _, err := unit.ParseDecimal(strings.TrimSpace(s), 6, unit.Nearest)
	switch {
	case err != nil:
		return 0, err
	case v < 0:
		return 0, errors.New("it is below 0")
	case v > maxRate:
		return 0, errors.New("it is over 1000000 for a kilowatt-hour")
	}
	return Rate(v), nil
}

// UnmarshalText reads what ParseRate reads, as command lines need it.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	if *r, err = ParseRate(string(text)); err != nil {
		return fmt.Errorf("%w; expected a number for a kilowatt-hour as in 0.12", err)
	}
	return nil
}

// Prices say what energy costs.
type Prices struct {
	// Money is the price of a kilowatt-hour in Currency, Carbon the grams of CO2
	// that go with it; nil where they are not known.
	Money, Carbon *Rate
	Currency      string
	// Overhead is what a data centre draws for each watt of its GPUs (PUE), at
	// least 1; 0 means 1.
	Overhead plan.Ratio
	// GPUs is the size of a fleet to reckon for; 0 means 10,000.
	GPUs int
}

// check returns p with its defaults, or an error that names the flag which is out
// of range.
func (p Prices) check() (Prices, error) {
	if p.Overhead == 0 {
		p.Overhead = plan.One
	}
	if p.GPUs == 0 {
		p.GPUs = 10_000
	}
	if p.Currency == "" {
		p.Currency = "USD"
	}
	switch {
	case p.Overhead < plan.One || p.Overhead > 10*plan.One:
		return p, fmt.Errorf("--pue %v: expected 1 … 10: what the data centre draws for each watt of its GPUs", p.Overhead)
	case p.GPUs < 1 || p.GPUs > 1e9:
		return p, fmt.Errorf("--gpus %d: expected 1 … 1000000000", p.GPUs)
	case len(p.Currency) > 16:
		return p, fmt.Errorf("--currency %q: expected a short name as in USD or €", p.Currency)
	}
	return p, nil
}

// CostRow is what one scope costs with all ops at their top clocks and with the
// plan, doing the same work.
type CostRow struct {
	Scope, What         string
	Before, After, Save string
}

// costs returns the rows of a plan's cost. The work is the same on both sides: as
// many iterations as the top clocks do in the time.
func costs(p *plan.Plan, gpus int, prices Prices) []CostRow {
	const day = 24 * 3600
	iteration := p.BaselineTime.Seconds()
	perDay := 0.0
	if iteration > 0 {
		perDay = day / iteration
	}
	fleet := perDay * float64(prices.GPUs) / float64(max(gpus, 1))
	var rows []CostRow
	for _, s := range []struct {
		name  string
		times float64
	}{
		{"one iteration of this pipeline", 1},
		{"a day of this pipeline", perDay},
		{"a day on " + grouped(strconv.Itoa(prices.GPUs)) + " GPUs", fleet},
		{"a year on " + grouped(strconv.Itoa(prices.GPUs)) + " GPUs", float64(fleet * 365)},
	} {
		share := float64(s.times*float64(prices.Overhead)) / float64(plan.One)
		before, after := float64(p.BaselineEnergy.Joules()*share), float64(p.WaitEnergy.Joules()*share)
		add := func(what string, factor float64, format func(float64) string) {
			a, b := float64(before*factor), float64(after*factor)
			rows = append(rows, CostRow{s.name, what, format(a), format(b), format(a - b)})
		}
		add("energy", 1, energyText)
		if prices.Money != nil {
			add("money", float64(*prices.Money)/1e6/3.6e6, func(v float64) string { return amount(v) + " " + prices.Currency })
		}
		if prices.Carbon != nil {
			add("CO₂", float64(*prices.Carbon)/1e6/3.6e6, massText)
		}
	}
	return rows
}

// energyText returns joules in a unit that suits.
func energyText(joules float64) string {
	switch kWh := joules / 3.6e6; {
	case kWh >= 1e4:
		return amount(kWh/1e3) + " MWh"
	case kWh >= 1:
		return amount(kWh) + " kWh"
	}
	return amount(joules) + " J"
}

// massText returns grams in a unit that suits.
func massText(grams float64) string {
	switch {
	case grams >= 1e7:
		return amount(grams/1e6) + " t"
	case grams >= 1e3:
		return amount(grams/1e3) + " kg"
	}
	return amount(grams) + " g"
}

// amount returns a number with about four significant digits, its thousands
// apart.
func amount(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := 0
	for limit := 1e3; decimals < 9 && v < limit && v > -limit; limit /= 10 {
		decimals++
	}
	return grouped(strconv.FormatFloat(v, 'f', decimals, 64))
}

// grouped puts commas between the thousands of a number.
func grouped(s string) string {
	whole, fraction, found := strings.Cut(s, ".")
	sign := ""
	if rest, ok := strings.CutPrefix(whole, "-"); ok {
		sign, whole = "-", rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}
