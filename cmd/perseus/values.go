package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/perseus-energy/perseus/pipeline"
	"github.com/perseus-energy/perseus/round"
	"github.com/perseus-energy/perseus/unit"
)

// mappers returns how kong reads the values of flags that carry a unit.
func mappers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, o := range []kong.Option{
			mapper(unit.ParseTime, "a time as in 2.9s or 2900ms"),
			mapper(unit.ParsePower, "a power as in 83.64 (watts) or 15kW"),
			mapper(parseFactor, "a factor as in 1.2"),
			mapper(parseShare, "a share as in 0.5%"),
			mapper(parseClock, "a clock in MHz as in 1410"),
			mapper(round.ParseEffort, "fast, normal or best"),
			kong.TypeMapper(reflect.TypeFor[[]string](), kong.MapperFunc(stringList)),
		} {
			if err := o.Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// split returns the items of a list.
func split(text string) ([]string, error) {
	items := strings.Split(text, ",")
	for i := range items {
		if items[i] = strings.TrimSpace(items[i]); items[i] == "" {
			return nil, fmt.Errorf("the list %q has an empty item", text)
		}
	}
	return items, nil
}

// stringList reads texts, a list in each value unless the tag says sep:"none".
func stringList(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("value", &text); err != nil {
		return err
	}
	items := []string{text}
	if ctx.Value.Tag.Sep != -1 {
		var err error
		if items, err = split(text); err != nil {
			return err
		}
	}
	for _, item := range items {
		target.Set(reflect.Append(target, reflect.ValueOf(item)))
	}
	return nil
}

// mapper returns the option to read values of types T and *T with parse.
func mapper[T any](parse func(string) (T, error), expected string) kong.Option {
	read := func(ctx *kong.DecodeContext) (v T, err error) {
		var text string
		if err = ctx.Scan.PopValueInto("value", &text); err != nil {
			return v, err
		}
		if v, err = parse(text); err != nil {
			err = fmt.Errorf("%w; expected %s", err, expected)
		}
		return v, err
	}
	return kong.OptionFunc(func(k *kong.Kong) error {
		value := kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			v, err := read(ctx)
			target.Set(reflect.ValueOf(v))
			return err
		})
		// By itself kong would read a pointer as JSON, without its unit.
		pointer := kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			v, err := read(ctx)
			target.Set(reflect.ValueOf(&v))
			return err
		})
		// By itself kong would take no notice of a comma at the end.
		list := kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
			var text string
			if err := ctx.Scan.PopValueInto("value", &text); err != nil {
				return err
			}
			items, err := split(text)
			if err != nil {
				return fmt.Errorf("%w; expected %s", err, expected)
			}
			for _, item := range items {
				v, err := parse(item)
				if err != nil {
					return fmt.Errorf("%w; expected %s", err, expected)
				}
				target.Set(reflect.Append(target, reflect.ValueOf(v)))
			}
			return nil
		})
		if err := kong.TypeMapper(reflect.TypeFor[[]T](), list).Apply(k); err != nil {
			return err
		}
		if err := kong.TypeMapper(reflect.TypeFor[T](), value).Apply(k); err != nil {
			return err
		}
		return kong.TypeMapper(reflect.TypeFor[*T](), pointer).Apply(k)
	})
}

// parseClock returns a clock in MHz.
func parseClock(text string) (int32, error) {
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("%q is no clock", text)
	}
	return int32(v), nil
}

// variables returns the values that help texts and tags refer to.
func variables() map[string]string {
	return map[string]string{"schedules": strings.Join(scheduleNames(), ", ")}
}

func scheduleNames() (names []string) {
	for _, s := range pipeline.Schedules() {
		names = append(names, s.Name)
	}
	return names
}
