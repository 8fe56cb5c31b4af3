package main

import (
	"flag"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "draw the pictures in docs again")

// TestPicture checks that docs/frontier.svg is what perseus frontier --example
// gives. Numbers may differ by a little, so that a better rounding of schedules
// does not need a new picture; go generate ./cmd/perseus draws it.
func TestPicture(t *testing.T) {
	const path = "../../docs/frontier.svg"
	frontier, _ := exampleFiles(t)
	if *update {
		must(t, "show", frontier, "--format", "svg", "-o", path)
	}
	drawn := must(t, "show", frontier, "--format", "svg").stdout
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`\d+(\.\d+)?`)
	if number.ReplaceAllString(drawn, "#") != number.ReplaceAllString(string(kept), "#") {
		t.Fatalf("%s is out of date: go generate ./cmd/perseus", path)
	}
	now, then := number.FindAllString(drawn, -1), number.FindAllString(string(kept), -1)
	for i := range now {
		a, errA := strconv.ParseFloat(now[i], 64)
		b, errB := strconv.ParseFloat(then[i], 64)
		if errA != nil || errB != nil || math.Abs(a-b) > 2 {
			t.Fatalf("%s is out of date, %s instead of %s: go generate ./cmd/perseus", path, then[i], now[i])
		}
	}
}
