package training

import (
	"fmt"
	"slices"
	"time"

	"github.com/perseus-energy/perseus/internal/gpu/emulated"
	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/profile"
)

// Clocks returns the clocks in MHz at which the ops of some stages were measured, from the highest down. It fails where
// the profile has no such stage.
func Clocks(p *profile.Profile, stages ...int) (mhz []int, err error) {
	for _, stage := range stages {
		for _, instruction := range p.Instructions() {
			options, err := p.Options(stage, instruction)
			if err != nil {
				return nil, err
			}
			for _, o := range options {
				mhz = append(mhz, int(o.Knobs.ClockMHz))
			}
		}
	}
	slices.Sort(mhz)
	mhz = slices.Compact(mhz)
	slices.Reverse(mhz)
	return mhz, nil
}

// Measured returns an action as it was measured. It fails where the profile lacks it, and on an overlapped pair.
func Measured(b *emulated.Board, p *profile.Profile, a pipeline.Action) (*emulated.Op, error) {
	if a.Kind == pipeline.Overlap {
		return nil, fmt.Errorf("%v: pairs of ops that overlap are not emulated", a)
	}
	options, err := p.Options(int(a.Stage), a.Kind.Instruction())
	if err != nil {
		return nil, err
	}
	var points []emulated.Point
	for _, o := range options {
		points = append(points, emulated.Point{MHz: int(o.Knobs.ClockMHz), Time: time.Duration(o.Time), Energy: o.Energy})
	}
	return b.Measured(a.String(), points)
}
