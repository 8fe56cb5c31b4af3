package baseline

import (
	"github.com/perseus-energy/perseus/unit"
)

// Figures are what was published of a workload: Perseus, SOSP 2024 (arXiv
// 2312.06902), tables 3 to 6 and figures 7 to 9, 8 GPUs a stage, 8 stages, 1f1b,
// global batch 1,536.
type Figures struct {
	Name string
	// SHA256 is that of the published profile, where it is known.
	SHA256 string
	// Blocking is the published power of a GPU that waits.
	Blocking unit.Power
	// Intrinsic is the saving in percent at unchanged time, by microbatches.
	Intrinsic map[int]float64
	// Straggler is the saving in percent of a pipeline while another one takes 1.2
	// times as long, and Slowest the time of the least energy over the least time;
	// both with 96 microbatches.
	Straggler, Slowest float64
}

// ProfileScale is how many times the published profiles' stages have to be
// repeated to make the real stage.
const ProfileScale = 10

// publishedFigures returns what was published.
func publishedFigures() []Figures {
	const a100, a40 = 83_640 * unit.Watt / 1000, 70_380 * unit.Watt / 1000
	by := func(v12, v24, v48, v96 float64) map[int]float64 {
		return map[int]float64{12: v12, 24: v24, 48: v48, 96: v96}
	}
	return []Figures{
		{"gpt3-175b-a100-sxm", "362bb134259443524cb6617bdb9f5309cf9952076670765e3c39e0bb12c456a7", a100, by(15.20, 14.19, 13.62, 13.32), 28.07, 1.15},
		{"gpt3-175b-a40", "", a40, by(11.81, 10.22, 9.34, 8.88), 24.69, 1.11},
		{"bloom-176b-a100-sxm", "", a100, by(10.47, 7.06, 5.23, 4.28), 31.85, 1.20},
		{"bloom-176b-a40", "5903ac9da894d7687f98c21cd90cd47d36a628025cb7b315c7015ac53e614bc0", a40, by(6.97, 4.49, 3.12, 2.41), 22.51, 1.14},
	}
}

// FiguresOf returns what was published of the workload with this profile, by its
// hash or by its name (that of the file, without its ending); ok is false where
// nothing was.
func FiguresOf(sha256, name string) (f Figures, ok bool) {
	for _, f := range publishedFigures() {
		if f.SHA256 != "" && f.SHA256 == sha256 || f.Name == name {
			return f, true
		}
	}
	return f, false
}

// TauOf returns the unit of time with which published Perseus was run on a
// profile: 1 ms of the job, which is less of the published profiles.
func TauOf(known bool) unit.Time {
	if known {
		return Tau / ProfileScale
	}
	return Tau
}

// reproduced is how close a figure comes to the published one, in points of
// percent, to count as the same.
const reproduced = 0.3
